"""Tables of the outcomes of records in a fault run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What became of records on one server."""

    values: Mapping[str, Mapping[str, Any]]
    """By record and metric; ``None`` where a metric has no value. A lost record is not in it."""
    calls: int
    seconds: float
    errors: Counter[str] = field(default_factory=Counter)
    """What a peer said of metrics without a value, and how often."""
    true_failures: int = 0
    """Records that end as a failure with its true reason."""
    false_failures: int = 0
    """Records that end as a failure with another reason."""
    asked_again: int | None = None
    """Requests for a record after a good answer was received whole; ``None`` where not known."""
    ideal_seconds: float | None = None
    """What the calls take without any overhead; ``None`` where not known."""
    unsaved: int = 0
    """Labels that were yielded and are not in the store."""
    numbers_missing: int = 0
    """Labels from which a metric became NaN."""

    @property
    def valid(self) -> set[str]:
        """Records whose every metric has a value."""
        return {id_ for id_, row in self.values.items() if None not in row.values()}


class Work(NamedTuple):
    """What a tool is given."""

    rows: Sequence[Row]
    concurrency: int
    timeout: float
    """Seconds that one request may take."""


class Compared(NamedTuple):
    """A tool's runs on the same records."""

    tool: str
    work: Work
    clean: Run
    faulty: Run
    clean_again: Run | None = None
    """Where a tool's values differ even between clean runs, faults are not to blame alone."""


def differing(one: Run, other: Run) -> int:
    """Records that have a value in both runs which is not the same."""
    return sum(
        any(
            None not in (value, other.values.get(id_, {}).get(name))
            and other.values[id_][name] != value
            for name, value in row.items()
        )
        for id_, row in one.values.items()
    )


HEADINGS = (
    "tool",
    "records",
    "in flight",
    "time-out, s",
    "every metric valid",
    "typed failure, true reason",
    "typed failure, other reason",
    "NaN or error",
    "lost",
    "silently different",
    "clean runs differ",
    "asked again after a good answer that was received whole",
    "calls a record, clean to faulty",
    "wall s, clean to faulty",
    "ideal wall s, clean to faulty",
)


def cells(found: Compared) -> Iterator[object]:
    """A line of the table."""
    total, faulty, clean = len(found.work.rows), found.faulty, found.clean
    typed = faulty.true_failures + faulty.false_failures
    broken = len(faulty.values) - len(faulty.valid) - typed + faulty.numbers_missing
    yield from (found.tool, f"{total:,}", found.work.concurrency, f"{found.work.timeout:g}")
    for count in (len(faulty.valid), faulty.true_failures, faulty.false_failures, broken):
        yield share(count, total)
    yield share(total - len(faulty.values) + faulty.unsaved, total)
    yield share(differing(faulty, clean), total)
    yield "n/a" if found.clean_again is None else share(differing(found.clean_again, clean), total)
    yield "n/a" if faulty.asked_again is None else faulty.asked_again
    yield f"{clean.calls / total:.2f} to {faulty.calls / total:.2f}"
    yield f"{clean.seconds:.1f} to {faulty.seconds:.1f}"
    ideal = clean.ideal_seconds, faulty.ideal_seconds
    yield "n/a" if None in ideal else " to ".join(f"{seconds:.1f}" for seconds in ideal)


def share(count: int, total: int) -> str:
    """A count, and what part of all it is."""
    return f"{count:,} ({count / total:.1%})"


def line(values: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, values))} |"


def report(found: Iterable[Compared], notes: Iterable[str]) -> Iterator[str]:
    """The table, then what it lacks."""
    yield line(HEADINGS)
    yield line(["---", *["--:"] * (len(HEADINGS) - 1)])
    yield from (line(cells(one)) for one in found)
    yield ""
    yield from notes
