"""Labels as data frames that join to the rows they judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import labeler
from labeler import Labels, MemoryStore
from labeler.errors import UsageError

RESPONSES = {30: "A lamp.", 10: "", 20: "A lamp. Cats fly over Paris."}
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "question": "What?",
        "documents": ["A lamp.", "It is red."],
        "response": response,
        "team": team,
        "failed": number / 4,
    }
    for (number, response), team in zip(RESPONSES.items(), ["a", 7, None], strict=True)
]


def labeled(rows: Any) -> Labels:
    """Return labels of rows by the embedded judge; the second row fails."""
    return labeler.label(rows, judge="embedded", store=MemoryStore())


def test_a_row_for_each_row_in_input_order() -> None:
    """Texts, metadata of one type each, metrics with reasons, and the worst sentence."""
    frame = labeled(ROWS).to_polars("adherence", documents=True)
    assert frame.columns == [
        *("id", "question", "response", "documents", "team", "metadata.failed", "failed"),
        *("adherence", "adherence.reason", "worst_sentence", "explanation"),
    ]
    assert frame["id"].to_list() == [30, 10, 20]
    assert frame["response"].to_list() == ["A lamp.", None, "A lamp. Cats fly over Paris."]
    documents = frame["documents"].to_list()
    assert documents == [["A lamp.", "It is red."], None, ["A lamp.", "It is red."]]
    assert frame["team"].to_list() == ["a", "7", None]
    assert frame["metadata.failed"].to_list() == [7.5, 2.5, 5.0]
    assert frame["adherence"].to_list() == [1.0, None, 0.0]
    assert frame["adherence.reason"].to_list() == [None, "failed:empty_response", None]
    assert frame["worst_sentence"].to_list() == [None, None, "Cats fly over Paris."]
    assert [bool(text) for text in frame["explanation"]] == [False, False, True]


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        (ROWS, [30, 10, 20]),
        (pl.DataFrame(ROWS, strict=False), [30, 10, 20]),
        (pl.DataFrame(ROWS, strict=False).to_arrow(), [30, 10, 20]),
        (pl.DataFrame(ROWS, strict=False).lazy(), [30, 10, 20]),
        ([{**row, "id": str(row["id"])} for row in ROWS], ["30", "10", "20"]),
        ([{**row, "id": f"0{row['id']}"} for row in ROWS], ["030", "010", "020"]),
    ],
    ids=["mappings", "polars", "arrow", "lazy", "texts", "zeros"],
)
def test_ids_have_the_type_that_they_came_in(rows: Any, ids: list[Any]) -> None:
    """In parts of labels too."""
    labels = labeled(rows)
    assert labels.to_polars("adherence")["id"].to_list() == ids
    assert labels[1:].to_polars("adherence")["id"].to_list() == ids[1:]


def test_ids_of_a_file_are_keys_of_its_labels(tmp_path: Path) -> None:
    """Texts, even if all look like numbers: a number is a position."""
    (tmp_path / "rows.csv").write_text(
        'id,question,documents,response\n2,Why?,"[""A lamp.""]",A lamp.\n0,Who?,"[""A.""]",A.\n'
    )
    for labels in (
        labeler.load(labeled(ROWS).save(tmp_path / "labels.jsonl")),
        labeled(tmp_path / "rows.csv"),
    ):
        ids = labels.to_polars("adherence")["id"].to_list()
        assert [labels[id_].id for id_ in ids] == ids
        assert [labels.metrics()[place].id for place in range(len(ids))] == ids


def test_a_position_that_is_the_id_of_another_row_is_rejected() -> None:
    """Where ids came as whole numbers; the error names the key and the position."""
    labels = labeled([{**row, "id": number} for row, number in zip(ROWS, [2, 1, 0], strict=True)])
    for found in (labels, labels.metrics(), labels[:]):
        assert found[1].id == found["1"].id == found[-2].id == "1"
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


def test_no_labels_are_an_empty_frame() -> None:
    """With the columns that every frame has."""
    assert Labels([]).to_polars().columns[:3] == ["id", "question", "response"]
