"""The comparison with other tools: what its server counts, and the table's arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from labeler.calculators import METRICS, tally
from labeler.judges.tokens import TokenCounter
from peers import undefined
from peers.counting import spent, times_sent
from peers.records import made_up, with_references
from peers.results import SHARED, Installed, Plan, Reuse, Run, Spent, Tool
from peers.table import figures, rows_of
from wire.calls import COMPLETIONS, EMBEDDINGS, Call

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
}
SENT = Spent(
    calls=100,
    embeddings=50,
    prompt=100_000,
    schema=10_000,
    cached=60_000,
    completion=5_000,
    contexts=2.0,
    models={"m": 100},
)
REUSE = Reuse(
    records=10, metrics=5, first=20, rerun=0, added=5, threshold=None, other_model=0, whole=25
)


def call(said: str, path: str = COMPLETIONS, **more: Any) -> Call:
    """A request with one message."""
    body = {"model": "m", "messages": [{"role": "user", "content": said}], **more}
    return Call(1, "POST", path, {}, json.dumps(body).encode())


def run(seconds: float = 2.0, cpu: float = 0.5, **changed: Any) -> Run:
    """A run of fifty records."""
    return Run(50, seconds, cpu, SENT._replace(**changed))


def tool(**changed: Any) -> Tool:
    """A tool that asks twice a record."""
    rounds = [run(2.0), run(1.0), run(4.0)]
    made = Tool("it", SHARED, rounds, run(), REUSE, Installed(300.4, 55, 1.25))
    return replace(made, **changed)


def told(one: Tool, *others: Tool) -> dict[str, list[str]]:
    """The cells of the table, by the name of their line."""
    lines = [line for line in rows_of([one, *others], figures(Plan())) if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


# -- the server -----------------------------------------------------------------------------------


def test_the_times_that_the_context_is_sent_are_averages_over_records() -> None:
    """Once whole, and once by single documents, in any number of calls."""
    rows = with_references(made_up(2))
    texts = [text for row in rows for text in row["documents"]]
    assert times_sent([call(" ".join(texts)), *map(call, texts)], rows) == 2
    assert times_sent([call(" ".join(rows[0]["documents"]))], rows) == 0.5


def test_calls_tokens_and_embeddings_are_counted() -> None:
    """Of the prompt, the schema beside it is told apart; embeddings are no calls."""
    rows, counter = with_references(made_up(1)), TokenCounter()
    asked: dict[str, Any] = {"response_format": {"json_schema": {"schema": SCHEMA}}}
    plain = call("Is it so?")
    requests = [plain, call("Is it so?", **asked), call("Is it so?", EMBEDDINGS)]
    found = spent(requests, rows, counter)
    assert (found.calls, found.embeddings, found.models) == (2, 1, {"m": 2})
    frames = 4 + 3
    assert found.prompt == 2 * (counter.count("Is it so?") + frames) + found.schema
    assert found.schema > 0


def test_a_prefix_that_came_before_could_be_read_from_a_prompt_cache() -> None:
    """From 1,024 tokens on, and only with the same model."""
    rows, counter = with_references(made_up(1)), TokenCounter()
    long = "one two three four five six " * 400
    first, again = call(f"{long} a"), call(f"{long} b")
    cached = spent([first, again], rows, counter).cached
    assert 1_024 <= cached <= counter.count(long)
    assert spent([first, call(f"{long} b", model="other")], rows, counter).cached == 0
    assert spent([call("short"), call("short")], rows, counter).cached == 0


# -- the table ------------------------------------------------------------------------------------


def test_counts_are_told_for_one_record() -> None:
    """Fifty records share what was sent."""
    cells = told(tool())
    assert cells["LLM calls a record"][:3] == ["2", "≤ 1", "**no**"]
    assert cells["embedding calls a record"][0] == "1"
    assert cells["prompt tokens a record, schemas included"][:3] == ["2,000", "≤ 2,500", "yes"]
    assert cells["… of these, not in a prefix sent before"][0] == "800"
    assert cells["completion tokens a record"][0] == "100"
    assert cells["times the context is sent"][0] == "2"


# -- the tools ------------------------------------------------------------------------------------


def test_the_table_of_undefined_values_is_that_of_the_definitions() -> None:
    """Each row is undefined here, and a definition named in a cell has the value of the cell."""
    page = undefined.PAGE.read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in page.splitlines()]
    rows = [cells for cells in lines if len(cells) > 2 and cells[1] in undefined.CASES]
    assert [(cells[0].strip("|` "), cells[1]) for cells in rows] == list(undefined.ROWS)
    named = 0
    for metric, case, *cells in rows:
        counted = tally(undefined.CASES[case].label)
        assert METRICS[metric.strip("|` ")].compute(counted).undefined
        for cell in cells:
            value, parenthesis, id_ = cell.partition(" (`")
            if parenthesis:
                named += 1
                own = METRICS[id_.strip("`)| ")]
                if value == undefined.BY_CLAIMS:
                    other = undefined.CASES[undefined.OTHERWISE[case]]
                    assert own.compute(counted).value != own.compute(tally(other.label)).value, id_
                else:
                    assert own.compute(counted).value == float(value), id_
    assert named > len(undefined.ROWS) // 2
