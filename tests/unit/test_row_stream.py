"""The rows of a run: read once, checked before the first request, counted where that is exact."""

from __future__ import annotations

import gzip
import io
import json
import random
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import open_rows
from labeler.data.formats import read_file
from labeler.data.options import RowsOptions
from labeler.data.rows import FIRST_ROWS, Row, Rows, RowStream
from labeler.errors import BadRows, UsageError
from labeler.labels.record import LabelFailure
from labeler.plugins.scores import Criterion
from labeler.store import MemoryStore
from support.command import Command
from support.fakes import CountingJudge, agreeable
from support.rows import only, write_csv, write_lines
from support.watching import Watch

LATE = FIRST_ROWS + 50


def row(n: int, **changes: object) -> dict[str, Any]:
    """A row that can be labeled."""
    return {"id": f"r{n}", "question": f"Is it {n}?", "documents": [f"It is {n}."],
            "response": f"It is {n}.", **changes}  # fmt: skip


def test_files_are_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a run does with them: labels, votes, blind relevance, and a run again."""
    path, reads = write_lines(tmp_path / "rows.jsonl", [row(n) for n in range(20)]), []
    whole = Rows.__iter__

    def counted(self: Rows) -> Iterator[Row]:
        reads.append(self)
        return whole(self)

    monkeypatch.setattr(Rows, "__iter__", counted)
    given: list[dict[str, Any]] = [{}, {}, {"repeat": 3}, {"relevance": "blind"}]
    for number, options in enumerate(given, start=1):
        found = labeler.label(path, judge="embedded", store=tmp_path / "s", **options)
        assert [one.id for one in found] == [f"r{n}" for n in range(20)]
        assert len(reads) == number
    labeler.estimate(path, judge=CountingJudge(), store=tmp_path / "s")
    assert len(reads) == len(given) + 1


@pytest.mark.parametrize(
    "odd",
    [{"documents": 7}, {"question": None}, {"id": "r1"}],
    ids=["wrong type", "missing field", "conflicting id"],
)
def test_a_late_row_that_cannot_be_read_is_a_failure_in_its_place(odd: Mapping[str, Any]) -> None:
    """Rows before and after it are labeled."""
    judge = CountingJudge()
    given = [row(n) for n in range(LATE)]
    given[-2] = {**row(LATE - 2), **odd}
    found = labeler.label(given, judge=judge, store=MemoryStore())
    assert [n for n, one in enumerate(found) if isinstance(one, LabelFailure)] == [LATE - 2]
    assert len(judge.asked) == LATE - 1


LACKING = [{"id": str(n), "question": "q", "passages": ["D."], "response": "R."} for n in range(20)]


@pytest.mark.parametrize(
    ("rows", "options", "says"),
    [
        ("{\n" * LATE, {}, r"none of the first 100 rows can be read \(invalid_json\), so nothing"),
        ([{"question": "q", "response_time": "1"}] * LATE, {}, "none of .*'response': 'COLUMN'"),
        ("", {}, "has no rows, so nothing was sent"),
        ([row(n) for n in range(LATE)], {"columns": {"reference": "gold"}}, "no row has 'gold'"),
        (LACKING, {}, r"none of 20 rows has 'documents'.*Pass columns={'documents': 'passages'}"),
        (
            [row(n) for n in range(2)],
            {"profile": "reference"},
            r"none of 2 rows has 'reference'.*row 1 has id, question|.*:1 has id, question",
        ),
    ],
    ids=["no JSON", "no column", "empty", "a named column", "another name", "what a profile needs"],
)
def test_a_fault_of_all_first_rows_stops_a_run_unasked(
    tmp_path: Path, rows: Any, options: dict[str, Any], says: str
) -> None:
    """Whatever stands behind them; the error names what is there and the remedy."""
    path, judge = tmp_path / "rows.jsonl", CountingJudge()
    path.write_text(rows) if isinstance(rows, str) else write_lines(path, rows)
    with pytest.raises(UsageError, match=says):
        labeler.label(path, judge=judge, store=MemoryStore(), **options)
    assert (judge.asked, judge.closed) == ([], 1)


def test_fewer_unreadable_first_rows_are_failures(tmp_path: Path) -> None:
    """One good row among them is enough."""
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([*["{"] * (FIRST_ROWS - 1), json.dumps(row(1))]))
    found = labeler.label(path, judge=CountingJudge(), store=MemoryStore())
    assert [one.kind for one in found] == ["failure"] * (FIRST_ROWS - 1) + ["label"]


def test_labels_before_an_unreadable_place_are_yielded_and_stored(tmp_path: Path) -> None:
    """A file that ends in its middle stops the run there."""
    path = tmp_path / "rows.jsonl.gz"
    noise = random.Random(1)  # noqa: S311 - large and hard to compress: the file has many blocks
    given = (row(n, noise=noise.randbytes(4_000).hex()) for n in range(400))
    packed = gzip.compress("".join(json.dumps(one) + "\n" for one in given).encode())
    path.write_bytes(packed[: len(packed) // 2])
    store, found = MemoryStore(), list[Any]()
    with pytest.raises(UsageError, match="cannot read"):
        found.extend(labeler.iter_labels(path, judge="embedded", store=store))
    assert 0 < len(found) <= len(store)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet", "rows.csv", "rows.jsonl.gz", "-"])
def test_the_total_is_known_where_it_is_exact(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and rows are counted; other files have no total, and all rows are labeled."""
    given, watch = [row(n) for n in range(7)], Watch()
    text = ("\n\n".join(map(json.dumps, given)) + "\n  \n").encode()
    path = tmp_path / name
    if name == "rows.parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(given), path)
    elif name == "rows.csv":
        write_csv(path, given)
    elif name == "-":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        path = Path(name)
    else:
        path.write_bytes(gzip.compress(text) if ".gz" in name else text)
    labels = labeler.label(path, judge="embedded", store=MemoryStore(), on_event=watch)
    assert watch.total == (None if name in {"rows.csv", "rows.jsonl.gz"} else 7)
    assert len(labels) == len(watch.results) == 7


def test_what_is_reported_of_rows_is_right_at_the_end() -> None:
    """A notice that counts rows comes again if more rows have it."""
    told: list[str] = []
    thinking = [row(n, response=f"<think>Hm.</think>It is {n}.") for n in range(LATE)]
    assert len([*RowStream(open_rows(thinking), notice=told.append)]) == LATE
    assert [text.partition(" rows")[0] for text in told] == [str(FIRST_ROWS), str(LATE)]
    told.clear()
    assert len([*RowStream(open_rows(thinking[:3]), notice=told.append)]) == 3
    assert len(told) == 1


def test_first_rows_are_held_no_longer_than_they_are_read() -> None:
    """And no more of them than fit."""
    large = [row(n, documents=["x" * (2 << 20)]) for n in range(50)]
    stream = RowStream(open_rows(large))
    assert 0 < len(stream.first) < 40
    assert sum(1 for _ in stream) == 50
    assert stream.first == []


TALK = [["user", "Q?"], ["assistant", "D is E."]]
TURN = {
    "prompt": {"content": [{"text": "Q?"}]},
    "referenceResponses": [{"content": [{"text": "Z."}]}],
    "output": {
        "text": "D is E.",
        "retrievedPassages": {"retrievalResults": [{"content": {"text": "D is E."}}]},
    },
}


def cells(names: str, *values: object) -> dict[str, Any]:
    """A row of these columns."""
    return dict(zip(names.split("|"), values, strict=True))


MEANT: dict[str, dict[str, Any]] = {
    "--preset=openai_messages --map documents=sources": {"messages": TALK, "sources": ["D is E."]},
    "--map documents=knowledge, --map response=answer --map reference=right_answer": cells(
        "question|knowledge|answer|right_answer", "Q?", "D is E.", "D is E.", "Z."
    ),
    "--map documents=context --map response=answer --map reference=ground_truth": cells(
        "question|context|answer|ground_truth|answer_relevancy|context_precision",
        *("Q?", ["D is E."], "D is E.", "Z.", 0.5, 1.0),
    ),
    "--map question=prompt --map documents=passages --map response=completion "
    "--map reference=gold": cells(
        "prompt|passages|completion|gold|completion_tokens", "Q?", ["D is E."], "D is E.", "Z.", 7
    ),
    "--map question=Frage --map documents=Kontext --map response=Antwort "
    "--map 'reference=Erwartete Antwort'": cells(
        "Frage|Kontext|Antwort|Erwartete Antwort", "Q?", ["D is E."], "D is E.", "Z."
    ),
    "--map 'question=问题' --map 'documents=上下文' --map 'response=回答'": cells(
        "问题|上下文|回答", "Q?", ["D is E."], "D is E."
    ),
    "--map question=inputs.question --map documents=outputs.documents "
    "--map response=outputs.answer --map reference=reference_outputs.answer": {
        "inputs": {"question": "Q?"},
        "outputs": {"answer": "D is E.", "documents": ["D is E."]},
        "reference_outputs": {"answer": "Z."},
    },
    "--map 'question=conversationTurns[0].prompt.content' "
    "--map 'documents=conversationTurns[0].output.retrievedPassages' "
    "--map 'response=conversationTurns[0].output.text' "
    "--map 'reference=conversationTurns[0].referenceResponses'": {"conversationTurns": [TURN]},
    "--map question=inputs.question --map documents=outputs.contexts "
    "--map response=outputs.answer": {
        "inputs": '{"question": "Q?"}',
        "outputs": '{"answer": "D is E.", "contexts": [{"text": "D is E."}]}',
    },
    "--map documents=docs --map response=pred_answer --map reference=answer": cells(
        "question|answer|docs|evidence|pred_answer|negative_passages",
        *("Q?", "Z.", [{"title": "T", "text": "D is E.", "output": "E."}], [], "D is E.", ["F"]),
    ),
    "--map question=query --map documents=hits --map 'response=choices[0]'": {
        "query": "Q?",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "D is E."}}],
        "hits": [{"title": "T", "snippet": "D is E."}],
    },
    "--map question=user_request --map documents=quotes --map response=claim "
    "--map reference=answers.text": cells(
        "full_prompt|user_request|document|evidence|quotes|claim|answers",
        *("E. Q?", "Q?", "", [[1, 2]], [{"text": "D is E."}], "D is E.", {"text": ["Z."]}),
    ),
    "--map question=qestion": {"qestion": "Q?", "documents": ["D is E."], "response": "D is E."},
    "--map question=q --map documents=ctxs --map response=prediction "
    "--map reference=answers": cells(
        "q|ctxs|prediction|answers",
        *("Q?", [{"title": "T", "text": "D is E."}], "D is E.", ["Z.", "Zed."]),
    ),
}


@pytest.mark.parametrize("options", MEANT)
def test_rows_that_fail_alike_are_mended_by_one_command(
    options: str, tmp_path: Path, labeler_command: Command
) -> None:
    """The message has all mappings, by the meaning of names, and they work as they are named."""
    given, path = MEANT[options], tmp_path / "rows.jsonl"
    command = ("label", path, "--judge", "embedded", "-o", tmp_path / "labels.jsonl")
    write_lines(path, [dict(list(given.items())[:2]), given])
    code, _, err = labeler_command(*command)
    assert (code, f"Pass {options}" in err) == (2, True), err
    write_lines(path, [given])
    code, _, err = labeler_command(*command, *shlex.split(options))
    assert code == 0, err


def test_the_command_stops_before_it_touches_the_output(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Exit code 2, the older labels stay, and all columns are named."""
    lines = [{"user_input": "Q?", "passages": ["D."], "response": "R."}] * 3
    rows, labels = (
        write_lines(tmp_path / "rows.jsonl", [*lines, "no object"]),
        tmp_path / "labels.jsonl",
    )
    labels.write_text("good\n")
    code, _, err = labeler_command("label", rows, "--judge", "embedded", "-o", labels)
    assert (code, labels.read_text()) == (2, "good\n")
    assert "none of 3 rows has 'question' (nor 'documents')" in err
    assert "--map question=user_input --map documents=passages" in err


def test_documents_in_one_text_stop_the_run_with_the_separator() -> None:
    """The remedy works as it is named; DeepEval writes such files."""
    of_deepeval = {"input": "Q?", "actual_output": "R.", "retrieval_context": "D is E.|F\nis G."}
    plain = {"question": "Q?", "documents": "One.\n\nTwo.\n\n", "response": "R."}
    for given, separator, documents in (
        (of_deepeval, "|", ("D is E.", "F\nis G.")),
        (plain, r"\n\n", ("One.", "Two.")),
    ):
        with pytest.raises(BadRows, match=r"split_documents=SEP, .* DeepEval's '\|'"):
            labeler.label([given], judge="embedded", store=MemoryStore())
        assert only([given], split_documents=separator).documents == documents


def test_a_criterion_that_shows_references_stops_without_any() -> None:
    """A profile that does without runs."""
    rows, kept = [row(n) for n in range(2)], MemoryStore()
    tone = Criterion(name="tone", criteria="Is it like it?", shows=("reference",))
    with pytest.raises(BadRows, match="'reference'"):
        labeler.score(rows, judge=CountingJudge(agreeable), criteria=tone, store=kept)
    assert labeler.label(rows, judge="embedded", profile="auto", store=kept)[0].kind == "label"


def test_a_part_of_the_rows_may_lack_what_other_parts_have(tmp_path: Path) -> None:
    """Only whole inputs are judged by their rows."""
    path = write_lines(tmp_path / "rows.jsonl", [{"id": "1"}])
    part = RowsOptions().open_part(lambda: read_file(str(path)))
    assert len([*RowStream(part)]) == 1
    with pytest.raises(BadRows):
        RowStream(open_rows(path))
