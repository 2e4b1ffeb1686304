"""Files of evaluation events, as several commands write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from labeler.cli.terminal import notify, plural

if TYPE_CHECKING:
    from labeler.calculators import MetricsRow
    from labeler.labeling.progress import OnEvent, RunEvent
    from labeler.labels.record import Outcome


def write_events(rows: Iterable[MetricsRow], path: str) -> None:
    """Write metrics as evaluation events, and report how many name their trace."""
    from labeler.calculators.evaluation_events import write_events as write

    written = write(rows, path)
    without = f"; {written.untraced:,} without a trace id in metadata" if written.untraced else ""
    notify(f"events of {plural(written.records, 'record')} written to {path}{without}")


@contextmanager
def events_file(path: str | None) -> Iterator[list[OnEvent]]:
    """Yield the listeners that write the metrics of a run as evaluation events to a file."""
    if path is None:
        yield []
        return
    from labeler.calculators.evaluation_events import events_file as opened

    with opened(path) as write:

        def listener(event: RunEvent) -> None:
            if event.kind == "result":
                write(cast("Outcome", event.outcome))  # labels are the only results

        yield [listener]
    notify(f"evaluation events written to {path}")
