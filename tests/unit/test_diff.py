"""Decisions that differ between two judgments, and the change of each metric: by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from labeler.api import write_labels
from labeler.comparing.diff import diff_labels
from labeler.comparing.flips import MetricChange, RecordDiff
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord
from labeler.report.comparison_pages import write_diff
from support.command import Command
from support.labeled import (
    compared,
    expects,
    failure,
    listing_sources,
    record,
    reference_output,
    relabeled,
    right,
    says,
    wrong,
)

Diff = Callable[..., tuple[int, str, str]]


def judged(name: str = "r1", *, model: str = "test-1", **facts: Any) -> LabelRecord:
    """A label by some model; all else as of :func:`labeled.record`."""
    return relabeled(record(id=name, **facts), model=model)


def diff_record(a: LabelRecord, b: LabelRecord, metrics: str | Sequence[str] = "all") -> RecordDiff:
    """The difference of two labels."""
    (found,) = diff_labels([a], [b], metrics)
    return found


def change_of(a: LabelRecord, b: LabelRecord, name: str) -> MetricChange:
    """The change of one metric of a record."""
    return diff_record(a, b, name).changes[0]


def test_the_change_of_a_record_is_exact() -> None:
    """R 0a 0b, U 0a: 1/2; B has 0b used and 0a not relevant: 1. Without R there is a reason."""
    a = record(documents=[2], relevant=["0a", "0b"], utilized=["0a"])
    b = record(documents=[2], relevant=["0b"], utilized=["0a", "0b"])
    assert change_of(a, b, "completeness").change == Fraction(1, 2)
    lost = change_of(record(relevant=[]), record(relevant=["0a"]), "completeness")
    reasons = (lost.undefined_a, lost.undefined_b)
    assert (lost.change, *reasons) == (None, "no_relevant_sentences", None)


def test_claims_flip_as_one_block_and_their_wording_is_no_matter() -> None:
    """A list of claims has no identity across judgments: what they say of the answer has."""
    said, found = [right("a", ["0a"]), wrong("b", ["0b"])], [expects(["0a"], found=True)]
    a = record(answer=reference_output(said, found))
    reworded = [claim.model_copy(update={"claim": "said otherwise"}) for claim in said[::-1]]
    b = record(answer=reference_output(reworded, found))
    assert diff_record(a, b, "relevance").flips == ()
    b = record(answer=reference_output([said[0], right("b", ["0b"])], [expects(["0a"])]))
    flips = diff_record(a, b, "relevance").flips
    assert [flip.field for flip in flips] == ["claims", "reference_claims"]


def test_labels_of_a_leaner_profile_have_no_claims_to_flip() -> None:
    """Claims that were never asked for were not decided otherwise."""
    rich = record(answer=reference_output([compared(says("a", ["0a"]), "neutral")], []))
    plain = rich.model_copy(update={"label": record(support={"a": ["0a"]}, relevant=[]).label})
    assert "claims" not in {flip.field for flip in diff_record(rich, plain, "relevance").flips}
    assert change_of(rich, plain, "claim_precision").undefined_b == "needs_reference"


_HALF: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": []}


def two_sides() -> tuple[list[LabelRecord], list[LabelRecord]]:
    """Three records; B loses a relevant sentence in the first and support in the second."""
    both: dict[str, Any] = {"relevant": ["0a", "0b"]}
    a, b = (both, both, both), ({"relevant": ["0a"]}, {**both, "support": _HALF}, both)
    first, second = (
        [
            judged(f"r{n}", metadata={"set": "xyx"[n]}, model=model, **facts)
            for n, facts in enumerate(side)
        ]
        for side, model in ((a, "test-1"), (b, "test-2"))
    )
    return first, second


def test_all_records_together_have_exact_changes_and_counts() -> None:
    """A third of a sentence of three, over three records; pairs without a flip count too."""
    found = diff_labels(*two_sides(), metrics="relevance,adherence,adherence_fraction")
    wanted = [Fraction(-1, 9), Fraction(-1, 3), Fraction(-1, 6)]
    assert [row.change for row in found.metrics] == wanted
    a, b = two_sides()
    found = diff_labels(a, b)
    counts = {count.field: (count.lost, count.decisions, count.records) for count in found.flips}
    assert counts["relevant"] == (1, 9, 1)
    assert counts["supported"] == (1, 6, 1)
    assert counts["overall_supported"] == (1, 3, 1)
    assert "claims" not in counts
    assert found.flipped == 2
    assert [one.id for one in found] == ["r0", "r1", "r2"]
    assert found.labels("r0") == (a[0], b[0])


def test_records_are_grouped_by_a_column_as_well() -> None:
    """All records come first; each group has its own means."""
    found = diff_labels(*two_sides(), metrics="adherence", by="set")
    rows = [(None, 3, Fraction(-1, 3)), ("x", 2, 0), ("y", 1, -1)]
    assert [(row.group, row.pairs, row.change) for row in found.metrics] == rows


def test_records_that_changed_most_come_first() -> None:
    """By the sum of what each metric moved; those that are the same are left out."""
    for top, names in ((10, ["r1", "r0"]), (1, ["r1"]), (0, [])):
        found = diff_labels(*two_sides(), metrics="relevance,adherence", top=top)
        assert [changed.id for changed in found.records] == names
    with pytest.raises(UsageError, match=r"top must be .* got -1"):
        diff_labels(*two_sides(), top=-1)


def test_other_sentences_are_left_out_and_counted_with_the_reason() -> None:
    """A response that another system wrote cannot be compared decision by decision."""
    a, (same, *_) = two_sides()
    other = judged("r1", documents=[3], support={"a": ["0a"]}, model="test-2")
    found = diff_labels(a, [same, other, failure("r2"), judged("r9")])
    assert "not compared: 1 with other documents and another response" in found.conclusion
    assert "note: labels of B were made in 2 ways" in "\n".join(found.pairing)
    counts = found.counts
    assert (counts.pairs, counts.left_out) == (1, {"documents and response": 1})
    assert (counts.only_a, counts.only_b, counts.failed_b) == (0, 1, 1)
    with pytest.raises(UsageError, match=r"1 in response.*labeler compare"):
        diff_labels([judged()], [judged(support={"a": ["0a"]})])


@pytest.fixture
def diff(labeler_command: Command) -> Diff:
    """The command on both sides as files."""
    for path, side in zip(("a.jsonl", "b.jsonl"), two_sides(), strict=True):
        write_labels(side, path)
    return partial(labeler_command, "diff", "a.jsonl", "b.jsonl")


def test_the_command_prints_flips_and_what_they_did(diff: Diff) -> None:
    """The conclusion; with details counts, each mean's change, and the flipped sentences."""
    code, out, err = diff()
    assert (code, err) == (0, "")
    assert out.startswith(
        "2 of 3 records have a verdict that differs: 1 answer no longer supported as a "
        "whole; 1 answer sentence no longer supported.\n"
    )
    _, out, _ = diff("--metrics", "relevance,adherence", "--details")
    assert "B: 3 labels of" in out
    assert "3 records in both" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["relevance", "↑", "0.6667", "0.5556", "-0.1111", "1", "3"] in lines
    assert ["adherence", "↑", "1.0000", "0.6667", "-0.3333", "1", "3"] in lines
    assert "    supported -b; overall supported -" in out.splitlines()


def test_the_command_gives_json(diff: Diff) -> None:
    """All figures at once, or one line for each pair."""
    _, out, _ = diff("--json", "--top", 1)
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["flipped"], len(found["records"])) == (2, 1)
    assert (found["a"]["labeled"], found["a"]["failed"]) == (3, 0)
    relevant, relevance = found["flips"][0], found["metrics"][0]
    assert (relevant["field"], relevant["lost"], relevant["rate"]) == ("relevant", 1, 1 / 9)
    assert (relevance["metric"], relevance["higher_is_better"]) == ("relevance", True)
    assert (relevance["mean_a"], relevance["mean_b"]) == (2 / 3, 5 / 9)
    assert found["records"][0]["flips"][0] == {
        "field": "supported",
        "key": "b",
        "direction": "lost",
        "keys_gained": [],
        "keys_lost": ["0b"],
    }
    _, out, _ = diff("--rows", "--metrics", "relevance")
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[0]["metrics"]["relevance"]["share"] == pytest.approx(-1 / 9)
    assert [len(row["flips"]) for row in rows] == [1, 2, 0]


def test_the_command_writes_a_page_and_says_how_much_is_in_it(diff: Diff) -> None:
    """One file with all records, and no time of writing; the talk goes to standard error."""
    for page in ("1.html", "2.html"):
        assert diff("--html", page)[::2] == (0, f"{page}: 2 changed records\n")
    assert [diff("--html", name)[0] for name in ("page", "-")] == [2, 2]
    text = Path("1.html").read_text()
    assert text == Path("2.html").read_text()
    assert 'id="chunk-0"' in text
    assert "Content-Security-Policy" in text


def test_no_markup_of_a_stranger_stands_in_a_page(tmp_path: Path) -> None:
    """Names of sides, columns and groups are escaped; the rest is packed."""
    evil = "<img src=x onerror=alert(1)><!--records-->"
    facts: dict[str, Any] = {"metadata": {evil: evil}}
    a, b = [judged(evil, **facts)], [judged(evil, support=_HALF, model=evil, **facts)]
    path = tmp_path / "diff.html"
    assert write_diff(diff_labels(a, b, by=evil, names=(evil, evil)), path) == (1, 0)
    text = path.read_text()
    assert [one in text for one in ("<img", "<!--records-->", "&lt;img")] == [False, False, True]


def test_a_verdict_that_only_one_side_gives_is_no_loss_of_support() -> None:
    """From unsupported to not judged changes, and becomes nothing."""
    a = record(support={"a": ["0a"], "b": []})
    b = record(support={"a": ["0a"]}, response=2)
    for pair in ((a, b), (b, a)):
        (flip,) = diff_record(*pair).flips[:1]
        assert (flip.field, flip.key, flip.direction) == ("supported", "b", "changed")


def test_a_list_of_sources_has_no_verdict_that_flips() -> None:
    """It is not among the decisions that are counted either."""
    a, b = (listing_sources(record(support={"a": ["0a"], "b": keys})) for keys in (["0a"], ["0b"]))
    found = diff_record(a, b)
    assert not found.flips
    assert found.decisions["supported"] == 1
