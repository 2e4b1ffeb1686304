"""A listener of runs that writes down their events."""

from __future__ import annotations

from decimal import Decimal

from labeler.labeling.progress import Origin, RunEvent


class Watch:
    """Facts of the events of one run; subclasses may act on an event."""

    def __init__(self) -> None:
        self.total: int | None = -1
        self.notices: list[str] = []
        self.origins: list[Origin] = []
        self.results: list[str] = []
        self.paid_for: list[str] = []
        self.finished = 0
        self.spent = Decimal(0)

    def __call__(self, event: RunEvent) -> None:
        """Write an event down."""
        if event.kind == "start":
            self.total = event.counts.total
        elif event.kind == "notice":
            self.notices.append(event.text)
        elif event.kind == "result" and event.outcome is not None:
            self.origins.append(event.origin)
            self.results.append(event.outcome.id)
        elif event.kind == "judged" and event.outcome is not None:
            self.paid_for.append(event.outcome.id)
        elif event.kind == "finish" and event.counts.spent is not None:
            self.finished += 1
            self.spent = event.counts.spent.spent
