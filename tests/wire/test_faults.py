"""The table of faults: what a server does, and what comes of it, as the docs promise."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from labeler.errors import FatalJudgeError
from labeler.judges.openai import sender
from labeler.judges.task import MODES
from labeler.store import MemoryStore
from reliability_faults import SHAPES
from wire.behaviors import Behavior, error, late
from wire.calls import Call
from wire.damaged import behind, followed
from wire.dialects import nested
from wire.fault_table import ALL_ROWS, LIMIT, TABLE, Row, Steps, answered
from wire.faults import dice_of
from wire.provider import Provider
from wire.runs import KEY, reasons, records, rows, run
from wire.server_rows import SERVER_ROWS

ROOT = Path(__file__).parents[2]
ROWS = {**TABLE, **SERVER_ROWS}
COMPLETION = "POST /v1/chat/completions"


class Documented(NamedTuple):
    """A line of the table of ``docs/failures.md``."""

    reason: str
    what: str
    stops: bool
    """It ends the run."""
    lasts: bool
    """It is stored, and asked again only on ``--retry-failed``."""

    def is_of(self, outcome: str, message: str) -> bool:
        """Return True if the line describes an outcome of the table."""
        what = re.escape(self.what).replace(r"\*the\ option\*", r"\w+").replace("180", r"[\d.]+")
        return outcome.split() == ["stop"] * self.stops + [self.reason] and bool(
            re.search(what, message)
        )


@cache
def documented() -> tuple[Documented, ...]:
    """The lines of the page, the longest description first."""
    text = (ROOT / "docs/failures.md").read_text()
    lines = text.partition("<!-- begin failures -->")[2].partition("<!-- end")[0].splitlines()[3:]
    cells = (re.split(r" \| ", line.strip("| ")) for line in lines)
    found = [
        Documented(reason.strip("`"), what, "stops" in does, "retry-failed" in again)
        for reason, what, _, does, again, _ in cells
    ]
    return tuple(sorted(found, key=lambda line: -len(line.what)))


def line_of(row: Row) -> Documented:
    """The line of the page that a row shows."""
    return next(line for line in documented() if line.is_of(row.outcome, row.says))


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test reaches soon."""
    monkeypatch.setattr(sender, "LARGEST_BODY", LIMIT)
    monkeypatch.setattr(sender, "MOST_CONTAINERS", LIMIT // 4)


@cache
def first_rows() -> frozenset[str]:
    """A row for each line of the page, and one that gets its label."""
    found = {ROWS[name].outcome == "label" or line_of(ROWS[name]): name for name in reversed(ROWS)}
    return frozenset(found.values())


def scripted(steps: Steps) -> Iterator[str | Behavior]:
    """The behaviors of a row, the last one without end."""
    listed = steps.split() if isinstance(steps, str) else steps
    each: Sequence[str | Behavior] = listed if isinstance(listed, list | tuple) else [listed]
    return itertools.chain(each, itertools.repeat(each[-1]))


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", ROWS)
def test_a_fault_that_a_row_meets(name: str) -> None:
    """This outcome, with these requests and pauses.

    One row for each line of the page is asked again as the page says.
    """
    row, paused, is_broken, store = ROWS[name], list[float](), [True], MemoryStore()
    steps, given = scripted(row.steps), rows(2)
    given[1]["documents"].append("Item 1 is a lamp. " * 200)

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    def script(call: Call) -> str | Behavior | None:
        return next(steps) if is_broken[0] and "Item 1 " in call.raw.decode() else None

    settings = {"sleep": pause, "max_attempts": 3, "timeout": 5.0, "output_mode": "strict"}
    asking: dict[str, Any] = {"concurrency": 1, "max_outage": 0, "store": store}
    asking["judge"] = {**settings, **row.judge}
    with Provider(script) as provider:
        try:
            outcome = run(provider, given, **asking)[1]
        except FatalJudgeError as stopped:
            ended, message = f"stop {stopped.reason}", str(stopped)
        else:
            ended, message = reasons([outcome])[0], getattr(outcome, "message", "")
            assert KEY not in outcome.model_dump_json()
        assert (ended, provider.routes[COMPLETION] - 1) == (row.outcome, row.requests), message
        assert row.says in message
        assert KEY not in message
        is_broken[0] = False
        if name in first_rows():
            again = run(provider, given, **asking)
            asked = provider.routes[COMPLETION] - 1 - row.requests
            lasts = row.outcome != "label" and line_of(row).lasts
            assert asked == (row.outcome != "label" and not lasts)
            assert reasons(again)[1] == (row.outcome if lasts else "label")
            if lasts:
                assert reasons(run(provider, given, retry_failed=True, **asking)) == ["label"] * 2
    assert len(paused) == len(row.waits)
    for n, (wait, least) in enumerate(zip(paused, row.waits, strict=True)):
        assert least <= wait <= least + 2**n


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("name", ALL_ROWS)
def test_a_fault_that_all_rows_meet(name: str) -> None:
    """It ends so after few requests, and once it is repaired, rows get their labels."""
    end, is_broken, store = ALL_ROWS[name], [True], MemoryStore()
    (shape,) = (shape for shape in SHAPES if shape.name == name)

    def script(call: Call) -> Behavior | None:
        is_met = (
            dice_of(1, call, 0).random() < shape.share
            if shape.calls is None
            else call.number <= shape.calls
        )
        return shape.fault if is_met and is_broken[0] else None

    provider = Provider(
        script,
        at={
            "GET /v1/models/{id}": lambda _: (shape.lookup and is_broken[0] and shape.fault) or None
        },
        latency=lambda _: shape.latency / 10 if is_broken[0] else 0.0,
    )
    judge = {"output_mode": "strict", **end.judge}
    away = {"base_url": "http://127.0.0.1:9/v1"} if shape.fault is None else {}
    with provider:
        try:
            given = rows(50 if shape.share < 1 or shape.calls else 120)
            ends = Counter(reasons(run(provider, given, judge={**judge, **away}, store=store)))
        except FatalJudgeError as stopped:
            ends = Counter([f"stop {stopped.reason}"])
        met = ends[end.outcome] if shape.share < 1 else 1
        good = ends["label"] if shape.share < 1 or shape.calls else 0
        assert set(ends) - {"label"} == {end.outcome} - {"label"}
        assert provider.routes[COMPLETION] - good <= end.most * met
        is_broken[0] = False
        again = run(provider, rows(6), judge=judge, store=store, retry_failed=shape.share < 1)
        assert reasons(again) == ["label"] * 6


# The pages

ELSEWHERE = {
    *("there is no API key", "the server's certificate is not trusted"),  # test_networks
    *("cannot connect to the server", "the proxy does not connect to the server"),  # the same
    "the answers do not fit the questions",  # test_decision_judge
    "the server answers no record",  # test_runs
    "the run was stopped before it could be asked again",  # test_openai_judge
    "no further request was sent",  # test_money
    # Faults of docs/measured/reliability.md
    *("quota at Gemini, 429 with `retryDelay`, ends", "answers above the cap, with a budget"),
}
"""What no row of the table can show."""


def test_every_line_of_the_pages_is_shown() -> None:
    """By a row of the table, or by a test of a run."""
    shown = {line_of(row) for row in ROWS.values() if row.outcome != "label"}
    lines = {line.what for line in documented() if line not in shown}
    assert lines | {shape.name for shape in SHAPES if shape.name not in ALL_ROWS} == ELSEWHERE


_ROUTED = {"raw": '{"error":{"message":"Invalid grammar request"}}'}
REFUSALS: dict[str, Behavior] = {
    "llama.cpp": error(400, None, "failed to parse grammar"),
    "llama.cpp, its own fault": error(500, "server_error", "Failed to initialize: Grammar error"),
    "vLLM": error(400, None, "Invalid grammar request with cache hit: False"),
    "xgrammar": error(400, None, "Grammar error: Unimplemented keys: ['minItems']"),
    "Gemini": error(400, None, "The schema produces a constraint that has too many states"),
    "outlines": error(422, None, "Unsupported keyword: pattern"),
    "SGLang": error(500, None, "Failed to compile the JSON schema"),
    "Ollama": error(500, None, "failed to load model vocabulary required for format"),
    "Anthropic": error(400, None, "output_format.schema: 'minItems' other than 0 or 1"),
    "another": error(400, None, "schema is too complex to be compiled"),
    "OpenRouter": nested(400, "Provider returned error", 400, metadata=_ROUTED),
}


@pytest.mark.parametrize("server", REFUSALS)
def test_a_schema_that_is_refused_in_any_words_is_asked_for_in_the_next_mode(server: str) -> None:
    """By one more request, and every row gets its label."""
    with Provider(
        lambda call: REFUSALS[server] if call.mode == "strict" else None, modes=MODES
    ) as provider:
        outcomes = run(provider, rows(3), concurrency=1)
    assert reasons(outcomes) == ["label"] * 3
    assert [call.mode for call in provider.calls] == ["strict", *["schema"] * 3]


# Connections


STRAYS = {
    "twice at once": followed(seconds=0),
    "twice": followed(),
    "twice, later": followed(seconds=0.1),
    "behind a 504": behind(504, 0.02),
    "behind a 503, later": behind(503, 0.6),
    "behind a 429": behind(429, 0.02),
    "behind an error in a 200": behind(200, 0.02),
    "another response": followed(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\n\r\n{}"),
    "a part of a response": followed(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "a line break": followed(b"\r\n"),
    "anything": followed(b"anything\r\n\r\n"),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_every_label_belongs_to_its_row(stray: str) -> None:
    """Whatever a server sends after an answer, with many requests over few connections."""
    dice, count = random.Random(1), itertools.count(1)  # noqa: S311 - latencies

    def script(_: Call) -> Behavior:
        well = late(dice.uniform(0.005, 0.03), answered())
        return STRAYS[stray] if next(count) % 20 == 10 else well

    with Provider(script) as provider:
        outcomes = run(provider, rows(40), concurrency=8)
    assert reasons(outcomes) == ["label"] * 40
    named = [outcome.label.relevance_explanation for outcome in records(outcomes)]
    assert named == [f"Item {n} is a lamp." for n in range(40)]


@pytest.mark.parametrize(("stray", "most"), [(None, 30), (followed(seconds=0), 61)])
def test_connections_are_used_again(stray: Behavior | None, most: int) -> None:
    """Those of good answers, after a short rest, unless a server has sent more than an answer."""
    script = lambda call: stray if call.number == 5 else None  # noqa: E731
    provider, opened = Provider(script, latency=0.05), list[None]()
    connect = provider._connect
    provider._connect = lambda: opened.append(None) or connect()  # type: ignore[func-returns-value,method-assign]
    with provider:
        assert reasons(run(provider, rows(60), concurrency=2)) == ["label"] * 60
    assert most - 30 < len(opened) <= most
