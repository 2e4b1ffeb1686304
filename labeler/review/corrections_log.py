"""Corrections so far, by this review session and any other that writes to the same file."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labeler.data.corrections.correction import Correction, drawn_at_random
from labeler.data.corrections.file import CorrectionsFile, current

KeyAndAnnotator = tuple[str, str]
"""A label key and an annotator."""


@dataclass(frozen=True)
class Snapshot:
    """The corrections of a file at one moment.

    Attributes:
        version: increases whenever the file has changed.
        events: all corrections, in order.
        current: the latest correction of each annotator on each label, without withdrawn ones.
        seen: annotators who ever answered a label, and so may have seen the judge's verdicts.
        drawn: keys of the labels that were ever drawn at random.
    """

    version: int
    events: Sequence[Correction]
    current: Mapping[KeyAndAnnotator, Correction]
    seen: frozenset[KeyAndAnnotator]
    drawn: frozenset[str]

    @classmethod
    def of(cls, version: int, events: Sequence[Correction]) -> Snapshot:
        """Index the corrections of a file."""
        return cls(
            version=version,
            events=events,
            current={(event.key, event.annotator): event for event in current(events)},
            seen=frozenset((event.key, event.annotator) for event in events),
            drawn=drawn_at_random(events),
        )


class CorrectionsLog:
    """A corrections file that is read again only if it has changed.

    Args:
        file: the corrections file.
    """

    def __init__(self, file: CorrectionsFile) -> None:
        self.file = file
        self._lock = threading.Lock()
        self._read_at: tuple[int, int] | None = None
        """Size and modification time when the file was last read."""
        self._snapshot = Snapshot.of(0, ())

    def snapshot(self) -> Snapshot:
        """Return the corrections of the file as it is now."""
        with self._lock:
            # Taken before reading, so a correction added meanwhile makes it differ again.
            state = self._state()
            if state != self._read_at:
                events = self.file.read().events
                self._snapshot = Snapshot.of(self._snapshot.version + 1, events)
                self._read_at = state
            return self._snapshot

    def add(self, correction: Correction) -> None:
        """Store a correction; it is durable when this method returns."""
        size = len(correction.model_dump_json().encode()) + 1  # and the end of the line
        with self._lock:
            self.file.append(correction)
            before, after = self._read_at, self._state()
            if after is not None and after[0] == (before[0] if before else 0) + size:
                # Nobody else has written meanwhile, so the file need not be read again.
                events = (*self._snapshot.events, correction)
                self._snapshot = Snapshot.of(self._snapshot.version + 1, events)
                self._read_at = after

    def _state(self) -> tuple[int, int] | None:
        try:
            found = self.file.path.stat()
        except FileNotFoundError:
            return None
        return found.st_size, found.st_mtime_ns
