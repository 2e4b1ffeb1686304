from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from labeler.report import charts

SVG = "{http://www.w3.org/2000/svg}"


def _parsed(drawing: str) -> ET.Element:
    return ET.fromstring(str(drawing).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))  # noqa: S314 - our own drawing


def _floats(node: ET.Element, *names: str) -> tuple[float, ...]:
    return tuple(float(node.attrib[name]) for name in names)


def test_shares_fall_into_tenths() -> None:
    """Ten bins from 0 to 1; the last one holds 1 itself."""
    bins = charts.bins_of([0.05, 0.5, 1.0])
    assert [each.low for each in bins] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert [each.high for each in bins] == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert [each.closed for each in bins] == [False] * 9 + [True]


def test_a_histogram_counts_each_value_once() -> None:
    """A value at an edge belongs to the bin that begins there, and the highest to the last."""
    values = [0.0, 0.09, 0.1, 0.3, 0.3, 0.7, 0.9, 0.99, 1.0]
    assert charts.Histogram.of("m", values).counts == (2, 1, 0, 2, 0, 0, 0, 1, 0, 3)


@pytest.mark.parametrize("tenths", range(11))
def test_the_filter_of_a_bar_lets_its_values_through_and_no_others(tenths: int) -> None:
    """Edges as 0.1 + 0.2 come about are no trouble: both sides compare with the same numbers."""
    values = [tenths / 10, tenths * 0.1, 0.5]
    chart = charts.Histogram.of("m", values)
    for bin_, count in chart.rows:
        asked = bin_.filter("m")
        low, high = bin_.low, bin_.high
        inside = [
            v for v in values if low <= v and (v < high or (asked.get("closed") and v <= high))
        ]
        assert len(inside) == count


def test_verdicts_make_two_bins() -> None:
    """Where all values are 0 or 1 there is nothing between."""
    chart = charts.Histogram.of("adherence", [1, 0, 1, 1])
    assert [(str(bin_), count) for bin_, count in chart.rows] == [("0", 1), ("1", 3)]
    assert chart.bins[1].filter("adherence") == {
        "metric": "adherence",
        "low": 1.0,
        "high": 1.0,
        "closed": True,
    }


@pytest.mark.parametrize(
    ("values", "first", "last", "size"),
    [
        ([1.0, 5.0], 1.0, 5.0, 8),
        ([-0.5, 0.5], -0.5, 0.5, 10),
        ([0.0, 1.25], 0.0, 1.4, 7),
        ([3.0, 1003.0], 0.0, 1200.0, 6),
        ([2.0, 2.0], 2.0, 2.0, 1),
    ],
)
def test_other_values_get_round_edges(
    values: list[float], first: float, last: float, size: int
) -> None:
    """At most ten bins from a round number below the lowest to one above the highest."""
    bins = charts.bins_of(values)
    assert (bins[0].low, bins[-1].high, len(bins)) == (first, last, size)
    assert sum(charts.Histogram.of("m", values).counts) == len(values)


def test_values_beyond_all_measure_make_one_bin() -> None:
    """A third party's metric may have any number."""
    assert len(charts.bins_of([-1.7e308, 1.7e308])) == 1


def test_bars_are_as_high_as_their_counts() -> None:
    """The fullest bin takes the whole height, half as many half of it, from the base line up."""
    drawing = charts.Histogram.of("m", [0.0, 0.0, 0.55]).draw("h")
    bars = [node for node in _parsed(drawing).iter(f"{SVG}rect") if node.get("class") == "bar"]
    assert [_floats(bar, "y", "height") for bar in bars] == [(18.0, 96.0), (66.0, 48.0)]
    assert [_floats(bar, "x", "width") for bar in bars] == [(7.5, 29.8), (171.5, 29.8)]


def test_only_bins_that_hold_something_can_be_clicked() -> None:
    """Each has its filter and says in words what it stands for."""
    chart = charts.Histogram.of("m", [0.0, 0.0, 1.0, 0.5])
    hits = list(_parsed(chart.draw("h", [{"signature": 1}])).iter(f"{SVG}g"))
    assert [hit.get("aria-label") for hit in hits] == [
        "m 0 to below 0.1: 2 records",
        "m 0.5 to below 0.6: 1 record",
        "m 0.9 to 1: 1 record",
    ]
    assert json.loads(hits[2].attrib["data-filter"]) == [
        {"metric": "m", "low": 0.9, "high": 1.0, "closed": True},
        {"signature": 1},
    ]
    assert all((hit.get("role"), hit.get("tabindex")) == ("button", "0") for hit in hits)


def test_a_heat_map_counts_pairs() -> None:
    """A cell counts the records in its two bins; empty cells are not there."""
    heat = charts.Heat.of("x", "y", [(0.05, 0.95), (0.06, 0.91), (1.0, 0.0)])
    assert heat.counts == {(0, 9): 2, (9, 0): 1}
    assert [(str(a), str(b), n) for a, b, n in heat.rows] == [
        ("0 to below 0.1", "0.9 to 1", 2),
        ("0.9 to 1", "0 to below 0.1", 1),
    ]


def test_a_cell_stands_where_its_bins_are() -> None:
    """To the right for the one metric, upwards for the other; both filter."""
    heat = charts.Heat.of("x", "y", [(0.05, 0.95), (0.95, 0.05)])
    drawing = _parsed(heat.draw("m"))
    cells = [r for r in drawing.iter(f"{SVG}rect") if "cell" in r.attrib["class"]]
    assert [_floats(cell, "x", "y") for cell in cells] == [(45.0, 5.0), (306.0, 266.0)]
    first = json.loads(next(drawing.iter(f"{SVG}g")).attrib["data-filter"])
    assert [(part["metric"], part["low"], part["high"]) for part in first] == [
        ("x", 0.0, 0.1),
        ("y", 0.9, 1.0),
    ]


@pytest.mark.parametrize(
    ("count", "most", "level"), [(1, 1, 5), (1, 100, 1), (25, 100, 3), (99, 100, 4), (100, 100, 5)]
)
def test_shades_grow_with_the_root_of_the_count(count: int, most: int, level: int) -> None:
    """The fullest cell alone has the last shade."""
    assert charts.level_of(count, most) == level


def test_a_difference_lies_on_its_side_of_zero() -> None:
    """On a line of 160 units from -0.2 to 0.2, with 0 in its middle, that begins 6 units in."""
    drawing = _parsed(charts.draw_difference(0.1, (-0.05, 0.2), 0.2))
    axis, line = drawing.iter(f"{SVG}path")
    assert axis.get("d") == "M6 8H166M86 0V16"
    assert line.get("d") == "M66 8H166M66 2V14M166 2V14"
    assert _floats(next(drawing.iter(f"{SVG}circle")), "cx", "cy") == (126.0, 8.0)
    assert "interval" not in charts.draw_difference(0.1, None)


@pytest.mark.parametrize(
    ("values", "ends"),
    [([0.27, 0.41], (0.0, 1.0)), ([0.5, 1.3], (0.0, 1.4)), ([-0.5, 0.5], (-0.5, 0.5))],
)
def test_the_ends_of_a_line_are_round(values: list[float], ends: tuple[float, float]) -> None:
    """So that the two numbers above it are short; 0 lies between them."""
    assert charts.scale_of(values) == pytest.approx(ends)


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


@pytest.mark.parametrize(
    ("count", "text"), [(9_999, "9999"), (12_345, "12.3k"), (123_456, "123k"), (0, "0")]
)
def test_counts_fit_into_their_bars(count: int, text: str) -> None:
    """The tables and what is spoken have them in full."""
    assert charts.brief(count) == text


def test_a_drawing_names_itself_and_has_no_style_of_its_own() -> None:
    """A title and a description that it refers to; a page forbids styles within."""
    chart = charts.Histogram.of('<m "x">', [0.1, 0.2])
    drawing = chart.draw("h7")
    root = _parsed(drawing)
    assert root.get("aria-labelledby") == "h7-t h7-d"
    assert root.find(f"{SVG}title[@id='h7-t']") is not None
    assert root.find(f"{SVG}desc[@id='h7-d']") is not None
    assert not re.search(r"\sstyle=|\son\w+=|<m", drawing)
