"""Label records on a server that corrupts a share of all calls, and count the outcomes.

    python benchmarks/fault_run.py [--records 2000] [--concurrency 16 64] [--without-peers]

Next to labeler's, the table has the figures of ragas and of deepeval on the same server with the
same share, mix and seed, each in a virtual environment of its own, which is made on the first run
under ``--cache``. They ask many times a record, so they get fewer records. Every tool runs on a
clean server first, and its clean values are what those of the faulty run are compared with.

The mix (``FAULTS`` in ``peers/server.py``) has 429 with and without a short wait, 500, 503,
dropped, cut and silent connections, truncated, refused, filtered, malformed and empty answers, and
answers that name an unknown key or leave a sentence out; for other tools than labeler the last two
are a verdict outside its schema and a list without its last item. The model is made up: figures say
how failures are handled, and nothing of the quality of labels.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import labeler
from fault_figures import Compared, Row, Run, Work, report
from labeler.judges.openai.sender import LentResponse, Sender
from labeler.labels.record import LabelFailure, LabelRecord
from peers.environments import ROOT, cache_folder, interpreter, quiet, version
from peers.records import made_up
from peers.server import GOOD
from server_process import ServerProcess

REASONS: Mapping[str, str] = {
    "429": "rate_limit",
    "429-wait-ms": "rate_limit",
    "500": "transport",
    "503": "transport",
    "reset": "transport",
    "close": "transport",
    "short": "transport",
    "hang": "timeout",
    "truncated": "truncated",
    "refusal": "refusal",
    "filtered": "content_filter",
    "malformed": "malformed",
    "no-choices": "transport",
    "unknown-key": "contract",
    "missing-sentence": "contract",
}
"""The reason that a record's failure must carry where this was the last thing done to it."""

_LONGEST_RUN = 1_800.0
"""Seconds after which a peer's run is given up."""
_MOST_WORDS = 70
"""Characters of a peer's error that are shown."""


# -- the server -----------------------------------------------------------------------------------


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


# -- runs -----------------------------------------------------------------------------------------


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
            outcomes = list(
                labeler.iter_labels(
                    work.rows, judge=judge, store=folder, concurrency=work.concurrency
                )
            )
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
    """Whether a failure carries the reason of what was done last to its record."""
    question = next(row["question"] for row in rows if row["id"] == failure.id)
    return failure.reason == REASONS.get(given.get(question, [""])[-1])


def ideal(given: Iterable[Sequence[str]], work: Work, latency: float) -> float:
    """Seconds that the calls take if as many as allowed are in flight all the time."""
    calls = Counter(kind for kinds in given for kind in kinds)
    late = calls.pop("hang", 0)
    return (calls.total() * latency + late * work.timeout) / work.concurrency


def has_nan(row: labeler.MetricsRow) -> bool:
    """Whether a metric is NaN, rather than a number or undefined."""
    values = (ratio.value for ratio in row.metrics.values())
    return any(value is not None and math.isnan(value) for value in values)


@dataclass(frozen=True)
class Peer:
    """Another tool, in one of its forms."""

    name: str
    form: str
    cache: Path

    def run(self, work: Work, weather: Weather) -> Run:
        """Score all rows in the peer's own environment."""
        python = interpreter(self.name, self.cache)
        script = ROOT / "benchmarks" / "peers" / f"{self.name}_run.py"
        server = Server(weather)
        with tempfile.TemporaryDirectory() as folder:
            home, out = Path(folder), Path(folder, "out.jsonl")
            records = home / "records.jsonl"
            records.write_text("".join(json.dumps(row) + "\n" for row in work.rows))
            with server:
                options = [
                    *("--url", server.url, "--records", records, "--out", out),
                    *("--form", self.form, "--timeout", work.timeout),
                    *("--concurrency", work.concurrency),
                ]
                subprocess.run(
                    [str(python), str(script), *map(str, options)],
                    cwd=home,
                    env=quiet(home),
                    capture_output=True,
                    check=True,
                    text=True,
                    timeout=_LONGEST_RUN,
                )
            whole, *results = map(json.loads, out.read_text().splitlines())
        errors = [whole["ended_by"]] if whole["ended_by"] else []
        errors += [error for result in results for error in result["errors"].values()]
        return Run(
            values={result["id"]: result["values"] for result in results},
            calls=server.calls,
            seconds=whole["seconds"],
            errors=Counter(" ".join(error.split())[:_MOST_WORDS] for error in errors),
        )


# -- the whole ------------------------------------------------------------------------------------


FORMS = (
    ("ragas", "evaluate", "ragas, `evaluate`"),
    ("ragas", "collections", "ragas, collections"),
    ("deepeval", "default", "deepeval, default"),
    ("deepeval", "ignore-errors", "deepeval, `ignore_errors`"),
)
"""Peers, their forms, and what the table calls them."""


def heading(weather: Weather, peers: Iterable[str]) -> Iterator[str]:
    """What was run, with what."""
    yield f"## A fault run: {weather.share:.0%} of all calls go wrong"
    yield ""
    yield f"Command: `{shlex.join(['python', *sys.argv])}`  "
    versions = [f"labeler {labeler.__version__}", *(f"{peer} {version(peer)}" for peer in peers)]
    yield (
        f"Date: {datetime.now(UTC):%Y-%m-%d}, {', '.join(versions)}, "
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, "
        f"seed {weather.seed}, {weather.latency:g} s before each answer  "
    )
    yield f"Faults, each as likely: {', '.join(weather.kinds)}  "
    yield ""


def compared(
    tool: str, run: Callable[[Work, Weather], Run], work: Work, weather: Weather, *, twice: bool
) -> Compared:
    """Run a tool on a clean server, on a faulty one, and if asked on a clean one again."""
    fair = weather._replace(share=0.0)
    clean, faulty = run(work, fair), run(work, weather)
    return Compared(tool, work, clean, faulty, run(work, fair) if twice else None)


def run_labeler(options: argparse.Namespace, weather: Weather) -> list[Compared]:
    """Run labeler with each number of requests in flight."""
    rows = made_up(options.records, options.seed)
    works = [Work(rows, concurrency, options.timeout) for concurrency in options.concurrency]
    return [compared("labeler", label_run, work, weather, twice=False) for work in works]


def run_peers(
    options: argparse.Namespace, weather: Weather, notes: list[str]
) -> Iterator[Compared]:
    """Run each peer; one that does not run becomes a note."""
    work = Work(
        made_up(options.peer_records, options.seed), options.peer_concurrency, options.peer_timeout
    )
    for name, form, title in FORMS:
        print(f"{title} …", file=sys.stderr)
        peer = Peer(name, form, options.cache)
        try:
            found = compared(title, peer.run, work, weather, twice=True)
        except (OSError, subprocess.SubprocessError) as error:
            said = str(getattr(error, "stderr", None) or error).strip().splitlines()
            notes.append(f"{title} did not run: {said[-1] if said else type(error).__name__}  ")
            continue
        if found.faulty.errors:
            errors = "; ".join(f"{error} ({n})" for error, n in found.faulty.errors.most_common())
            notes.append(f"{title}, errors in the faulty run: {errors}  ")
        yield found


def arguments() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--records", type=int, default=2_000)
    add("--concurrency", type=int, nargs="+", default=[16, 64], help="of labeler's runs")
    add("--timeout", type=float, default=2.0, help="seconds for one of labeler's requests")
    add("--without-peers", action="store_true")
    add("--peer-records", type=int, default=50)
    add("--peer-concurrency", type=int, default=16)
    add("--peer-timeout", type=float, default=10.0, help="seconds for one of a peer's requests")
    add("--cache", type=Path, default=cache_folder(), help="where peers are installed: 1 GB")
    add("--share", type=float, default=0.1, help="of the calls that go wrong")
    add("--seed", type=int, default=1)
    add("--latency", type=float, default=0.2, help="seconds before each answer")
    return parser


def main() -> None:
    """Run everything and print the table."""
    options = arguments().parse_args()
    weather = Weather(options.share, options.seed, options.latency)
    notes: list[str] = []
    found = run_labeler(options, weather)
    names = [] if options.without_peers else list(dict.fromkeys(name for name, _, _ in FORMS))
    if names:
        found += run_peers(options, weather, notes)
    print("\n".join([*heading(weather, names), *report(found, notes)]))


if __name__ == "__main__":
    main()
