"""``labeler agree``: labels against labels, and against people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from labeler.api import write_labels
from labeler.labels.record import AnyOutcome, LabelRecord
from support import scored
from support.command import Command
from support.labeled import failure, listing_sources, record, relabeled, with_question

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def agree(labeler_command: Command) -> Run:
    """``labeler agree`` in a folder of its own: exit code, standard output, standard error."""
    return partial(labeler_command, "agree")


def labels(name: str, outcomes: Iterable[AnyOutcome]) -> str:
    """Write a label file; returns its name."""
    write_labels(outcomes, name)
    return name


def people(*lines: str) -> str:
    """Write human labels as CSV; returns the name."""
    Path("h.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "h.csv"


def estimates(value: Mapping[str, Any]) -> dict[str, Any]:
    """People's means by metric."""
    return {one["metric"]: one["people"]["value"] for one in value["estimates"]}


def found(result: tuple[int, str, str]) -> dict[str, Any]:
    """What ``--json`` printed, all well."""
    code, out, err = result
    assert (code, err) == (0, "")
    value: dict[str, Any] = json.loads(out)
    return value


def field(value: Mapping[str, Any], name: str, group: str | None = None) -> dict[str, Any]:
    """One field's figures."""
    (one,) = [f for f in value["fields"] if (f["field"], f["group"]) == (name, group)]
    return dict(one)


def adherent(count: int, yes: int, start: int = 0) -> list[LabelRecord]:
    """Records of one sentence each, the first so many of them supported."""
    return [
        record(id=f"r{start + n}", support={"a": ["0a"] if n < yes else []}, documents=[1])
        for n in range(count)
    ]


def test_fields_are_compared_sentence_by_sentence(agree: Run) -> None:
    """Two records of 3 document and 2 response sentences; B differs in one of each kind."""
    both = record(id="r1")
    a = labels("a.jsonl", [both, record(id="r2", relevant=["0a", "0b"])])
    b = labels("b.jsonl", [both, record(id="r2", support={"a": ["0a"], "b": []})])
    value = found(agree(a, b, "--json"))
    assert value["records"]["compared"] == 2
    names = ("unit", "units", "raw", "mean_a", "mean_b")
    figures = {
        name: [*map(field(value, name).get, names), field(value, name)["kappa"]["value"]]
        for name in ("relevant", "supported", "overall_supported")
    }
    assert figures == {
        # A marks 3 of 6 as relevant, B 2, both 2: chance 1/2, so (5/6 - 1/2) / (1/2) = 2/3.
        "relevant": ["document sentence", 6, *map(pytest.approx, (5 / 6, 1 / 2, 1 / 3, 2 / 3))],
        # B calls 3 of 4 supported, A all: kappa is 0 though they agree on 3 of 4.
        "supported": ["response sentence", 4, 0.75, 1.0, 0.75, 0],
        "overall_supported": ["record", 2, 0.5, 1.0, 0.5, 0],
    }


def test_records_join_by_id_and_by_sentences(agree: Run) -> None:
    """What one side lacks, failed, or cut in another way is counted and said."""
    cut = [record(id="cut", documents=[size]) for size in (3, 2)]
    mine = [record(id="same"), record(id="mine"), cut[0], record(id="broke")]
    yours = [record(id="same"), record(id="yours"), cut[1], record(id="lost")]
    a = labels("a.jsonl", [*mine, *map(failure, ("lost", "hard", "empty"))])
    b = labels("b.jsonl", [*yours, *map(failure, ("broke", "hard"))])
    ones = dict.fromkeys(("compared", "only_a", "only_b", "failed_b", "failed_both"), 1)
    others = {"failed_a": 2, "duplicates": 0, "by_question": 0}
    cut_apart = {"differing": 1, "differing_ids": ["cut"]}
    assert found(agree(a, b, "--json"))["records"] == ones | others | cut_apart
    _, out, _ = agree(a, b)
    assert (
        "1 record in both, 1 only in A, 1 only in B, 2 failed in A, 1 failed in B, 1 failed in "
        "both, 1 with other documents in B\nnot compared, or cut by another splitter: 'cut'\n"
    ) in out


def test_groups_follow_all_records(agree: Run) -> None:
    """Of the side which has one; where both have one and differ, the pair has its own."""
    kinds = {"x1": "x", "x2": "x", "y1": "y", "r1": None, "r2": "x", "r3": None}
    a = [record(id=name, metadata={"kind": kind} if kind else {}) for name, kind in kinds.items()]
    others = [record(id=name, metadata={"kind": "z"}) for name in ("r1", "r2")]
    b = [*a[:2], record(id="y1", relevant=[]), *others, a[-1]]
    files = labels("a.jsonl", a), labels("b.jsonl", b)
    value = found(agree(*files, "--by", "kind", "--json"))
    units = {None: 18, "(differs)": 3, "(none)": 3, "x": 6, "y": 3, "z": 3}
    assert {group: field(value, "relevant", group)["units"] for group in units} == units
    assert [field(value, "relevant", g)["raw"] for g in "xy"] == [1.0, pytest.approx(2 / 3)]
    assert re.search(r"relevant or not +y +3 +67 %", agree(*files, "--by", "kind")[1])
    assert "no row has a column 'colour'" in agree(*files, "--by", "colour")[2]


def test_two_labels_of_one_record_need_a_choice(agree: Run) -> None:
    """By trial or signature as in compare and diff, for both sides, and against people."""
    first = record(id="r1")
    second = relabeled(record(id="r1", relevant=["0b"]), trial=1, model="m-9")
    a, b = labels("a.jsonl", [first, second]), labels("b.jsonl", [first])
    for arguments, words in (
        ((), "a.jsonl: record 'r1' was labeled in 2 ways"),
        ((), "(--trial)"),
        (("--trial", 3), "a.jsonl: no label fits --trial=3; trials 0, 1"),
        (("--trial", 1), "b.jsonl: no label fits --trial=1; trials 0"),
    ):
        code, _, err = agree(a, b, *arguments)
        assert (code, words in err) == (2, True)
    c, h = labels("c.jsonl", [second]), people("id,sentence,relevant", "r1,0b,yes")
    for chosen in ((b, "--trial", 0), (c, "--signature", "m-9"), ("--human", h, "--trial", 1)):
        value = found(agree(a, *chosen, "--json"))
        assert field(value, "relevant")["raw"] == 1.0
        assert ("trial:1" in str(value)) is (chosen[0] != b)


ONLY = record(id="r1", documents=[3])


OTHER = "differs in documents from the record of the same id at b.jsonl:1"
SHARED = "share 1 labeled id ('r1'), but under each of them the sentences differ (1 in documents)"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ([ONLY, record(id="r1", documents=[1])], OTHER),
        ([scored.record()], "b.jsonl: no labels, but 1 record of kind 'score'"),
        ([failure("r1")], "b.jsonl: no label: 1 record failed"),
        ([], "no labels in b.jsonl: it is empty"),
        ([record(id="q1")], "no labeled record in common: a.jsonl has 1 label ('r1')"),
        ([record(id="r1", documents=[2])], SHARED),
    ],
)
def test_a_side_without_a_label_to_compare_is_an_error(
    agree: Run, other: list[AnyOutcome], words: str
) -> None:
    """Scores are no labels, nor are failures; other ids, or the same ids of other sentences."""
    code, _, err = agree(labels("a.jsonl", [ONLY]), labels("b.jsonl", other))
    assert (code, words in err) == (2, True)


def test_the_conclusion_counts_what_was_judged(agree: Run) -> None:
    """One is singular, and the values of a metric are not sentences."""
    a = labels("a.jsonl", adherent(4, 3))
    for said, counted in (
        (("id,sentence,supported", "r0,a,yes"), "1 of 1 answer sentence, supported or not"),
        (("id,overall_supported", "r0,no"), "0 of 1 answer, supported as a whole or not"),
        (("id,relevance", "r0,1", "r1,0"), "1 of 2 values of relevance"),
    ):
        _, out, _ = agree(a, "--human", people(*said))
        assert out.startswith(f"The judge and people agree on {counted} (")

    # Nor do lists of sources count: of two sentences and a list, people support one sentence.
    made = record(id="r0", support={"a": ["0a"], "b": ["0a"], "c": ["0a"]})
    a = labels("a.jsonl", [listing_sources(made)])
    h = people("id,sentence,supported", "r0,a,yes", "r0,b,no", "r0,c,yes")
    means = estimates(found(agree(a, "--human", h, "--json")))
    assert means == {"adherence": 0.0, "adherence_fraction": 0.5}


def test_means_stand_side_by_side(agree: Run) -> None:
    """Twenty records with human verdicts, eighty without: four means, and what they rest on."""
    # Judge yes, people yes: 10; yes, no: 4; no, no: 6. The judge alone: 60 yes, 20 no.
    a = labels("a.jsonl", [*adherent(20, 14), *adherent(80, 60, start=20)])
    said = [f"r{n},{'yes' if n < 10 else 'no'}" for n in range(20)]
    h = people("id,adherence", *said)
    value = found(agree(a, "--human", h, "--random-sample", "--json"))
    (means,) = value["estimates"]
    corrected, ppi = means["corrected"], means["ppi"]
    assert means["metric"] == "adherence"
    assert (means["people"]["value"], means["plain"]["value"]) == (0.5, 0.74)
    # Sensitivity 10/10, specificity 6/10: (3/4 + 6/10 - 1) / (6/10).
    assert corrected["value"] == pytest.approx(0.35 / 0.6)
    assert (corrected["sensitivity"], corrected["specificity"]) == (1.0, 0.6)
    # 1/2 + weight·(3/4 - 7/10)
    assert ppi["value"] == pytest.approx(0.5 + ppi["weight"] * 0.05)
    assert ppi["weight"] > 0
    assert (ppi["labeled"], ppi["unlabeled"]) == (20, 80)
    (few,) = ppi["warnings"]
    assert few.startswith("records with human labels: only 20; under 30 the intervals cannot")
    _, out, _ = agree(a, "--human", h)
    first, second, *_ = out.splitlines()
    assert first == (
        "The judge and people agree on 16 of 20 values of adherence (80 %); chance alone would "
        "give 50 %."
    )
    assert second.startswith("Answers fully supported by the judge .74, corrected by people .5")
    assert second.endswith(", if people judged records drawn at random.")
    _, out, _ = agree(a, "--human", h, "--details")
    methods = ("people's own", "judge's own", "PPI++", "error-corrected")
    assert all(words in out for words in (*methods, "drawn at random", "\n* small sample: "))


def test_verdicts_on_every_document_sentence_make_relevance(agree: Run) -> None:
    """Two of three sentences relevant for people, one for the judge."""
    h = people("id,sentence,relevant,utilized", "r1,0a,yes,no", "r1,0b,yes,no", "r1,1a,no,no")
    value = found(agree(labels("a.jsonl", [record(id="r1")]), "--human", h, "--json"))
    both = [field(value, name) for name in ("relevance", "utilization")]
    means = [(one["mean_a"], one["mean_b"]) for one in both]
    assert means == [pytest.approx((1 / 3, 2 / 3)), pytest.approx((1 / 3, 0))]
    assert both[0]["kappa"]["undefined"] == "not_yes_or_no"
    assert both[0]["caution"].endswith(
        "alpha can be near 0 or 1 by chance; read the share of agreement"
    )


def test_several_people_are_one_verdict_and_their_own_agreement(agree: Run) -> None:
    """The majority speaks for people; a tie speaks for neither; how far they agree is said."""
    a = labels("a.jsonl", adherent(3, 2))
    said = "r0,a,yes r0,b,yes r0,c,no r1,a,no r1,b,no r1,c,no r2,a,yes r2,b,no"
    h = people("id,annotator,adherence", *said.split())
    value = found(agree(a, "--human", h, "--json"))
    assert value["human_labels"]["ties"] == 1
    adherence = field(value, "adherence")
    assert (adherence["units"], adherence["left_out"], adherence["raw"]) == (2, 1, 0.5)
    (among,) = value["among_people"]
    # Pairs agree 1 of 3, 3 of 3, 0 of 1.
    assert (among["units"], among["raw"]) == (3, pytest.approx(4 / 9))
    assert any("1 tie between annotators," in warning for warning in value["warnings"])
    _, out, _ = agree(a, "--human", h, "--details")
    assert "people among themselves on adherence: alpha" in out
    assert "adherence: 1 left out, ties between annotators" in out
    assert "without a verdict" not in out


@pytest.mark.parametrize("elsewhere", ["1", "0.9"])
def test_what_people_say_of_one_record_changes_no_other(agree: Run, elsewhere: str) -> None:
    """A number has people's mean and a flag the majority's, whatever stands elsewhere."""
    a = labels("a.jsonl", [record(id="r0"), record(id="r1")])
    lines = ["r0,a,1", "r0,b,1", "r0,c,0", f"r1,a,{elsewhere}"]
    value = found(agree(a, "--human", people("id,annotator,relevance", *lines), "--json"))
    (means,) = value["estimates"]
    assert means["people"]["value"] == pytest.approx((2 / 3 + float(elsewhere)) / 2)
    assert (means["corrected"], value["human_labels"]["ties"]) == (None, 0)
    # Of flags: a yes.
    lines = ["r0,a,1", "r0,b,1", "r0,c,0", f"r1,a,{elsewhere}"]
    value = found(agree(a, "--human", people("id,annotator,adherence", *lines), "--json"))
    assert (estimates(value), field(value, "adherence")["mean_b"]) == ({"adherence": 1.0}, 1.0)


def test_what_matches_nothing_is_counted_and_said(agree: Run) -> None:
    """Unknown records and sentences, failed records, lists of sources, columns without a field."""
    a = labels("a.jsonl", [listing_sources(record(id="r1")), failure("r2"), record(id="\u00e9")])
    said = "r1,Ann,a,yes, r1,Ann,a,yes, r1,ann,z,yes, r1,ann,b,yes, r2,Bo,a,yes, e\u0301,Bo,a,yes,"
    h = people("id,annotator,sentence,supported,note", *said.split())
    value = found(agree(a, "--human", h, "--json"))["human_labels"]
    ones = ("used", "unknown", "failed", "unknown_sentences", "sources", "repeated")
    unknown = ["e\u0301"]
    others = {"unknown_ids": unknown, "other_forms": unknown, "ties": 0}
    others |= {"ignored_columns": ["note"], "same_annotators": [["Ann", "ann"]]}
    assert value == dict.fromkeys(ones, 1) | others
    _, out, _ = agree(a, "--human", h)
    assert "unknown records: 'e\u0301' (a record has this id in another Unicode form)" in out
    assert "columns that name no field: 'note'" in out
    assert "annotators 'Ann' and 'ann' count as 2 people" in out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nobody,,adherence,1", "1 judgment of ids that a.jsonl does not have ('nobody'); it has"),
        ("r1,z,supported,yes", "1 judgment of sentences that the record does not have ('z' of 'r"),
        ("r2,a,supported,yes", "1 judgment of records that failed in a.jsonl"),
        ("", "nothing is judged there"),
    ],
)
def test_human_labels_of_which_none_fits_are_an_error(agree: Run, line: str, words: str) -> None:
    """Exit code 2, and which of the causes it was."""
    a = labels("a.jsonl", [record(id="r1"), failure("r2")])
    code, out, err = agree(a, "--human", people("id,sentence,field,value", line))
    assert (code, out) == (2, "")
    assert "h.csv: " in err
    assert words in err


def test_a_disputed_record_counts_by_halves(agree: Run) -> None:
    """Half the records: one says yes to every sentence, and the other no; none is left out."""
    a = labels("a.jsonl", [record(id=f"r{n}") for n in range(60)])
    lines = [
        f"r{n},{key},{who},{'no' if who == 'b' and n < 30 else 'yes'}"
        for n, key, who in product(range(60), "ab", "ab")
    ]
    h = people("id,sentence,annotator,supported", *lines)
    value = found(agree(a, "--human", h, "--json"))
    assert estimates(value) == {"adherence": 0.75, "adherence_fraction": 0.75}
    assert {one["people"]["labeled"] for one in value["estimates"]} == {60}
    adherence, fraction = field(value, "adherence"), field(value, "adherence_fraction")
    assert (adherence["units"], adherence["tied"], adherence["mean_b"]) == (30, 30, 1.0)
    assert (fraction["units"], fraction["mean_b"]) == (60, 0.75)
    # Of 120 sentences 60 are tied, and of 60 records 30.
    assert value["human_labels"]["ties"] == 90


@pytest.mark.parametrize(
    ("said", "adherence", "fraction"),
    [
        # Two of three deny another sentence each: of the whole most say no, of each sentence yes.
        ("a,x,yes b,x,yes a,y,no b,y,yes a,z,yes b,z,no", 0, 2 / 3),
        # Each judged another sentence; nobody judged both.
        ("a,x,yes b,y,no", 0, 0.5),
    ],
)
def test_what_follows_from_sentences_does_so_for_each_person(
    agree: Run, said: str, adherence: float, fraction: float
) -> None:
    """People who shared a record stand for one."""
    a = labels("a.jsonl", [record(id="r0")])
    h = people("id,sentence,annotator,supported", *(f"r0,{one}" for one in said.split()))
    assert estimates(found(agree(a, "--human", h, "--json"))) == {
        "adherence": adherence,
        "adherence_fraction": pytest.approx(fraction),
    }


def test_a_records_own_judgment_goes_before_its_sentences(agree: Run) -> None:
    """And it is said where a metric was derived from sentences."""
    a = labels("a.jsonl", adherent(2, 2))
    h = people(
        "id,sentence,field,value", "r0,a,supported,no", "r0,,adherence,yes", "r1,a,supported,no"
    )
    value = found(agree(a, "--human", h, "--json"))
    assert field(value, "adherence")["mean_b"] == 0.5
    (derived,) = [warning for warning in value["warnings"] if "derived" in warning]
    assert "adherence of 1" in derived
    assert "replaces the derived one" in derived


def test_labels_made_in_several_ways_are_said(agree: Run) -> None:
    """Their mean is over judges, not of one."""
    a = labels("a.jsonl", [record(id="r1"), relabeled(record(id="r2"), trial=1)])
    h = people("id,overall_supported", "r1,yes", "r2,no")
    value = found(agree(a, "--human", h, "--json"))
    assert any("made in 2 ways" in warning for warning in value["warnings"])
    assert field(value, "overall_supported")["raw"] == 0.5
    assert "labels of A were made in 2 ways" in agree(a, labels("b.jsonl", [record(id="r1")]))[1]


def test_records_of_one_question_count_as_one_observation(agree: Run) -> None:
    """Intervals are grouped by question where several records ask the same one."""
    a, b = (
        [
            with_question(record(id=f"r{n}", utilized=["0b" if n in odd else "0a"]), f"Q{n // 3}?")
            for n in range(12)
        ]
        for odd in ((), (0, 4, 5))
    )
    _, out, _ = agree(labels("a.jsonl", a), labels("b.jsonl", b), "--details")
    assert "95 % intervals grouped by question (4 groups), utilized: kappa " in out
    utilized = field(found(agree("a.jsonl", "b.jsonl", "--json")), "utilized")
    assert utilized["questions"] == 4
    assert utilized["kappa"]["interval"]["method"] == "dirichlet_groups"
    assert utilized["kappa"]["interval"]["small_sample"] is True
    h = people("id,overall_supported", *(f"r{n},{'yes' if n % 2 else 'no'}" for n in range(9)))
    _, out, _ = agree("a.jsonl", "--human", h, "--details")
    assert "\noverall_supported: 95 % intervals grouped by question (4 groups)\n" in out
    (means,) = found(agree("a.jsonl", "--human", h, "--json"))["estimates"]
    assert (means["questions"], means["ppi"]["small_sample"]) == (4, True)
    _, out, _ = agree(labels("c.jsonl", a[::3]), "b.jsonl", "--details")
    assert "grouped by question" not in out
