"""The audit of many records: counts, doubt, files, and the command."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler import api
from labeler.audit import (
    CHECKS,
    Audit,
    AuditedRecord,
    Check,
    Finding,
    Found,
    Subject,
    audit_labels,
    check,
    findings_of,
    select_checks,
    suspicion_score,
)
from labeler.cli import audit
from labeler.cli.measure import report
from labeler.comparing.human_labels import read_human_labels
from labeler.errors import UsageError
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.sentences.characters import escape_formula
from support.audited import judged
from support.labeled import failure, relabeled
from support.registries import keep_entries
from support.scored import record as score_record

Captured = pytest.CaptureFixture[str]
SOUND = judged({"The tower is 120 metres high.": ["0a"]})
ODD = judged({"The tower is 120 metres high.": ["0a"], "It is red.": []}, overall=True)


def named(made: LabelRecord, name: str, **metadata: object) -> LabelRecord:
    """A record under another id."""
    example = made.example.model_copy(update={"id": name, "metadata": metadata})
    return made.model_copy(update={"example": example})


def file_of(folder: Path, *outcomes: AnyOutcome, name: str = "labels.jsonl") -> str:
    """A label file."""
    api.write_labels(outcomes, folder / name)
    return str(folder / name)


def test_a_rate_is_a_share_of_the_records_that_a_check_applies_to() -> None:
    """Two apply, one is flagged; where none applies there is no rate; each judge has its own."""
    other = relabeled(named(ODD, "3"), model="other")
    found_in = audit_labels([SOUND, named(ODD, "r2"), other])
    rows = {row.check.id: row for row in found_in.rows if row.label == str(SOUND.signature)}
    overall = rows["overall_against_sentences"]
    assert (overall.records, overall.flagged, overall.findings, overall.rate) == (2, 1, 1, 0.5)
    assert rows["claim_support_not_listed"].rate is None
    assert rows["claim_support_not_listed"].as_json()["rate"] is None


def test_records_are_counted_by_a_column() -> None:
    """Those without it form a group of their own; an unknown column names those that there are."""
    records = [named(SOUND, "1", part="x"), named(ODD, "2", part="y"), named(ODD, "3")]
    rows = audit_labels(records, checks="overall_against_sentences", by="part").rows
    assert [(row.group, row.flagged) for row in rows] == [("(none)", 1), ("x", 0), ("y", 1)]
    with pytest.raises(UsageError, match="columns: part"):
        audit_labels(records, by="subset")
    assert audit_labels([], by="part").as_json()["checks"] == []


def test_the_worst_finding_counts_a_record_and_contradictions_break_ties() -> None:
    """Whatever the order of the file; notes alone are neither contradictions nor suspicions."""
    note, suspicion = Finding("a", "note", "."), Finding("b", "suspicion", ".")
    contradiction = Finding("c", "contradiction", ".")
    made = [
        AuditedRecord(name, "k", "l", None, findings, 0.5)
        for name, findings in {
            "nothing": (),
            "note": (note,),
            "suspicion": (note, suspicion),
            "worst": (suspicion, contradiction),
        }.items()
    ]
    found_in = Audit((), (), (*made, replace(made[-1], id="other")), {}, 0)
    assert [each.id for each in found_in.ranked()] == ["worst", "other", "note", "suspicion"]
    assert found_in.worst == {"contradiction": 2, "suspicion": 1, "note": 1}


def test_doubt_joins_the_weights_of_distinct_checks() -> None:
    """The same check twice counts once; an absent check weighs by its severity."""
    half, quarter, absent = (
        Finding(name, "suspicion", "Odd.")
        for name in ("overall_against_sentences", "support_shares_no_word", "of_somebody_else")
    )
    assert suspicion_score([]) == 0
    assert suspicion_score([half]) == 0.5
    assert suspicion_score([half, half, quarter]) == 0.625
    assert suspicion_score([absent]) == 0.25


def test_anybody_can_add_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a decorator, with a docstring to show next to its rate, and named by its dotted text."""
    keep_entries(CHECKS, monkeypatch)

    @check("shouting", severity="note", weight=1.0)
    def shouting(subject: Subject) -> Iterator[Found]:
        """Shouting.

        It is
        loud.
        """
        for key, text in subject.texts.items():
            if text.isupper():
                yield Found("Shouts.", (key,))

    monkeypatch.setattr(sys.modules[__name__], "shouting", shouting, raising=False)
    chosen = select_checks(f"{__name__}:shouting,support_not_utilized")
    assert [each.id for each in chosen] == ["shouting", "support_not_utilized"]
    assert (chosen[0].title, chosen[0].why) == ("Shouting", "It is loud.")
    (seen,) = findings_of(judged({"IT IS HIGH.": ["0a"]}), chosen)
    assert (seen.check, seen.keys, suspicion_score([seen])) == ("shouting", ("a",), 1)
    with pytest.raises(UsageError, match="'quiet': give <lambda> a docstring"):
        check("quiet", severity="note")(lambda _: iter(()))


def test_checks_are_named_by_ids_or_given_as_they_are() -> None:
    """In one text, in several, or as checks."""
    first, second = "support_not_utilized", "explanation_denies"
    of_both: list[str | list[str | Check]] = [f"{first}, {second}", [CHECKS[first], second]]
    for given in of_both:
        assert [each.id for each in audit_labels([SOUND], checks=given).checks] == [first, second]
    overall = "overall_against_sentences"
    assert [each.check for each in findings_of(ODD, overall)] == [overall]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (None, "'careless' returned NoneType for record 'r1': yield a labeler.audit.Found"),
        ("odd", "'careless' gave str for record 'r1'"),
        (["odd"], "'careless' gave str for record 'r1'"),
        ([Found("Odd.", "0a")], "keys that are not a tuple"),  # type: ignore[arg-type]  # a slip
        ([Found(7)], "message that is not text"),  # type: ignore[arg-type]  # a slip
    ],
)
def test_a_check_that_gives_something_else_is_told_what_to_give(given: Any, told: str) -> None:
    """With the check and the record, and no foreign error."""
    careless = replace(CHECKS["support_not_utilized"], id="careless", find=lambda _: given)
    with pytest.raises(UsageError, match=told):
        audit_labels([named(SOUND, "r1")], checks=[careless])


FORMULAS = (
    *("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", " =1", "\n=1", "\nx", "\x00=1", "\ufeff=1"),
    *("\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "\u00a0=1", "\u3000\uff1d1"),
)


def test_a_cell_that_reads_as_a_formula_is_guarded_and_read_back(tmp_path: Path) -> None:
    """By an apostrophe before it; other cells stay as they are."""
    assert [*map(escape_formula, FORMULAS)] == [f"'{cell}" for cell in FORMULAS]
    others = ["", "r1", "0a 0b", "a=b", "1-2", "'quoted'", "0.5"]
    assert [*map(escape_formula, others)] == others
    file = tmp_path / "people.csv"
    file.write_text("id,field,value\n'=r1,overall_supported,yes\n")
    assert read_human_labels(file).labels[0].id == "=r1"


def test_rows_of_findings_are_quoted_and_guarded_in_csv(tmp_path: Path) -> None:
    """A stranger's id with quotes, commas and a formula comes back as one cell."""
    wild = named(ODD, '=HYPERLINK("x","y"),\n2')
    out = tmp_path / "found.csv"
    audit.audit(file_of(tmp_path, wild), output=str(out), as_json=True)
    text = out.read_text(encoding="utf-8")
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head[0] == "id"
    assert {row[0] for row in rows} == {"'" + wild.id}
    assert rows[0][2:6] == ["", str(ODD.signature), "0.5", "1"]  # no group is an empty cell
    assert all(line.startswith('"') for line in text.splitlines() if not line.startswith("2"))


def test_rows_of_findings_are_lossless_in_json(tmp_path: Path) -> None:
    """Each with its record, judgment, doubt and rank, the most doubtful record first."""
    worst = judged({"It is 7 red.": ["1a"], "It is blue.": []}, overall=True, utilized=["0a"])
    out = tmp_path / "found.jsonl"
    labels = file_of(tmp_path, named(ODD, "=r"), named(worst, "w"), named(ODD, "a"))
    audit.audit(labels, output=str(out), as_json=True)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["rank"]) for row in rows][-2:] == [("=r", 2), ("a", 3)]
    assert rows[0]["id"] == "w"
    assert rows[-2] == {
        "id": "=r",
        "key": ODD.key,
        "group": None,
        "signature": str(ODD.signature),
        "doubt": 0.5,
        "rank": 2,
        "check": "overall_against_sentences",
        "severity": "contradiction",
        "message": "Supported as a whole, but 1 of its 2 sentences is not.",
        "keys": ["b"],
    }
    audit.audit(labels, output=str(out), as_json=True, top=2)
    assert {json.loads(line)["id"] for line in out.read_text().splitlines()} == {"w", "=r"}


@pytest.fixture
def labels(tmp_path: Path) -> str:
    """A label file of a sound record and an odd one."""
    return file_of(tmp_path, named(SOUND, "good", part="x"), named(ODD, "odd\x1b[31m", part="y"))


def test_the_command_shows_rates_and_the_most_doubtful(labels: str, capsys: Captured) -> None:
    """With what was found, and no control character of a stranger."""
    audit.audit(labels)
    out = capsys.readouterr().out
    assert "overall_against_sentences  contradiction           2        1  50.00 %" in out
    first, following, *_ = out.splitlines()
    assert first.startswith(
        "1 of 2 labels contradicts itself; none looks suspicious. Look first at"
    )
    assert following == f"Next: labeler report {labels} -o report.html"
    assert re.search(r"0\.5\d  odd<U\+001B>\[31m", out)
    assert "[b]" in out
    assert "\x1b" not in out


def test_the_command_shows_rates_by_a_column_rows_and_json(labels: str, capsys: Captured) -> None:
    """One line a group; the others are for programs."""
    audit.audit(labels, by="part")
    lines = capsys.readouterr().out.splitlines()
    rows = [" ".join(line.split()[2:]) for line in lines if line.startswith("overall_against_s")]
    assert rows == ["x 1 0 0.00 % 0", "y 1 1 100.00 % 1"]
    audit.audit(labels, rows=True)
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert row["check"] == "overall_against_sentences"
    audit.audit(labels, as_json=True, checks="overall_against_sentences", top=0)
    whole = json.loads(capsys.readouterr().out)
    assert (whole["records"], whole["flagged"], whole["doubtful"]) == (2, 1, [])
    assert [entry["rate"] for entry in whole["checks"]] == [0.5]


def test_who_waits_at_a_terminal_sees_how_many_records_were_read(
    labels: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """On standard error; where that is no terminal, nothing is drawn."""
    audit.audit(labels)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    audit.audit(labels)
    drawn = capsys.readouterr().err
    assert "auditing" in drawn
    assert "2 records" in drawn


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": True, "as_json": True}, "rows cannot be combined with json"),
        ({"output": "found.txt"}, r"\.jsonl or \.csv"),
        ({"labels": None}, "name a label file"),
    ],
)
def test_wrong_use_is_told_before_anything_is_read(options: dict[str, Any], message: str) -> None:
    """Options that do not go together, files of another kind, no labels but for the list."""
    with pytest.raises(UsageError, match=message):
        audit.audit(**{"labels": "missing", **options})


def test_the_command_lists_every_check(capsys: Captured) -> None:
    """Without any labels."""
    audit.audit(listing=True)
    out = capsys.readouterr().out
    assert all(name in out for name in CHECKS)


def test_labels_on_standard_input_are_not_overwritten(
    labels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell may have opened them under a name that the command does not know."""
    with Path(labels).open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(UsageError, match="is an input"):
            audit.audit("-", output=labels)


def test_each_of_several_judges_has_its_name_and_its_table(
    tmp_path: Path, capsys: Captured
) -> None:
    """In the list of records, too; failures alone are counted."""
    audit.audit(file_of(tmp_path, *(relabeled(ODD, model=model) for model in ("m-1", "m-2"))))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["test/m-1:", "test/m-2:"]
    assert sum(line.endswith("(test/m-2)") for line in lines) == 1
    audit.audit(file_of(tmp_path, failure()), by="part")
    out = capsys.readouterr().out
    assert out.startswith("No labels. 1 row failed.")
    assert "failed: 1 refusal" in out


def test_a_file_without_labels_is_wrong_use(tmp_path: Path) -> None:
    """It says what is there instead."""
    with pytest.raises(UsageError, match="it is empty"):
        audit.audit(file_of(tmp_path))
    unread = LabelFailure(id="bad", reason="invalid_json", message="not JSON", attempts=0)
    file = file_of(tmp_path, score_record(), unread)
    expected = "no labels, but 1 record of kind .score.|has no labels; numbers of other records"
    for command in (audit.audit, audit.worst, report, labeler.load):
        with pytest.raises(UsageError, match=expected):
            command(file)
