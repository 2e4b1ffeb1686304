"""Judgments of the same sentences under one id, compared once all records are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labeler.audit.registry import Check, Finding
from labeler.audit.subject import Judgment
from labeler.labels.record import LabelRecord, shown
from labeler.labels.signature import digest


class Repeats:
    """Judgments of the same sentences, which are known only after the last record."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self._checks = checks
        self._same: dict[str, list[tuple[int, str, Judgment]]] = {}
        """Position, label key and verdicts of records, by their id and sentences."""

    def add(self, place: int, record: LabelRecord) -> None:
        """Add the record at a position."""
        if self._checks:
            same = digest({"id": record.id, "shown": shown(record.example)})
            kept = (place, record.key, Judgment.of(record))
            self._same.setdefault(same, []).append(kept)

    def findings(self) -> Iterator[tuple[int, Check, list[Finding]]]:
        """Yield the findings in each judgment that has others, by the record's position."""
        for same in self._same.values():
            # Records with equal label keys are copies of one judgment.
            if len({key for _, key, _ in same}) == 1:
                continue
            for place, key, judgment in same:
                others = list({k: other for _, k, other in same if k != key}.values())
                for check in self._checks:
                    yield place, check, check.findings_across(judgment, others)
