"""The comparison with other tools: what its server counts, and the table's arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labeler.calculators import METRICS, tally
from labeler.judges.tokens import TokenCounter
from peers import environments, undefined
from peers.counting import RESPONSES, answers, as_chat, marks_of, spent, times_sent
from peers.measuring import Bench, Turn
from peers.records import made_up, with_references
from peers.results import SHARED, Installed, Plan, Reuse, Run, Spent, Tool
from peers.subjects import EXTRAS, TOOLS
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


def test_a_list_has_as_many_items_for_every_tool() -> None:
    """Whether the schema comes as a response format or to the other endpoint."""
    asked: dict[str, Any] = {"response_format": {"json_schema": {"schema": SCHEMA}}}
    assert len(json.loads(answers(call("Say.", **asked))[0])["claims"]) == 4
    text = {"format": {"type": "json_schema", "schema": SCHEMA}}
    other = call("", RESPONSES, input=[{"role": "user", "content": "Say."}], text=text)
    assert answers(as_chat(other)) == answers(call("Say.", **asked))


def test_what_is_asked_for_in_words_is_answered_in_lines() -> None:
    """Claims as triplets, and a verdict for each; anything else gets a digit."""
    (triplets,) = answers(call('Write ("subject", "predicate", "object").'))
    (verdicts_,) = answers(call("One of ['Entailment', 'Neutral', 'Contradiction']."))
    assert len(triplets.splitlines()) == len(verdicts_.splitlines()) == 4
    assert answers(call("How many?"))[0].isdigit()


def test_the_context_is_told_by_sentences_that_stand_nowhere_else() -> None:
    """A response repeats sentences of documents, and must not count as the context."""
    rows = with_references(made_up(5))
    assert [len(marks) for marks in marks_of(rows)] == [4] * 5
    quoted = " ".join(row["response"] + row["reference"] for row in rows)
    assert not [mark for marks in marks_of(rows) for mark in marks if mark in quoted]


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


def test_times_are_medians_and_cpu_is_told_by_calls_and_by_records() -> None:
    """Of the rounds the middle one; CPU time is that of the longer run."""
    cells = told(tool())
    assert cells["wall for 50 records, s ⏱"][:3] == ["2", "≤ 1.2", "**no**"]
    assert cells["… shortest and longest round ⏱"][0] == "1.00 to 4.00"
    assert cells["CPU s per 1,000 LLM calls ⏱"][:3] == ["5", "≤ 6", "yes"]
    assert cells["CPU ms a record ⏱"][0] == "10"


def test_reuse_is_told_in_calls_a_record() -> None:
    """A tool without thresholds has none to change."""
    cells = told(tool())
    assert cells["… for the five metrics that ragas, deepeval and labeler have"][0] == "2"
    assert cells["calls a record: the same run again"][:3] == ["0", "0", "yes"]
    assert cells["… with one metric more"][:3] == ["0.5", "0", "**no**"]
    assert cells["… with another threshold"][:3] == ["n/a", "0", ""]


@pytest.mark.parametrize(("calls", "served"), [(0, "yes"), (10, "in part"), (25, "no")])
def test_answers_of_the_old_model_are_served_where_the_new_one_is_not_asked(
    calls: int, served: str
) -> None:
    """All calls, some or none are made for another judge model."""
    cells = told(tool(reuse=REUSE._replace(other_model=calls)))
    assert cells["the old model's answers served for the new one's"][0] == served


def test_a_tool_that_lacks_a_figure_says_so() -> None:
    """One without a store and an environment of its own, beside the first."""
    cells = told(tool(), tool(reuse=None, installed=None))
    assert (cells["packages"][0], cells["packages"][-1]) == ("55", "n/a")
    assert cells["calls a record: the same run again"][-1] == "n/a"


def test_what_makes_figures_doubtful_is_told() -> None:
    """Missing values, and a run that an error ended."""
    broken = run()._replace(missing=3, ended_by="TimeoutError")
    lines = list(rows_of([tool(), tool(name="other", rounds=[broken])], figures(Plan())))
    assert f"other: {', '.join(SHARED)} (3 values are missing; ended by TimeoutError)  " in lines


# -- the tools ------------------------------------------------------------------------------------


def test_a_metric_is_left_to_be_added() -> None:
    """Every tool that is asked for metrics begins with fewer, those that are shared if it can."""
    asked = [one for one in (*TOOLS, *EXTRAS) if one.metrics]
    assert asked
    assert all(set(one.fewer) < set(one.metrics) and set(one.fewer) <= set(SHARED) for one in asked)


def test_a_tool_runs_in_its_own_process_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its output and what the server saw of it become one run."""

    def stub(_: Turn, options: dict[str, Any]) -> None:
        lines = [
            {"seconds": 1.5, "cpu": 0.5, "ended_by": None},
            {"id": "a", "values": {"x": 1.0, "y": None}, "errors": {}},
        ]
        Path(options["out"]).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    monkeypatch.setattr(Turn, "_call", stub)
    plan = Plan(latency=0.0)
    found = Turn(Bench(TOOLS[0], tmp_path / "python", plan), tmp_path).run(2)
    assert (found.records, found.seconds, found.cpu, found.missing) == (2, 1.5, 0.5, 1)
    assert found.spent.calls == 0


@pytest.mark.parametrize("peer", sorted({one.peer for one in (*TOOLS, *EXTRAS)} - {"labeler"}))
def test_every_tool_is_pinned(peer: str) -> None:
    """By its own name or that of its core."""
    assert environments.version(peer).count(".") == 2


def test_an_environment_is_measured_without_its_tools(tmp_path: Path) -> None:
    """Byte code and pip are in every one."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("one", "one-1.dist-info", "pip", "pip-25.dist-info"):
        (packages / name).mkdir(parents=True)
        (packages / name / "file.py").write_bytes(b"x" * 1_000)
    (packages / "one" / "file.pyc").write_bytes(b"x" * 1_000)
    assert environments.size(tmp_path / "bin" / "python") == (0.002, 1)


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
