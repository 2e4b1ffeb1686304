from __future__ import annotations

from pathlib import Path

import pytest

import labeler
from labeler.calculators import measure, select_metrics
from labeler.report.report_data import METRICS, PATTERNS, match_patterns
from support.labeled import record


def _values(
    relevance: float | None = 0.0,
    utilization: float | None = 1.0,
    completeness: float | None = 1.0,
    adherence: float | None = 1.0,
) -> dict[str, float | None]:
    return dict(zip(METRICS, (relevance, utilization, completeness, adherence), strict=True))


def _fitting(values: dict[str, float | None]) -> list[str]:
    fits = match_patterns(values)
    return [pattern.id for pattern, one in zip(PATTERNS, fits, strict=True) if one]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # The guide's own numbers, for its three patterns and for its two problem patterns.
        (_values(0.85, 0.40, 0.6, 0.0), ["retrieved_but_unused", "ungrounded"]),
        (_values(0.9, 0.3, 0.6, 0.0), ["retrieved_but_unused", "ungrounded"]),
        (_values(0.6, 0.6, 0.50, 1.0), ["grounded_but_incomplete"]),
        (_values(0.6, 0.6, 0.4, 1.0), ["grounded_but_incomplete"]),
        (_values(0.75, 0.80, 0.85, 1.0), ["comprehensive_and_grounded"]),
        (_values(0.6, 0.6, 0.6, 1.0), []),
        (_values(0.9, 0.3, 0.3, 1.0), ["retrieved_but_unused", "grounded_but_incomplete"]),
    ],
)
def test_the_guides_examples_fit_the_patterns_that_it_names(
    values: dict[str, float | None], expected: list[str]
) -> None:
    """A record may fit no pattern or several."""
    assert _fitting(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (_values(0.7, 0.5), True),
        (_values(0.6999, 0.5), False),
        (_values(0.7, 0.5001), False),
    ],
)
def test_thresholds_belong_to_the_pattern(
    values: dict[str, float | None], *, expected: bool
) -> None:
    """High is 0.7 or more, low is 0.5 or less."""
    assert match_patterns(values)[0] is expected


def test_an_undefined_value_leaves_open_only_what_it_decides() -> None:
    """Without completeness an adherent record may or may not be incomplete, another cannot be."""
    adherent, other = _values(0.9, 0.9, None, 1.0), _values(0.9, 0.9, None, 0.0)
    assert match_patterns(adherent) == (False, None, None, False)
    assert match_patterns(other) == (False, False, False, True)


def test_nothing_relevant_is_no_good_retrieval() -> None:
    """Where nothing is relevant the guide takes utilization for 0; relevance is 0 too."""
    row = measure(record(relevant=(), utilized=()), select_metrics(METRICS))
    values = {name: ratio.value for name, ratio in row.metrics.items()}
    assert values == _values(0.0, 0.0, None, 1.0)
    assert match_patterns(values) == (False, None, False, False)


def test_conditions_read_as_they_are_meant() -> None:
    """What a page prints of each pattern is what it asks for."""
    printed = [", ".join(map(str, pattern.conditions)) for pattern in PATTERNS]
    assert printed == [
        "relevance ≥ 0.7, utilization:capstone ≤ 0.5",
        "completeness ≤ 0.5, adherence = 1",
        "relevance ≥ 0.7, utilization:capstone ≥ 0.7, completeness ≥ 0.7, adherence = 1",
        "adherence = 0",
    ]


def test_a_pattern_of_an_unmeasured_metric_has_no_count(tmp_path: Path) -> None:
    """A dash and the reason, not 0 records: the embedded judge measures no completeness."""
    rows = Path(__file__).parents[2] / "examples" / "rows.jsonl"
    labels = labeler.label(rows, judge="embedded", progress=False)
    [page] = labels.report(tmp_path / "r.html")
    text = page.read_text(encoding="utf-8")
    assert text.count("Undefined: completeness not measured by judge.") == 2
