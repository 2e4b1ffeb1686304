"""Tables on terminals of any width: figures stand whole."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import labeler
from labeler import Labels, MemoryStore
from labeler.errors import UsageError
from labeler.sentences.display import Column, Grid
from support.command import Command

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"

LONG = "noise_sensitivity_of_irrelevant_documents_in_claims"
FIGURES = ["0.1234", "0.111-0.222", "0.5678", "1234"]
COLUMNS = [
    Column("metric", words=True),
    Column("mean"),
    Column("interval"),
    Column("pooled", drop=2),
    Column("defined\nhere", drop=1),
]


def rendered(grid: Grid, width: int) -> str:
    """What is shown where there is so much room."""
    head, body = grid.block(width)
    return f"{head}\n{body}\n"


@pytest.mark.parametrize("width", [10, 40, 80, 100])
def test_figures_stand_whole_at_any_width(width: int) -> None:
    """Columns are given up and names folded until it fits; no letter of a name is lost."""
    grid = Grid(COLUMNS, [[LONG, *FIGURES]])
    shown = rendered(grid, width)
    assert set(FIGURES) <= set(shown.split())
    assert "…" not in shown
    if width > 10:
        shown = rendered(grid.fit(width)[0], width)
        assert max(map(len, shown.splitlines())) <= width
        _, body = shown.split("─\n")
        assert "".join(line.split(" ")[0] for line in body.splitlines()) == LONG


@pytest.mark.parametrize(
    ("width", "names"), [(100, []), (70, ["defined here"]), (62, ["defined here", "pooled"])]
)
def test_columns_that_matter_least_go_first(width: int, names: list[str]) -> None:
    """No more than the width asks for, where names are folded, and what stays is what matters."""
    grid, spared = Grid(COLUMNS, [[LONG, *FIGURES]]).fit(width)
    assert spared == names
    assert [column.name for column in grid.columns[:3]] == ["metric", "mean", "interval"]


def test_parts_hold_every_column_once_and_the_names_in_each() -> None:
    """Nothing is given up where a table goes on below."""
    parts = Grid(COLUMNS, [["a", *FIGURES]]).split(30)
    assert [[column.name for column in part.columns] for part in parts] == [
        ["metric", "mean", "interval"],
        ["metric", "pooled", "defined here"],
    ]
    assert parts[1].rows == [["a", "0.5678", "1234"]]


def test_a_name_that_ends_in_very_many_spaces_is_folded() -> None:
    """Names are of strangers; so many would take hours if each were looked at for each."""
    names = ["a" + " " * 1_000_000, " " * 1_000_000, "b"]
    _, body = Grid([Column("name", words=True)], [[name] for name in names]).block(80)
    assert [line.rstrip() for line in body.split("\n")[1:]] == ["a", "", "b"]


def test_headings_and_cells_are_escaped() -> None:
    """A group of strangers may be a heading; so it stands above its figures, and steers nothing."""
    shown = rendered(Grid([Column("check"), Column("\x1b[31mred")], [["a", "\x1b[2J"]]), 80)
    assert shown.splitlines()[0].endswith("  <U+001B>[31mred")
    assert len({len(line) for line in shown.splitlines()}) == 1
    assert "\x1b" not in shown


@pytest.mark.parametrize("width", [80, 100])
def test_figures_of_commands_stand_whole(
    labeler_command: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Means, intervals and groups; what was left out is said."""
    monkeypatch.setattr("labeler.sentences.display.WIDTH", width)
    labels = "labels.jsonl"
    asked = ("label", EXAMPLES, "--judge", "embedded", "--profile", "claims", "-o", labels)
    assert labeler_command(*asked)[0] == 0
    summary = json.loads(labeler_command("metrics", labels, "--json")[1])
    shown = labeler_command("metrics", labels, "--details")[1]
    for row in (row for row in summary if row["defined"]):
        name, interval = row["metric"], row["interval"]
        found = re.search(rf"^{name} +[↑↓].*? {row['mean']:.4f} +(\S+)", shown, re.MULTILINE)
        assert found
        mark = "*" if interval["small_sample"] else ""
        assert found[1] == f"{interval['low']:.3f}-{interval['high']:.3f}{mark}"
    assert "\n* small sample: " in shown
    assert ("columns hidden to fit the terminal: v, pooled" in shown) is (width == 80)
    lines = labeler_command("metrics", labels, "--by", "domain")[1].splitlines()
    assert "answers fully supported (adherence)" in lines
    groups = ("clinic", "harbour", "museum", "software")
    assert [line.split()[0] for line in lines if line.startswith(groups)] == list(groups)
    assert "…" not in shown


ROWS: list[dict[str, Any]] = [
    {"id": 30, "response": "A lamp.", "team": "a", "failed": 7.5},
    {"id": 10, "response": "", "team": 7, "failed": 2.5},
    {"id": 20, "response": "A lamp. Cats fly over Paris.", "team": None, "failed": 5.0},
]
ROWS = [{"question": "What?", "documents": ["A lamp.", "It is red."], **row} for row in ROWS]


def labeled(rows: Any) -> Labels:
    """Return labels of rows by the embedded judge; the second row fails."""
    return labeler.label(rows, judge="embedded", store=MemoryStore())


def test_a_row_for_each_row_in_input_order() -> None:
    """Texts, metadata of one type each, metrics with reasons, and the worst sentence."""
    found = labeled(ROWS).to_polars("adherence", documents=True).to_dict(as_series=False)
    assert [bool(text) for text in found.pop("explanation")] == [False, False, True]
    assert found == {
        "id": [30, 10, 20],
        "question": ["What?", None, "What?"],
        "response": ["A lamp.", None, "A lamp. Cats fly over Paris."],
        "documents": [["A lamp.", "It is red."], None, ["A lamp.", "It is red."]],
        "team": ["a", "7", None],
        "metadata.failed": [7.5, 2.5, 5.0],
        "failed": [None, "empty_response", None],
        "adherence": [1.0, None, 0.0],
        "adherence.reason": [None, "failed:empty_response", None],
        "worst_sentence": [None, None, "Cats fly over Paris."],
    }
    assert Labels([]).to_polars().columns[:3] == [*found][:3]


FRAME = pl.DataFrame(ROWS, strict=False)


@pytest.mark.parametrize(
    "rows",
    [
        *(ROWS, FRAME, FRAME.to_arrow(), FRAME.lazy()),
        [{**row, "id": str(row["id"])} for row in ROWS],
        [{**row, "id": f"0{row['id']}"} for row in ROWS],
    ],
    ids=["mappings", "polars", "arrow", "lazy", "texts", "zeros"],
)
def test_ids_have_the_type_that_they_came_in(rows: Any) -> None:
    """In parts of labels too."""
    labels = labeled(rows)
    ids = [row["id"] for row in (rows if isinstance(rows, list) else ROWS)]
    assert labels.to_polars("adherence")["id"].to_list() == ids
    assert labels[1:].to_polars("adherence")["id"].to_list() == ids[1:]


def test_ids_of_a_file_are_keys_of_its_labels(tmp_path: Path) -> None:
    """Texts, even if all look like numbers: a number is a position."""
    rows = tmp_path / "rows.csv"
    rows.write_text('id,question,documents,response\n2,Why?,"[""A.""]",A.\n0,Who?,"[""A.""]",A.\n')
    saved = labeled(ROWS).save(tmp_path / "labels.jsonl")
    for labels in (labeler.load(saved), labeled(rows)):
        ids = labels.to_polars("adherence")["id"].to_list()
        assert [labels[id_].id for id_ in ids] == ids
        assert [labels.metrics()[place].id for place in range(len(ids))] == ids


def test_rows_of_metrics_are_shown_with_values_and_reasons() -> None:
    """A table has a dash for an undefined value; a row says why."""
    found = labeled(ROWS).metrics("adherence")
    shown = [line.split() for line in str(found).splitlines()[4:]]
    assert shown == [["30", "1.0000"], ["10", "-"], ["20", "0.0000"]]
    states = [str(row).partition("\n")[0] for row in found]
    assert states == ["'30': metrics", "'10': failed: empty_response", "'20': metrics"]


def test_a_verdict_without_any_explanation_has_its_probability() -> None:
    """A label with one explanation has others where it says nothing."""
    record: Any = labeled(ROWS)["30"]
    (entry,) = record.label.sentence_support_information
    assert record.why(entry) == entry.explanation != ""
    silent = entry.model_copy(update={"explanation": ""})
    changes = {"relevance_explanation": "", "sentence_support_information": [silent]}
    for overall, said in (("All of it.", ""), ("", "probability of support 0.")):
        update = changes | {"overall_supported_explanation": overall}
        made = record.model_copy(update={"label": record.label.model_copy(update=update)})
        assert made.why(silent)[:25] == said
        assert made.lacks_explanations == (not overall)


def test_a_position_that_is_the_id_of_another_row_is_rejected() -> None:
    """Where ids came as whole numbers; the error names the key and the position."""
    labels = labeled([{**row, "id": number} for row, number in zip(ROWS, [2, 1, 0], strict=True)])
    for found in (labels, labels.metrics(), labels[:]):
        assert found[1].id == found[-2].id == "1"
        assert [found[one].id for one in "210"] == [*"210"]
        with pytest.raises(UsageError, match=r"its text, \['0'\], .*list\(…\)\[0\]"):
            found[0]
    assert [one.id for one in reversed(labels)] == ["0", "1", "2"]
    assert labels.index(labels["0"]) == 2
    assert labels.failures.to_polars()["id"].to_list() == [1]


def test_pandas_joins_by_index_and_by_id() -> None:
    """With an index of the user's own that repeats; tests/notebook has pandas."""
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(ROWS, index=[7, 7, 3])
    frame = labeled(rows).frame
    assert frame.index.tolist() == [7, 7, 3]
    rows["adherence"] = frame["adherence"]
    assert rows["adherence"].fillna(-1).tolist() == [1.0, -1, 0.0]
    merged = rows.merge(frame[["id", "relevance"]], on="id")
    assert merged["id"].tolist() == [30, 10, 20]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_library_that_is_not_there_is_named(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=f"{library} is not installed: pip .*install {library}"):
        getattr(labeled(ROWS), f"to_{library}")()
