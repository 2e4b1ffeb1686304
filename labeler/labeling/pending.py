"""Labels that are bought already and still to come, such as those of a batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from labeler.extensions import every

Pending = Callable[[str], str | None]
"""Names what a label with a key will come from; ``None`` if nobody has asked for it."""


def pending_labels(folder: Path | None) -> Pending:
    """Return the function that says of a key whether its label is bought already.

    Installed packages declare how, in the group ``labeler.pending``: a function from the folder of
    a store to such a function.

    Args:
        folder: of the store; ``None`` if the labels are in memory.

    Raises:
        ExtensionError: a package cannot load, or is not declared; its labels would be bought twice.
    """
    if folder is None:
        return lambda _: None
    known: list[Pending] = [pending_in(folder) for pending_in in every("pending").values()]
    return lambda key: next(filter(None, (pending(key) for pending in known)), None)
