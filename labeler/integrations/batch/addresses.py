"""Where the batches of a store are: a key goes to no address that only a folder names."""

from __future__ import annotations

from pathlib import Path

from labeler.errors import UsageError
from labeler.integrations.batch.commands import command
from labeler.integrations.batch.folder import batches


def require_address(
    store: Path, base_url: str, action: str, *words: str, name: str | None = None
) -> None:
    """Refuse to work at an address where a store has nothing open, while it has elsewhere.

    Args:
        store: the store's folder; it need not exist.
        base_url: the address that was given.
        action: what is to be done, such as ``collect``.
        words: further arguments of the command that does it.
        name: the one batch that it is done to; by default all.

    Raises:
        UsageError: the open batches are elsewhere; it says where, and names the command.
        StoreError: what is known of a batch cannot be read.
    """
    addresses = {
        folder.facts.base_url
        for folder in batches(store)
        if name in {None, folder.name} and folder.is_open
    }
    if not addresses or base_url in addresses:
        return
    first = min(addresses)
    subject = f"batch {name} of {store} is" if name else f"the open batches of {store} are"
    where = f"at {', '.join(sorted(addresses))}, not at {base_url}"
    go_on = command(action, *([name] if name else []), *words, store=store, base_url=first)
    raise UsageError(
        f"{subject} {where}: a key is sent only to an address that you give: `{go_on}`, or "
        "base_url in Python"
    )
