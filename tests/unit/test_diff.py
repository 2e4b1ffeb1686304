"""What two judgements decide differently, and how a metric's change is split: by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from command import Command
from labeled import compared, expects, record, reference_output, right, says, verbatim, wrong
from labeler.api import write_labels
from labeler.calculators import METRICS, Ratio, Tally, select_metrics
from labeler.comparing.attribution import MetricChange, MixedLabels
from labeler.comparing.diff import LabelDiff, RecordDiff, diff_labels, diff_record, open_diff
from labeler.comparing.flips import DecisionFlip
from labeler.errors import UsageError
from labeler.labels.answers import ComparedClaim, ReferenceLabelingOutput, VerbatimLabel
from labeler.labels.record import LabelFailure, LabelRecord, label_key
from labeler.report.diff_page import write_page


def judged(name: str = "r1", *, model: str = "test-1", trial: int = 0, **facts: Any) -> LabelRecord:
    """A label by some model; all else as of :func:`labeled.record`."""
    made = record(id=name, **facts)
    signature = made.signature.model_copy(update={"model": model, "trial": trial})
    key = label_key(made.example, signature)
    return made.model_copy(update={"signature": signature, "key": key})


def split(a: LabelRecord, b: LabelRecord, name: str) -> tuple[RecordDiff, MetricChange]:
    """The difference of a record, and one metric's change."""
    found = diff_record(a, b, select_metrics(name))
    return found, found.changes[0]


def parts(a: LabelRecord, b: LabelRecord, name: str) -> dict[str, str]:
    """Each flip's part of a metric's change, as a fraction."""
    found, change = split(a, b, name)
    named = [f"{flip.field} {flip.key}".strip() for flip in found.flips]
    return {flip: str(part) for flip, part in zip(named, change.parts, strict=True)}


def test_flips_are_named_in_reading_order() -> None:
    """Document sentences first, then the response's, then what is said of the whole."""
    a = record(documents=[2, 1], relevant=["0a"], utilized=["0a", "1a"])
    b = record(documents=[2, 1], relevant=["0b"], utilized=["0a"], support={"a": ["0b"], "b": []})
    assert diff_record(a, b, ()).flips == (
        DecisionFlip("relevant", "0a", "lost"),
        DecisionFlip("relevant", "0b", "gained"),
        DecisionFlip("utilized", "1a", "lost"),
        DecisionFlip("supporting_keys", "a", "changed", gained=("0b",), lost=("0a",)),
        DecisionFlip("supported", "b", "lost", lost=("0b",)),
        DecisionFlip("overall_supported", "", "lost"),
    )


def test_equal_labels_have_no_flips_and_no_parts() -> None:
    """Nothing is put down to nothing, whatever the explanations."""
    a = record()
    other = a.label.model_copy(update={"relevance_explanation": "otherwise said"})
    found = diff_record(a, a.model_copy(update={"label": other}), select_metrics("all"))
    assert found.flips == ()
    assert not any(change.parts or change.other for change in found.changes)
    assert found.size == 0


def test_each_relevant_sentence_weighs_the_same_in_relevance() -> None:
    """Two sentences of three gained, one lost: a third each, up or down."""
    a = record(documents=[2, 1], relevant=["0a"])
    b = record(documents=[2, 1], relevant=["0b", "1a"])
    assert parts(a, b, "relevance") == {
        "relevant 0a": "-1/3",
        "relevant 0b": "1/3",
        "relevant 1a": "1/3",
    }


def test_sentences_that_break_adherence_together_share_the_loss() -> None:
    """Either alone would do: half of the loss each; the keys of a third do not matter."""
    a = record(support={"a": ["0a"], "b": ["0a"], "c": ["0a"]})
    b = record(support={"a": [], "b": [], "c": ["0b"]})
    assert parts(a, b, "adherence") == {
        "supported a": "-1/2",
        "supported b": "-1/2",
        "supporting_keys c": "0",
        "overall_supported": "0",
    }


def test_the_parts_of_completeness_are_those_found_by_hand() -> None:
    """R 0a 0b, U 0a: 1/2; B has 0b used and 0a not relevant: 1. Alone they give 1/2 and -1/2.

    Use adds +1/2 first and +1 last, relevance -1/2 first and 0 last. Means 3/4, -1/4.
    """
    a = record(documents=[2], relevant=["0a", "0b"], utilized=["0a"])
    b = record(documents=[2], relevant=["0b"], utilized=["0a", "0b"])
    assert parts(a, b, "completeness") == {"relevant 0a": "-1/4", "utilized 0b": "3/4"}


def test_a_label_without_a_value_between_two_counts_as_halfway() -> None:
    """With 0a lost and 0b not yet gained nothing is relevant: completeness 1/2, of 1 and 0.

    Each takes 1/2 away, first or last. Halves.
    """
    a = record(documents=[2], relevant=["0a"], utilized=["0a"])
    b = record(documents=[2], relevant=["0b"], utilized=["0a"])
    assert parts(a, b, "completeness") == {"relevant 0a": "-1/2", "relevant 0b": "-1/2"}
    assert split(a, b, "completeness")[1].halfway


def test_a_change_from_no_value_is_undefined_and_not_split() -> None:
    """The reason is kept; there is no part."""
    _, change = split(record(relevant=[]), record(relevant=["0a"]), "completeness")
    assert (change.change, change.undefined_a, change.undefined_b) == (
        None,
        "no_relevant_sentences",
        None,
    )
    assert change.parts == ()


def test_equal_flips_have_equal_parts_however_many() -> None:
    """Nine sentences lose their support: any of them alone breaks adherence, a ninth each."""
    every = {letter: ["0a"] for letter in "abcdefghi"}
    _, change = split(record(support=every), record(support=dict.fromkeys(every, ())), "adherence")
    assert change.parts[:9] == (Fraction(-1, 9),) * 9


def test_an_interaction_is_shared_by_the_sizes_of_the_effects() -> None:
    """R 0a, U 0a: completeness 1. B has R 0a 0b 0c, U 0a 0b: 2/3.

    First and last: 0b relevant -1/2 and +1/6, 0c relevant -1/2 and -1/3, 0b used 0 and +1/3. The
    means -1/6, -5/12 and +1/6 lack +1/12 of the change, shared by 2/3, 5/6 and 1/3 of 11/6.
    """
    a = record(documents=[3], relevant=["0a"], utilized=["0a"])
    b = record(documents=[3], relevant=["0a", "0b", "0c"], utilized=["0a", "0b"])
    assert parts(a, b, "completeness") == {
        "relevant 0b": str(Fraction(-1, 6) + Fraction(1, 12) * Fraction(4, 11)),
        "utilized 0b": str(Fraction(1, 6) + Fraction(1, 12) * Fraction(2, 11)),
        "relevant 0c": str(Fraction(-5, 12) + Fraction(1, 12) * Fraction(5, 11)),
    }


def test_a_change_that_takes_several_flips_at_once_is_no_flips_own() -> None:
    """U over R, at most 1: one key more or less changes nothing, neither at A nor at B."""
    a = record(documents=[3], relevant=[], utilized=[])
    b = record(documents=[3], relevant=["0a", "0b"], utilized=["0a", "0b", "0c"])
    _, change = split(a, b, "utilization:capstone")
    assert change.change == change.other == 1
    assert not any(change.parts)


def test_the_keys_alone_matter_where_a_metric_reads_them() -> None:
    """A sentence supported by general knowledge is no longer one that names a sentence."""
    a = record(support={"a": ["0a"], "b": ["0b"]})
    b = record(support={"a": ["0a"], "b": ["general"]})
    assert parts(a, b, "citation_coverage") == {"supporting_keys b": "-1/2"}
    assert parts(a, b, "adherence_fraction") == {"supporting_keys b": "0"}


def test_claims_flip_as_one_block_and_their_wording_is_no_matter() -> None:
    """A list of claims has no identity across judgements: what they say of the answer has."""
    a = record(answer=_claims([right("a", ["0a"]), wrong("b", ["0b"])]))
    reworded = [
        claim.model_copy(update={"claim": "said otherwise"})
        for claim in (wrong("b", ["0b"]), right("a", ["0a"]))
    ]
    assert diff_record(a, record(answer=_claims(reworded)), ()).flips == ()
    b = record(answer=_claims([right("a", ["0a"]), right("b", ["0b"])], found=False))
    assert parts(a, b, "claim_precision") == {"claims": "1/2", "reference_claims": "0"}
    assert parts(a, b, "claim_recall") == {"claims": "0", "reference_claims": "-1"}


def _claims(claims: Sequence[ComparedClaim], *, found: bool = True) -> ReferenceLabelingOutput:
    return reference_output(claims, [expects(["0a"], found=found)])


def test_labels_of_a_leaner_profile_have_no_claims_to_flip() -> None:
    """Claims that were never asked for were not decided otherwise."""
    rich = record(answer=reference_output([compared(says("a", ["0a"]), "neutral")], []))
    plain = rich.model_copy(update={"label": record(support={"a": ["0a"]}, relevant=[]).label})
    found, change = split(rich, plain, "claim_precision")
    assert "claims" not in {flip.field for flip in found.flips}
    assert change.undefined_b == "needs_reference"


def test_spelling_moves_the_dialect_that_reads_the_answer_as_given() -> None:
    """A key that A's judge wrote twice counts twice in the published column, and there alone."""
    twice = verbatim(relevant=["0a", "0a", "0b"], support=[("a", ["0a"], True)])
    a = record(documents=[4], response=1, stored=twice)
    once = verbatim(relevant=["0A", "0c"], support=[("a", ["0a"], True)])
    b = record(documents=[4], response=1, stored=once)
    assert parts(a, b, "relevance:ragbench") == {
        "relevant 0b": "-1/4",
        "relevant 0c": "1/4",
        "as_given": "-1/4",
    }
    assert parts(a, b, "relevance")["as_given"] == "0"


def test_a_spelling_of_a_flipped_sentence_goes_with_its_flip() -> None:
    """What stands twice is gone with the sentence: nothing is left for the spelling."""
    stored = verbatim(relevant=["0a", "0b.", "0b"], support=[("a.", ["0a"], None)])
    a = record(documents=[2], response=1, stored=stored)
    b = record(documents=[2], relevant=["0a"], support={"a": []}, response=1)
    assert parts(a, b, "relevance:ragbench") == {"relevant 0b": "-1", "supported a": "0"}


def test_overall_support_overrules_in_the_published_adherence() -> None:
    """The list of unsupported sentences is empty while the whole is called supported.

    Both flips are needed for the loss: half each.
    """
    a = record(support={"a": ["0a"]})
    b = record(support={"a": []})
    assert parts(a, b, "adherence:ragbench") == {"supported a": "-1/2", "overall_supported": "-1/2"}


def test_what_no_flip_accounts_for_is_said() -> None:
    """A metric that reads explanations changes without any decision, in a record and on average."""
    wordy = replace(METRICS["relevance"], name="wordy", needs=(), compute=_words)
    a = record()
    label = a.label.model_copy(update={"relevance_explanation": "because, because"})
    b = a.model_copy(update={"label": label})
    assert diff_record(a, b, [wordy]).changes[0].other == 1
    (row,) = replace(open_diff([a], [b]), metrics=(wordy,)).summary().metrics
    assert row.change == row.other == 1
    assert not row.parts


def _words(tally: Tally) -> Ratio:
    return Ratio(len(tally.stored.relevance_explanation.split()), 1)


def test_the_labels_between_end_at_bs_label() -> None:
    """All flips together give what metrics read of B."""
    a = record(documents=[2, 1], response=2, stored=verbatim(relevant=["0a", "9z"]))
    b = record(documents=[2, 1], relevant=["1a"], utilized=[], support={"a": ["0b"], "b": []})
    labels = MixedLabels(a, b)
    together = labels.mixed(labels.flips)
    for name in ("relevant", "utilized", "supported", "unsupported", "general", "citing"):
        assert getattr(together, name) == getattr(labels.tallies[1], name)
    given = together.stored
    assert isinstance(given, VerbatimLabel)
    assert given.all_relevant_sentence_keys == ("1a",)


# -- all records together -------------------------------------------------------------------------


def two_sides() -> tuple[list[LabelRecord], list[LabelRecord]]:
    """Three records; B loses a relevant sentence in the first and support in the second."""
    first = [
        judged(f"r{n}", relevant=["0a", "0b"], metadata={"set": "xy"[n % 2]}) for n in range(3)
    ]
    second = [
        judged("r0", relevant=["0a"], model="test-2", metadata={"set": "x"}),
        judged("r1", relevant=["0a", "0b"], support=_HALF, model="test-2", metadata={"set": "y"}),
        judged("r2", relevant=["0a", "0b"], model="test-2", metadata={"set": "x"}),
    ]
    return first, second


_HALF: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": []}


def test_parts_of_records_add_up_to_the_change_of_the_mean() -> None:
    """A third of a sentence of three, over three records; and a lost one, over three."""
    found = diff_labels(*two_sides(), metrics="relevance,adherence,adherence_fraction")
    assert [dict(row.parts) for row in found.metrics] == [
        {("relevant", "lost"): Fraction(-1, 9)},
        {("supported", "lost"): Fraction(-1, 3)},
        {("supported", "lost"): Fraction(-1, 6)},
    ]
    assert all(row.change == sum(row.parts.values()) for row in found.metrics)


def test_flips_are_counted_out_of_all_decisions() -> None:
    """One of nine document sentences, one of six response sentences, one of three verdicts."""
    found = diff_labels(*two_sides())
    counts = {count.field: (count.lost, count.decisions, count.records) for count in found.flips}
    assert counts["relevant"] == (1, 9, 1)
    assert counts["supported"] == (1, 6, 1)
    assert counts["overall_supported"] == (1, 3, 1)
    assert "claims" not in counts
    assert found.flipped == 2


def test_records_are_grouped_by_a_column_as_well() -> None:
    """The first group is all records; each group has its own means."""
    found = diff_labels(*two_sides(), metrics="adherence", by="set")
    assert [(row.group, row.pairs, row.change) for row in found.metrics] == [
        (None, 3, Fraction(-1, 3)),
        ("x", 2, 0),
        ("y", 1, -1),
    ]


def test_a_column_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of ids would fill the memory with sums."""
    monkeypatch.setattr("labeler.comparing.diff.MAX_GROUPS", 2)
    assert len(diff_labels(*two_sides(), by="set").groups) == 3
    monkeypatch.setattr("labeler.comparing.diff.MAX_GROUPS", 1)
    with pytest.raises(UsageError, match="more than 1 values"):
        diff_labels(*two_sides(), by="set")


def test_records_that_changed_most_come_first() -> None:
    """By the sum of what each metric moved; those that are the same are left out."""
    found = diff_labels(*two_sides(), metrics="relevance,adherence")
    assert [changed.id for changed in found.records] == ["r1", "r0"]
    assert [changed.id for changed in diff_labels(*two_sides(), top=1).records] == ["r1"]


def test_other_sentences_are_left_out_and_counted_with_the_reason() -> None:
    """A response that another system wrote cannot be compared decision by decision."""
    a, (same, *_) = two_sides()
    other = judged("r1", documents=[3], support={"a": ["0a"]}, model="test-2")
    failed = LabelFailure(id="r2", reason="refusal", message="No.")
    counts = diff_labels(a, [same, other, failed, judged("r9", model="test-2")]).counts
    assert (counts.pairs, counts.left_out) == (1, {"documents and response": 1})
    assert (counts.only_a, counts.only_b, counts.failed_b) == (0, 1, 1)


def test_sides_without_a_common_sentence_are_refused() -> None:
    """The message says what differs, and what can be done."""
    with pytest.raises(UsageError, match=r"1 in response.*labeler compare"):
        diff_labels([judged()], [judged(support={"a": ["0a"]})])
    with pytest.raises(UsageError, match="no labeled record in common"):
        diff_labels([judged("r1")], [judged("r2")])


def test_labels_made_in_several_ways_can_be_chosen_from() -> None:
    """By a part of the signature, or by the trial."""
    a, b = two_sides()
    both = [*a, *b, *(judged(f"r{n}", relevant=["0a"], trial=1) for n in range(3))]
    found = diff_labels(both, both, a_signature="test-1", b_signature="test-2", trial=0)
    assert found.flipped == 2
    again = diff_labels(both, both, a_signature="test-1", b_signature="test-1", trial=0, b_trial=1)
    assert again.flipped == 3
    with pytest.raises(UsageError, match="--b-signature='nobody'"):
        diff_labels(a, b, b_signature="nobody")
    with pytest.raises(UsageError, match="was labeled in 3 ways"):
        diff_labels(both, b)


def test_a_negative_number_of_records_is_refused() -> None:
    """0 is fine."""
    assert diff_labels(*two_sides(), top=0).records == ()
    with pytest.raises(UsageError, match="top -1"):
        diff_labels(*two_sides(), top=-1)


def test_a_file_against_itself_has_no_flips() -> None:
    """No flip, no change, no record that changed."""
    a, _ = two_sides()
    found = diff_labels(a, a, metrics="all")
    assert (found.flipped, found.records) == (0, ())
    assert not any(row.change or row.parts for row in found.metrics)


def test_the_published_form_is_json_without_nan() -> None:
    """And its parts add up to the change, as far as floats can."""
    found: LabelDiff = diff_labels(*two_sides(), by="set")
    again = json.loads(json.dumps(found.as_json(), allow_nan=False))
    for row in again["metrics"]:
        total = sum(part["part"] for part in row["parts"]) + row["other"]
        assert row["change"] is None or total == pytest.approx(row["change"])
    assert again["records"][0]["flips"][0] == {
        "field": "supported",
        "key": "b",
        "direction": "lost",
        "keys_gained": [],
        "keys_lost": ["0b"],
    }


def test_every_pair_can_be_gone_through() -> None:
    """Also those without a flip, in A's order."""
    assert [found.id for found in open_diff(*two_sides())] == ["r0", "r1", "r2"]


def test_labels_come_back_whole_from_where_they_are_kept() -> None:
    """B's sentences are A's; everything else is B's own."""
    a, b = two_sides()
    assert open_diff(a, b).labels("r0") == (a[0], b[0])


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def command(labeler_command: Command) -> Command:
    """The command, in a folder of its own."""
    return labeler_command


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Both sides as files."""
    found = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path, side in zip(found, two_sides(), strict=True):
        write_labels(side, path)
    return found


def test_the_command_prints_flips_and_what_they_did(
    command: Command, files: tuple[Path, Path]
) -> None:
    """Counts, the parts of each mean's change, and who changed most."""
    code, out, err = command("diff", *files, "--metrics", "relevance,adherence")
    assert (code, err) == (0, "")
    assert "3 records with the very same sentences in both, 2 with a flip" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["relevance", "↑", "0.6667", "0.5556", "-0.1111", "-0.1111", "0"] in lines
    assert ["adherence", "↑", "1.0000", "0.6667", "-0.3333", "0", "-0.3333"] in lines
    assert "    supported -b; overall supported -" in out.splitlines()


def test_the_command_gives_json(command: Command, files: tuple[Path, Path]) -> None:
    """All figures at once, or one line for each pair."""
    _, out, _ = command("diff", *files, "--json", "--top", 1)
    found = json.loads(out)
    assert (found["flipped"], len(found["records"])) == (2, 1)
    _, out, _ = command("diff", *files, "--rows", "--metrics", "relevance")
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[0]["metrics"]["relevance"]["parts"] == [
        {"flip": 0, "part": pytest.approx(-1 / 3), "exact": "-1/3"}
    ]
    assert [len(row["flips"]) for row in rows] == [1, 2, 0]


def test_a_page_takes_the_place_of_no_labels(command: Command, files: tuple[Path, Path]) -> None:
    """They cost money."""
    for path in files:
        before = path.read_bytes()
        code, _, err = command("diff", *files, "--html", path)
        assert (code, path.read_bytes()) == (2, before)
        assert "is an input" in err


def test_two_outputs_at_once_are_refused(command: Command, files: tuple[Path, Path]) -> None:
    """As is a file against itself, and standard input on both sides."""
    code, _, err = command("diff", *files, "--json", "--rows")
    assert (code, "exclude each other" in err) == (2, True)
    code, _, err = command("diff", files[0], files[0])
    assert (code, "compared with itself" in err) == (2, True)
    code, _, err = command("diff", "-", "-")
    assert (code, "read once" in err) == (2, True)


def test_strangers_text_reaches_no_terminal_unescaped(command: Command, tmp_path: Path) -> None:
    """An id that would clear the screen is written out."""
    name = "\x1b[2J\u202eevil"
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    write_labels([judged(name)], a)
    write_labels([judged(name, support=_HALF)], b)
    for extra in ((), ("--rows",), ("--json",)):
        code, out, _ = command("diff", a, b, *extra)
        assert code == 0
        assert "evil" in out
        assert not {"\x1b", "\u202e"} & set(out)


def test_a_process_writes_a_page_and_says_how_much_is_in_it(files: tuple[Path, Path]) -> None:
    """The page is one file with all records; the talk goes to standard error."""
    a, b = files
    page = a.with_name("diff.html")
    done = subprocess.run(
        [sys.executable, "-m", "labeler", "diff", str(a), str(b), "--html", str(page)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{page}: 2 changed records\n"
    text = page.read_text()
    assert 'id="chunk-0"' in text
    assert "Content-Security-Policy" in text


def test_the_same_labels_make_the_same_page(tmp_path: Path) -> None:
    """No time of writing is in it."""
    paths = [tmp_path / "one.html", tmp_path / "two.html"]
    for path in paths:
        write_page(open_diff(*two_sides()), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_no_markup_of_a_stranger_stands_in_a_page(tmp_path: Path) -> None:
    """Names of sides, columns and groups are escaped; the rest is packed."""
    evil = "<img src=x onerror=alert(1)><!--records-->"
    facts: dict[str, Any] = {"metadata": {evil: evil}}
    path = tmp_path / "diff.html"
    found = open_diff(
        [judged(evil, **facts)],
        [judged(evil, support=_HALF, model=evil, **facts)],
        by=evil,
        names=(evil, evil),
    )
    assert write_page(found, path) == (1, 0)
    text = path.read_text()
    assert "<img" not in text
    assert "<!--records-->" not in text
    assert "&lt;img" in text
