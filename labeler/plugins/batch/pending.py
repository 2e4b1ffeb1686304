"""Label keys that open batches may still answer: every run with a store looks them up.

Reading batches loads what made their requests, so this module does it only where there are some.
"""

from __future__ import annotations

from pathlib import Path

from labeler.plugins.batch import names_in


class PendingKeys:
    """Looks up label keys that a batch of a store may still answer, now and later.

    Notices batches that are submitted later, because each call lists them. A caller that
    holds the lease of a key cannot miss a batch for it, because batches are submitted under leases.

    Args:
        store: the store's folder; it need not exist.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._names: list[str] = []
        self._keys: dict[str, str] = {}

    def __call__(self, key: str) -> str | None:
        """Return the name of the batch that may still answer a key, or ``None``.

        Raises:
            StoreError: the state of a batch cannot be read: asking would risk paying twice.
        """
        return self._present().get(key)

    def __len__(self) -> int:
        """Return the number of these keys."""
        return len(self._present())

    def _present(self) -> dict[str, str]:
        if (names := names_in(self._store)) != self._names:
            from labeler.plugins.batch.folder import pending_keys  # noqa: PLC0415 - loads much

            self._keys, self._names = pending_keys(self._store), names
        return self._keys
