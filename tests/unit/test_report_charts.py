from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import labeler
from labeler.api import write_labels
from labeler.calculators import measure, select_metrics
from labeler.data.corrections.file import CorrectionsFile
from labeler.report import charts
from labeler.report.page import isolated
from labeler.report.report_data import METRICS, PATTERNS, match_patterns
from labeler.report.views import label_view, record_view
from support.command import Command
from support.judged import correction
from support.labeled import record, relabeled
from support.pages import read_page

SVG = "{http://www.w3.org/2000/svg}"


def _parsed(drawing: str) -> ET.Element:
    return ET.fromstring(str(drawing).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))  # noqa: S314 - our own drawing


def _floats(node: ET.Element, *names: str) -> tuple[float, ...]:
    return tuple(float(node.attrib[name]) for name in names)


def test_shares_fall_into_tenths_and_verdicts_into_two_bins() -> None:
    """A value at an edge belongs to the bin that begins there, and 1 to the last one."""
    bins = charts.bins_of([0.05, 0.5, 1.0])
    edges = [(n / 10, (n + 1) / 10, n == 9) for n in range(10)]
    assert [(each.low, each.high, each.closed) for each in bins] == edges
    values = [0.0, 0.09, 0.1, 0.3, 0.3, 0.7, 0.9, 0.99, 1.0]
    assert [count for _, count in charts.count_bins(values)] == [2, 1, 0, 2, 0, 0, 0, 1, 0, 3]
    # Where all values are 0 or 1 there is nothing between.
    counted = charts.count_bins([1, 0, 1, 1])
    assert [(str(bin_), count) for bin_, count in counted] == [("0", 1), ("1", 3)]
    ends = [{"metric": "m", "low": end, "high": end, "closed": True} for end in (0.0, 1.0)]
    assert [bin_.filter("m") for bin_, _ in counted] == ends


@pytest.mark.parametrize("tenths", range(11))
def test_the_filter_of_a_bar_lets_its_values_through_and_no_others(tenths: int) -> None:
    """Edges as 0.1 + 0.2 come about are no trouble: both sides compare with the same numbers."""
    values = [tenths / 10, tenths * 0.1, 0.5]
    for bin_, count in charts.count_bins(values):
        low, high = bin_.low, bin_.high
        closed = bin_.filter("m").get("closed")
        assert sum(low <= v < high or bool(closed and v == high) for v in values) == count


@pytest.mark.parametrize(
    ("values", "first", "last", "size"),
    [
        ([1.0, 5.0], 1.0, 5.0, 8),
        ([-0.5, 0.5], -0.5, 0.5, 10),
        ([0.0, 1.25], 0.0, 1.4, 7),
        ([3.0, 1003.0], 0.0, 1200.0, 6),
        ([2.0, 2.0], 2.0, 2.0, 1),
        ([-1.7e308, 1.7e308], -1.7e308, 1.7e308, 1),
    ],
)
def test_other_values_get_round_edges(
    values: list[float], first: float, last: float, size: int
) -> None:
    """At most ten bins from a round number below the lowest to one above the highest."""
    bins = charts.bins_of(values)
    assert (bins[0].low, bins[-1].high, len(bins)) == (first, last, size)
    assert sum(count for _, count in charts.count_bins(values)) == len(values)


def test_only_bins_that_hold_something_can_be_clicked() -> None:
    """Each has its filter and says in words what it stands for."""
    chart = charts.histogram("m", [0.0, 0.0, 1.0, 0.5], "h", [{"signature": 1}])
    hits = list(_parsed(chart.drawing).iter(f"{SVG}g"))
    places = ("m 0 to below 0.1: 2 records", "m 0.5 to below 0.6: 1 record", "m 0.9 to 1: 1 record")
    assert tuple(hit.get("aria-label") for hit in hits) == places
    last = {"metric": "m", "low": 0.9, "high": 1.0, "closed": True}
    assert json.loads(hits[2].attrib["data-filter"]) == [last, {"signature": 1}]
    assert all((hit.get("role"), hit.get("tabindex")) == ("button", "0") for hit in hits)


def test_a_cell_stands_where_its_bins_are() -> None:
    """To the right for the one metric, upwards for the other; both filter."""
    drawing = _parsed(charts.heat_map("x", "y", [(0.05, 0.95), (0.95, 0.05)], "m").drawing)
    cells = [r for r in drawing.iter(f"{SVG}rect") if "cell" in r.attrib["class"]]
    assert [_floats(cell, "x", "y") for cell in cells] == [(45.0, 5.0), (306.0, 266.0)]
    first, last = drawing.iter(f"{SVG}g")
    assert {hit.attrib["aria-label"].rpartition(": ")[2] for hit in (first, last)} == {"1 record"}
    x, y = json.loads(first.attrib["data-filter"])
    assert (x["metric"], x["low"], x["high"]) == ("x", 0.0, 0.1)
    assert (y["metric"], y["low"], y["high"]) == ("y", 0.9, 1.0)


def test_a_difference_lies_on_its_side_of_zero() -> None:
    """On a line of 160 units from -0.2 to 0.2, with 0 in its middle, that begins 6 units in."""
    drawing = _parsed(charts.draw_difference(0.1, (-0.05, 0.2), 0.2))
    axis, line = drawing.iter(f"{SVG}path")
    assert axis.get("d") == "M6 8H166M86 0V16"
    assert line.get("d") == "M66 8H166M66 2V14M166 2V14"
    assert _floats(next(drawing.iter(f"{SVG}circle")), "cx", "cy") == (126.0, 8.0)
    assert "interval" not in charts.draw_difference(0.1, None)


@pytest.mark.parametrize(
    ("value", "scale", "bar"), [(0.25, (0, 1), (6.0, 40.0)), (-0.5, (-1, 1), (46.0, 40.0))]
)
def test_a_bar_begins_at_zero(
    value: float, scale: tuple[float, float], bar: tuple[float, float]
) -> None:
    """Place and length of a quarter of 160 units, to the right or to the left."""
    drawing = _parsed(charts.draw_bar(value, (0.1, 0.2), scale))
    [drawn] = (each for each in drawing.iter(f"{SVG}rect") if each.get("class") == "bar")
    assert _floats(drawn, "x", "width") == bar
    assert drawing.find(f"{SVG}path[@class='interval']") is not None


def test_a_drawing_names_itself_and_has_no_style_of_its_own() -> None:
    """A title and a description that it refers to; a page forbids styles within."""
    drawing = charts.histogram('<m "x">', [0.1, 0.2], "h7").drawing
    root = _parsed(drawing)
    assert root.get("aria-labelledby") == "h7-t h7-d"
    assert root.find(f"{SVG}title[@id='h7-t']") is not None
    assert root.find(f"{SVG}desc[@id='h7-d']") is not None
    assert not re.search(r"\sstyle=|\son\w+=|<m", drawing)


@pytest.fixture
def labels(labeler_command: Command) -> Path:
    """A label file of 120 records in the working folder."""
    del labeler_command
    made = (record(id=f"r{n}", metadata={"domain": "ab"[n % 2]}) for n in range(120))
    write_labels(made, path := Path("labels.jsonl"))
    return path


def test_options_reach_the_page(labeler_command: Command, labels: Path) -> None:
    """Column, metrics and how intervals are found; the page is report.html by default."""
    options = ["--by", "domain", "--metrics", "relevance", "--level", 0.9, "--group", "domain"]
    code, _, err = labeler_command("report", labels, *options)
    assert code == 0, err
    page = read_page(Path("report.html"))
    index = page.blocks["index"]
    assert (index["name"], index["metrics"]) == ("labels.jsonl", ["relevance"])
    assert index["subset"] == {"column": "domain", "values": ["a", "b"]}
    assert "90 % intervals of the mean: " in page.texts
    assert "records grouped by domain" in page.texts


@pytest.mark.parametrize(
    ("source", "output", "words"),
    [
        ("labels.jsonl", "labels.jsonl", "is an input"),
        ("report.html", "report.html", "is an input"),
        ("labels.jsonl", "labels.corrections.jsonl", "what people said"),
        ("labels.jsonl", "-", "a report is a page or a folder"),
        ("labels.jsonl", "report.pdf", "a report is a page or a folder"),
        ("none.jsonl", "report.html", "none.jsonl"),
    ],
)
def test_no_report_overwrites_work(
    labeler_command: Command, labels: Path, source: str, output: str, words: str
) -> None:
    """Labels cost money, and corrections are people's work; a wrong name writes nothing."""
    CorrectionsFile("labels.corrections.jsonl").append(correction(record(id="r0")))
    shutil.copy(labels, "report.html")
    before = {path.name: path.read_bytes() for path in labels.parent.iterdir()}
    code, _, err = labeler_command("report", source, "-o", output)
    assert (code, words in err) == (2, True)
    assert {path.name: path.read_bytes() for path in labels.parent.iterdir()} == before


UNUSED, INCOMPLETE, GOOD, UNGROUNDED = (pattern.id for pattern in PATTERNS)


def _fitting(*values: float | None) -> dict[str, bool | None]:
    """The patterns that a record with values of METRICS matches, or may match."""
    fits = match_patterns(dict(zip(METRICS, values, strict=True)))
    return {p.id: one for p, one in zip(PATTERNS, fits, strict=True) if one is not False}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # The guide's own numbers, for its three patterns and for its two problem patterns.
        ((0.85, 0.40, 0.6, 0.0), {UNUSED: True, UNGROUNDED: True}),
        ((0.9, 0.3, 0.6, 0.0), {UNUSED: True, UNGROUNDED: True}),
        ((0.6, 0.6, 0.50, 1.0), {INCOMPLETE: True}),
        ((0.6, 0.6, 0.4, 1.0), {INCOMPLETE: True}),
        ((0.75, 0.80, 0.85, 1.0), {GOOD: True}),
        ((0.6, 0.6, 0.6, 1.0), {}),
        ((0.9, 0.3, 0.3, 1.0), {UNUSED: True, INCOMPLETE: True}),
        # High is 0.7 or more, low is 0.5 or less.
        ((0.7, 0.5, 1.0, 1.0), {UNUSED: True}),
        ((0.6999, 0.5, 1.0, 1.0), {}),
        ((0.7, 0.5001, 1.0, 1.0), {}),
        # Without completeness an adherent record may be incomplete; another cannot be.
        ((0.9, 0.9, None, 1.0), {INCOMPLETE: None, GOOD: None}),
        ((0.9, 0.9, None, 0.0), {UNGROUNDED: True}),
    ],
)
def test_a_record_matches_no_pattern_or_several(
    values: tuple[float | None, ...], expected: dict[str, bool | None]
) -> None:
    """An undefined value leaves open only what it decides."""
    assert _fitting(*values) == expected


def test_what_is_not_measured_matches_no_pattern(tmp_path: Path) -> None:
    """It is left out; where nothing is relevant, relevance and utilization are 0."""
    row = measure(record(relevant=(), utilized=()), select_metrics(METRICS))
    values = [row.metrics[name].value for name in METRICS]
    assert values == [0.0, 0.0, None, 1.0]
    assert _fitting(*values) == {INCOMPLETE: None}
    rows = Path(__file__).parents[2] / "examples" / "rows.jsonl"
    [page] = labeler.label(rows, judge="embedded", progress=False).report(tmp_path / "r.html")
    text = page.read_text(encoding="utf-8")
    assert text.count("relevant sentences used (not measured by judge)") == 1
    assert ("Ungrounded</span>" in text, "Grounded, incomplete</span>" in text) == (True, False)


def test_a_sentence_that_was_judged_twice_shows_the_no() -> None:
    """As metrics count it, whichever came last; labels from elsewhere may judge one twice."""
    judged = record(support={"a": ["0a"]})
    (yes,) = judged.label.sentence_support_information
    changes = {"explanation": "Nowhere.", "supporting_sentence_keys": (), "fully_supported": False}
    no = yes.model_copy(update=changes)
    for entries in ((yes, no), (no, yes)):
        label = judged.label.model_copy(update={"sentence_support_information": entries})
        shown = label_view(judged.model_copy(update={"label": label}))["support"]["a"]
        assert shown == {"supported": False, "keys": [], "explanation": "Nowhere."}


def test_citation_markers_name_their_documents() -> None:
    """By index; a sentence without a marker says nothing of it."""
    made = record(documents=[1, 1], support={"a": ["0a"], "b": ["1a"]}, citing=[" [2][9]"])
    first, second = record_view(made)["response"]
    assert first["cites"] == [
        {"marker": "[2]", "documents": [1], "missing": []},
        {"marker": "[9]", "documents": [], "missing": [9]},
    ]
    assert "cites" not in second


def test_a_view_has_the_conversation_only_where_there_is_one() -> None:
    """Turns with their speakers, tool outputs with the tool's name, controls written out."""
    made = record(turns=1, support={"a": ["h0b", "t0a"]})
    tool = replace(made.example.tool_outputs[0], name="cl\u202eock")
    view = record_view(relabeled(made, {"tool_outputs": (tool,)}))
    [turn], [output] = view["history"], view["tool_outputs"]
    assert (turn["role"], [one["key"] for one in turn["sentences"]]) == ("user", ["h0a", "h0b"])
    assert output == {"name": "cl<U+202E>ock", "sentences": [{"key": "t0a", "text": "18"}]}
    assert view.keys() - record_view(record()).keys() == {"history", "tool_outputs"}


def test_names_that_are_written_from_right_to_left_keep_their_place() -> None:
    """A sentence shows them whole, and what follows them after them."""
    found = isolated("11 of 24, least for מרפאה 2: 5 of 12; in נמל, -.1 <b>\u202e")
    shown = "11 of 24, least for <bdi>מרפאה</bdi> 2: 5 of 12; in <bdi>נמל</bdi>, -.1 "
    assert found == f"{shown}&lt;b&gt;&lt;U+202E&gt;"
