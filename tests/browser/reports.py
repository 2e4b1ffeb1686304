"""Reports for tests in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.report import write_report
from labeler.sentences.example import letters
from support.labeled import compared, expects, output, record, reference_output, says

SIZE = 120
"""Labeled rows of the small report, besides the remarkable ones and :data:`FAILED`."""
FAILED = 2
METRICS = "relevance,completeness,adherence,hallucination_rate,faithfulness"
"""Few, so that a summary is soon drawn."""
REMARKABLE = ("contradicted", "compared", "hidden-word")
TOTAL = SIZE + len(REMARKABLE) + FAILED


def small_report(path: Path) -> Path:
    """Three pages of records in two subsets; a few of them are remarkable."""
    [written] = write_report(_outcomes(), path, name="towers.jsonl", by="domain", metrics=METRICS)
    return written


def large_report(path: Path, size: int) -> Path:
    """Very many rows; one in fifty is labeled, which takes the time."""
    kinds = [plain(n) for n in range(30)]
    rows = (
        _changed(kinds[n % 30], id=f"row-{n:05}", question=f"How high is tower {n}?")
        if n % 50 == 49
        else _refused(n)
        for n in range(size)
    )
    [written] = write_report(rows, path, name="many.jsonl", metrics=METRICS, intervals=None)
    return written


def long_report(path: Path) -> Path:
    """One record with more sentences than anybody reads, under keys beyond ``zz``."""
    support = {letters(n): ["0a", f"0{letters(1000 + n)}"] for n in range(750)}
    label = output(relevant=["0a"], utilized=["0a"], support=support)
    row = record(id="long", documents=[2000], answer=label)
    [written] = write_report([row], path, name="long.jsonl", metrics=METRICS)
    return written


def _outcomes() -> Iterator[Outcome]:
    for n in range(SIZE):
        yield plain(n)
    yield _changed(_contradicted(), question="Does the label agree with itself?")
    yield _changed(_compared(), question="What does the reference answer say?")
    yield _changed(_hidden_word(), question="Which bird is it?")
    for n in range(FAILED):
        yield _refused(n)


def _refused(n: int) -> LabelFailure:
    return LabelFailure(
        id=f"refused-{n}",
        reason="refusal",
        message="The model refused: ask another one.",
        metadata={"domain": "harbour"},
    )


def plain(n: int) -> LabelRecord:
    """Of four sentences n mod 5 are relevant; one of two statements is false in every tenth."""
    relevant = ["0a", "0b", "1a", "1b"][: n % 5]
    label = output(
        relevant=relevant,
        utilized=relevant[:2],
        support={"a": relevant[:2] or ["general"], "b": [] if n % 10 == 9 else ["general"]},
    )
    domain = "clinic" if n % 3 else "harbour"
    row = record(id=f"row-{n:05}", documents=[2, 2], answer=label, metadata={"domain": domain})
    return _changed(row, question=f"How high is tower {n}?")


def _contradicted() -> LabelRecord:
    """It is supported as a whole, though a sentence is not."""
    label: GPTLabelingOutput = output(
        relevant=["0a", "0b"],
        utilized=["0a", "0b"],
        support={"a": ["0a", "1b"], "b": [], "c": ["0b", "well_known_fact"]},
        overall=True,
    )
    return record(id="contradicted", documents=[2, 2], answer=label, metadata={"domain": "clinic"})


def _compared() -> LabelRecord:
    """It has claims, and those of a reference answer."""
    claims = [
        compared(says("a", ["0a"], claim="Bread is sold."), "entailment"),
        compared(says("a", [], ["0b"], claim="It is free.", on_topic=False), "neutral"),
    ]
    answer = reference_output(
        claims, [expects(["0a"], found=True, claim="Bread is for sale.")], relevant=["0a"]
    )
    return record(id="compared", documents=[2], answer=answer, metadata={"domain": "clinic"})


def _hidden_word() -> LabelRecord:
    """A word stands in a document and nowhere else."""
    documents = [["The bird is a bittern.", "It booms at dusk."], ["Nobody saw it."]]
    return record(id="hidden-word", documents=documents, metadata={"domain": "harbour"})


def _changed(row: LabelRecord, **shown: str) -> LabelRecord:
    """The same with other facts of its example; no report asks whether its key is still right."""
    return row.model_copy(update={"example": row.example.model_copy(update=shown)})
