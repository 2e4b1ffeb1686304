"""The metrics command over label files, folders, patterns and stores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

import labeler
from labeler import api
from labeler.calculators.intervals import Intervals
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.version import __version__
from support.command import Command
from support.labeled import claims_output, failure, record, says
from support.records import sample_failure
from support.samples import signature
from support.scored import record as score_record


def labels() -> list[AnyOutcome]:
    """Labels of two profiles, and failures of all kinds."""
    found: list[AnyOutcome] = [
        record(
            id=f"r{n}",
            documents=(2, 1, n),
            relevant=["0a"] if n % 3 else [],
            metadata={"half": n % 2},
        )
        for n in range(9)
    ]
    found.append(LabelFailure(id="f:1", reason="invalid_json", message="", metadata={"half": 1}))
    found.append(sample_failure().model_copy(update={"signature": signature()}))
    found.append(record(id="c", answer=claims_output([says("a", ["0a"])])))
    return found


def written(path: Path, outcomes: Iterable[AnyOutcome]) -> Path:
    """A label file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    api.write_labels(outcomes, path)
    return path


@pytest.fixture(params=["l.jsonl", "l.jsonl.gz", "l.parquet", "in", "in/*/*.parquet", "several"])
def sources(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """The labels in every form that the command reads, with copies in several files."""
    made, folder = labels(), tmp_path / "in"
    if request.param.startswith("l."):
        return [written(tmp_path / request.param, made)]
    first = written(folder / "day=1" / "a.parquet", made[:5])
    second = written(folder / "day=2" / "a.parquet", made[3:8])
    if request.param == "several":
        return [first, second, written(tmp_path / "l.jsonl", made[8:])]
    written(folder / "day=2" / "b.parquet", made[8:])
    written(folder / "day=3" / "none.parquet", [])
    return [tmp_path / request.param]


@pytest.mark.parametrize(
    "options", ["", "--by half --group question", "--group half --metrics all"]
)
def test_every_form_of_labels_has_the_numbers_of_the_records(
    sources: list[Path], options: str, labeler_command: Command
) -> None:
    """Copies in several files count once."""
    given = dict(zip(options.split()[::2], options.split()[1::2], strict=True))
    intervals = Intervals(group=given.get("--group"))
    rows = labeler.summary(
        labels(), given.get("--metrics"), by=given.get("--by"), intervals=intervals
    )
    code, out, _ = labeler_command("metrics", *sources, "--json", *options.split())
    expected = json.loads(json.dumps([row.as_json(__version__) for row in rows]))
    assert code == 0
    assert [{**row, "duplicates": 0} for row in json.loads(out)] == expected


def test_a_store_has_the_numbers_of_its_labels(labeler_command: Command) -> None:
    """It keeps no failures."""
    kept = [one for one in labels() if not isinstance(one, LabelFailure)]
    labeler.store.import_labels(kept, "store")
    code, out, _ = labeler_command("metrics", "store", "--json")
    rows = labeler.summary(kept, intervals=Intervals())
    assert (code, json.loads(out)) == (0, [row.as_json(__version__) for row in rows])


@pytest.mark.parametrize("option", ["--by", "--group"])
def test_a_column_that_no_row_has_is_named(labeler_command: Command, option: str) -> None:
    """With the existing columns."""
    written(Path("l.jsonl"), labels())
    code, _, err = labeler_command("metrics", "l.jsonl", option, "nothing")
    assert (code, "no row has a column 'nothing'" in err) == (2, True)
    assert "half" in err.partition("columns:")[2]


@pytest.mark.parametrize("first", ["label", "score", "unread"])
def test_scores_next_to_labels_are_printed_too(
    labeler_command: Command, tmp_path: Path, first: str
) -> None:
    """An unreadable row counts as what the first readable one is."""
    unread = LabelFailure(id="f:1", reason="invalid_json", message="")
    signed = [one for one in labels() if one.signature]
    outcomes = {
        "label": [unread, *signed, score_record()],
        "score": [score_record(), unread, *signed],
        "unread": [unread, score_record(), *signed],
    }[first]
    path = written(tmp_path / "l.jsonl", outcomes)
    found = json.loads(labeler_command("metrics", path, "--json")[1])
    unreadable = {
        row["metric"].partition(":")[0] for row in found if "invalid_json" in row["failed"]
    }
    assert ("tone" in unreadable, "relevance" in unreadable) == (first != "label", first == "label")


def test_failed_rows_have_their_reasons(labeler_command: Command, tmp_path: Path) -> None:
    """Below the table, also where no row has a label."""
    path = written(tmp_path / "l.jsonl", [failure("a"), failure("b")])
    assert "\nfailed: 2 refusal\n" in labeler_command("metrics", path)[1]


def test_labels_with_a_number_too_large_are_read(labeler_command: Command, tmp_path: Path) -> None:
    """JSON holds it, and no float does."""
    made = record(metadata={"half": "PLACE"})
    path = written(tmp_path / "l.jsonl", [made, record(id="b", metadata={"half": 1})])
    path.write_text(path.read_text().replace('"PLACE"', "1e999"))
    code, out, _ = labeler_command("metrics", path, "--json", "--by", "half")
    assert (code, {row["group"] for row in json.loads(out)}) == (0, {"1", "Infinity"})
