"""What people have said so far, by this desk and any other that writes to the same file."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from labeler.data.corrections.correction import Correction
from labeler.data.corrections.overlay import CorrectionsFile, current

Who = tuple[str, str]
"""Key of a label, and an annotator."""


@dataclass(frozen=True)
class Standing:
    """What stands in the file.

    Attributes:
        version: counts up whenever the file was read anew.
        events: every correction, in order.
        current: the last word of each person on each label; what was taken back is missing.
        seen: who has ever said anything of a label, and so may know the judge's verdicts.
    """

    version: int
    events: Sequence[Correction]
    current: Mapping[Who, Correction]
    seen: frozenset[Who]


class _State(NamedTuple):
    """How a file looks from outside."""

    size: int
    changed_at: int


class Ledger:
    """The corrections file, read anew where it has changed.

    Args:
        file: where corrections are stored.
    """

    def __init__(self, file: CorrectionsFile) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._read_at: _State | None = None
        self._standing = Standing(0, (), {}, frozenset())

    def standing(self) -> Standing:
        """What stands in the file now."""
        with self._lock:
            # Before it is read: what is added meanwhile makes it differ again.
            changed_at = self._state()
            if changed_at != self._read_at:
                self._standing = _stand(self._standing.version + 1, self.file.read().events)
                self._read_at = changed_at
            return self._standing

    def add(self, correction: Correction) -> None:
        """Store a correction; it is durable when this returns."""
        size = len(correction.model_dump_json().encode()) + 1  # and the end of the line
        with self._lock:
            self.file.append(correction)
            known, now = self._read_at, self._state()
            if now is not None and now.size == (known.size if known else 0) + size:
                # Nobody else has written meanwhile: what stands there need not be read again.
                events = (*self._standing.events, correction)
                self._standing, self._read_at = _stand(self._standing.version + 1, events), now

    def _state(self) -> _State | None:
        try:
            found = self.file.path.stat()
        except FileNotFoundError:
            return None
        return _State(found.st_size, found.st_mtime_ns)


def _stand(version: int, events: Sequence[Correction]) -> Standing:
    return Standing(
        version=version,
        events=events,
        current={(event.key, event.annotator): event for event in current(events)},
        seen=frozenset((event.key, event.annotator) for event in events),
    )
