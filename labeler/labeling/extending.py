"""Retrieval labels that extend a stored one: only the document that it lacks is judged.

The judge sees that document without the others, so the label depends on what was judged before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from labeler.errors import StoreError
from labeler.judges.task import Task
from labeler.labeling.windows import Windowed, WindowRecord
from labeler.labels.record import extended_key, retrieval_key
from labeler.labels.retrieval_record import RetrievalRecord, extended, of_documents


@dataclass(frozen=True)
class Extension(Windowed):
    """A retrieval whose label joins that of one document with a stored label of the others.

    Attributes:
        added: number of the document.
    """

    is_long: ClassVar[bool] = False

    added: int

    def merged(self, records: Sequence[WindowRecord]) -> WindowRecord:
        """Join the retrieval labels of the added document and of the others, in this order."""
        added, base = cast("Sequence[RetrievalRecord]", records)
        return cast("WindowRecord", extended(base, added, self.task.example, self.added))

    def place(self, part: int) -> str:
        """Name one of the parts, for people."""
        return ("the added document", "the label that it extends")[part]


def extension_of(whole: Task[Any], is_known: Callable[[str], bool]) -> Extension | None:
    """Return how to extend a known retrieval label; ``None`` if none lacks just one document.

    Of several labels, one that was extended before is taken, else one whose added document is
    known already, else that with the smallest key: a rerun chooses the same.

    Args:
        whole: task about all documents.
        is_known: returns whether a key has a record or is in a batch.
    """

    def has(key: str) -> bool:
        with suppress(StoreError):  # damage of another row's label is reported with that row
            return is_known(key)
        return False

    found: dict[tuple[bool, bool, str], Extension] = {}
    places = range(len(whole.example.documents))
    for added in places if len(places) > 1 else ():
        base = _about(whole, [place for place in places if place != added])
        key = extended_key(whole.key, base.key)
        is_made = is_known(key)
        if is_made or has(base.key):
            alone = _about(whole, [added])
            rank = (not is_made, not has(alone.key), base.key)
            found[rank] = Extension(replace(whole, key=key), (alone, base), added)
    return found[min(found)] if found else None


def _about(whole: Task[Any], places: Sequence[int]) -> Task[Any]:
    """Return the task about some of the documents; it is that of a row which has these alone."""
    example = of_documents(whole.example, places)
    return replace(whole, example=example, key=retrieval_key(example, whole.signature))
