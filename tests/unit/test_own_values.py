"""Values of a user's own metric that are no numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest

import labeler
from labeler.calculators import METRICS, Metric, Ratio, measure
from labeler.calculators.registry import metric
from labeler.comparing.checking import check_drops, check_rows
from labeler.comparing.compare import compare
from labeler.comparing.gates import Gate
from labeler.errors import UsageError
from support.labeled import record

NOT_NUMBERS = [
    Ratio(math.nan, 1),  # type: ignore[arg-type]  # as users' metrics give them
    Ratio(math.inf, 2),  # type: ignore[arg-type]
    Ratio(1, math.inf),  # type: ignore[arg-type]
    Ratio(10**400, 1),
    Ratio(0, 0, None, math.nan),
]


@pytest.fixture(params=NOT_NUMBERS)
def endless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Metric:
    """A metric of a user that is no number for one record."""
    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))
    decorate = metric("endless", definition="own", needs=(), source="us", formula="?", default=True)
    decorate(lambda counted: request.param if len(counted.unsupported) > 1 else Ratio(1, 2))
    return METRICS["endless"]


def test_a_value_that_is_no_number_is_undefined(endless: Metric) -> None:
    """In summaries, gates and comparisons, with the record's id; JSON stays valid."""
    labels = [record(id="r1"), record(id="r7", support={"a": [], "b": []})]
    (row,) = labeler.summary(labels, "endless")
    assert (row.mean, row.undefined, row.not_finite) == (0.5, {"not_finite": 1}, ("r7",))
    json.dumps(row.as_json("0"), allow_nan=False)
    assert measure(labels[1], [endless]).as_json("0")["metrics"]["endless"]["value"] is None
    rows = [measure(one, [endless]) for one in labels]
    (verdict,) = check_rows(rows, [Gate(endless, 0.1, at_least=True)])
    assert not verdict.passed
    (drop,) = check_drops(rows, rows, [Gate(endless, 0.1, at_least=False, of_drop=True)])
    for finding in (verdict.finding, drop.finding):
        assert "endless is not a finite number, so undefined, in 'r7'" in finding
    (compared,) = compare(labels, labels, "endless").rows
    assert (compared.undefined_a, compared.not_finite) == ({"not_finite": 1}, ("r7",))
    json.dumps(compared.as_json(), allow_nan=False)


def test_a_numerator_that_is_no_number_is_refused() -> None:
    """With the record and what a ratio holds."""
    wrong = replace(METRICS["adherence"], compute=lambda _: Ratio("a", 1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="gave 'a' / 1 for record 'r7'; a ratio is a number over"):
        measure(record(id="r7"), [wrong])
    half = replace(METRICS["adherence"], compute=lambda _: Ratio(0.5, 1))  # type: ignore[arg-type]
    assert measure(record(), [half]).metrics["adherence"] == Ratio(Fraction(1, 2), 1)
