"""Label records on a server that corrupts a share of all calls, and count the outcomes.

    python benchmarks/reliability.py --only mixed --only peers

Every tool runs on a clean server first, and its clean values are what those of the faulty run are
compared with. Ragas and deepeval get the same share, mix and seed, each in a virtual environment of
its own, which is made on the first run. They ask many times a record, so they get fewer records.

The mix (``FAULTS`` in ``peers/server.py``) has 429 with and without a short wait, 500, 503,
dropped, cut and silent connections, truncated, refused, filtered, malformed and empty answers, and
answers that name an unknown key or leave a sentence out; for other tools than labeler the last two
are a verdict outside its schema and a list without its last item. The model is made up: figures say
how failures are handled, and nothing of the quality of labels.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import labeler
from harness import ServerProcess, table
from labeler.judges.openai.sender import LentResponse, Sender
from labeler.labels.record import LabelFailure, LabelRecord
from peers.environments import cache_folder, interpreter, run_peer, said_by, version
from peers.records import made_up
from peers.server import GOOD, REASONS

Row = dict[str, Any]

_MOST_WORDS = 70
"""Characters of a peer's error that are shown."""
FORMS = {
    "ragas, `evaluate`": ("ragas", "evaluate"),
    "ragas, collections": ("ragas", "collections"),
    "deepeval, default": ("deepeval", "default"),
    "deepeval, `ignore_errors`": ("deepeval", "ignore-errors"),
}
"""What the table calls the peers, and their forms."""


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


class Weather(NamedTuple):
    """How a server treats its callers."""

    share: float = 0.0
    """Of the calls that go wrong."""
    seed: int = 1
    latency: float = 0.2
    """Seconds before each answer."""
    kinds: Sequence[str] = tuple(REASONS)
    """What goes wrong."""


class Server(ServerProcess):
    """A server of faults, while its context is entered."""

    def __init__(self, weather: Weather) -> None:
        self.calls = 0
        """The number of calls; known at the end."""
        self.given: Mapping[str, Sequence[str]] = {}
        """The faults of each record's calls, by its question; known at the end."""
        share, seed, latency, kinds = weather
        numbers = {"--share": share, "--seed": seed, "--latency": latency}
        options = [f"{name}={value}" for name, value in numbers.items()]
        super().__init__("peers.server", *options, "--kinds", *kinds)

    def on_end(self, output: str) -> None:
        """Read the log of calls."""
        log = json.loads(output)
        self.calls, self.given = log["calls"], log["given"]


@dataclass
class Received:
    """Good answers that the client has received to the end, and requests after them."""

    records: set[str] = field(default_factory=set)
    asked_again: int = 0


@contextmanager
def receiving() -> Iterator[Received]:
    """Watch the judge's requests.

    The server cannot count these: it does not see that an answer came too late, or that its end
    was lost on the way, and the client cannot know that such an answer was good.
    """
    received = Received()

    send = Sender.send

    async def watched(
        sender: Sender, method: str, url: str, content: bytes | None = None
    ) -> LentResponse:
        record = json.loads(content)["messages"][1]["content"] if content else ""
        received.asked_again += record in received.records
        response = await send(sender, method, url, content)
        if record and GOOD.encode() in response.whole:
            received.records.add(record)
        return response

    with patch.object(Sender, "send", watched):
        yield received


def label_run(work: Work, weather: Weather) -> Run:
    """Label all rows with labeler."""
    server = Server(weather)
    with tempfile.TemporaryDirectory() as folder:
        with server, receiving() as received:
            judge = labeler.OpenAIJudge(
                "stub-1", api_key="none", base_url=server.url, timeout=work.timeout
            )
            began = time.perf_counter()
            how: dict[str, Any] = {"judge": judge, "concurrency": work.concurrency}
            outcomes = list(labeler.iter_labels(work.rows, store=folder, **how))
            seconds = time.perf_counter() - began
        stored = {
            one.key for one in labeler.api.read_labels(folder) if isinstance(one, LabelRecord)
        }
    failures = [outcome for outcome in outcomes if isinstance(outcome, LabelFailure)]
    labels = [outcome for outcome in outcomes if isinstance(outcome, LabelRecord)]
    true = sum(is_true(failure, work.rows, server.given) for failure in failures)
    return Run(
        values={
            **{label.id: {"label": label.label.model_dump(mode="json")} for label in labels},
            **{failure.id: {"label": None} for failure in failures},
        },
        calls=server.calls,
        seconds=seconds,
        true_failures=true,
        false_failures=len(failures) - true,
        asked_again=received.asked_again,
        ideal_seconds=ideal(server.given.values(), work, weather.latency),
        unsaved=sum(label.key not in stored for label in labels),
        numbers_missing=sum(map(has_nan, labeler.metrics(labels))),
    )


def is_true(failure: LabelFailure, rows: Iterable[Row], given: Mapping[str, Sequence[str]]) -> bool:
    """True if a failure carries the reason of what was done last to its record."""
    question = next(row["question"] for row in rows if row["id"] == failure.id)
    return failure.reason == REASONS.get(given.get(question, [""])[-1])


def ideal(given: Iterable[Sequence[str]], work: Work, latency: float) -> float:
    """Seconds that the calls take if as many as allowed are in flight all the time."""
    calls = Counter(kind for kinds in given for kind in kinds)
    late = calls.pop("hang", 0)
    return (calls.total() * latency + late * work.timeout) / work.concurrency


def has_nan(row: labeler.MetricsRow) -> bool:
    """True if a metric is NaN, rather than a number or undefined."""
    values = (ratio.value for ratio in row.metrics.values())
    return any(value is not None and math.isnan(value) for value in values)


def peer_run(name: str, form: str, work: Work, weather: Weather) -> Run:
    """Score all rows in a peer's own environment."""
    python, server = interpreter(name, cache_folder()), Server(weather)
    with tempfile.TemporaryDirectory() as home:
        given = {"form": form, "timeout": work.timeout, "concurrency": work.concurrency}
        whole, results = run_peer(name, python, work.rows, server, home=home, **given)
    errors = [whole["ended_by"]] if whole["ended_by"] else []
    errors += [error for result in results for error in result["errors"].values()]
    return Run(
        values={result["id"]: result["values"] for result in results},
        calls=server.calls,
        seconds=whole["seconds"],
        errors=Counter(" ".join(error.split())[:_MOST_WORDS] for error in errors),
    )


def compared(
    tool: str, run: Callable[[Work, Weather], Run], work: Work, weather: Weather, *, twice: bool
) -> Compared:
    """Run a tool on a clean server, on a faulty one, and if asked on a clean one again."""
    fair = weather._replace(share=0.0)
    clean, faulty = run(work, fair), run(work, weather)
    return Compared(tool, work, clean, faulty, run(work, fair) if twice else None)


# -- the table -------------------------------------------------------------------------------------

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
    """The cells of a line of the table."""
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


def peers() -> Iterator[str]:
    """Run labeler and each peer; one that does not run becomes a note."""
    weather, notes = Weather(share=0.1), list[str]()
    works = [Work(made_up(2_000), concurrency, 2.0) for concurrency in (16, 64)]
    found = [compared("labeler", label_run, work, weather, twice=False) for work in works]
    work = Work(made_up(50), 16, 10.0)
    for title, form in FORMS.items():
        print(f"{title} …", file=sys.stderr)
        try:
            one = compared(title, partial(peer_run, *form), work, weather, twice=True)
        except (OSError, subprocess.SubprocessError) as error:
            notes.append(f"{title} did not run: {said_by(error)}  ")
            continue
        found.append(one)
        if one.faulty.errors:
            errors = "; ".join(f"{error} ({n})" for error, n in one.faulty.errors.most_common())
            notes.append(f"{title}, errors in the faulty run: {errors}  ")
    names = dict.fromkeys(name for name, _ in FORMS.values())
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    yield f"Peers: {versions}; seed {weather.seed}, {weather.latency:g} s before each answer  "
    yield f"Faults, each as likely: {', '.join(weather.kinds)}  \n"
    yield from table(HEADINGS, map(cells, found))
    yield ""
    yield from notes
