"""Every metric of the guides and systems that the docs list is there after installation."""

from __future__ import annotations

import pytest

from labeler.calculators import select_metrics
from labeler.labels.record import RECORDS
from labeler.plugins.scores import Criterion
from labeler.plugins.scores.metrics import score_metrics
from metric_terms import SYSTEMS

OWN_CRITERION = "g_eval"
"""A criterion of one's own, whose metric has the criterion's name."""
IDS = sorted({term.id for terms in SYSTEMS.values() for term in terms})


@pytest.mark.parametrize("name", IDS)
def test_a_metric_is_found_by_its_id(name: str) -> None:
    """In the core or in an optional part, which can also read the records that it measures."""
    if name == OWN_CRITERION:
        own = Criterion(name=name, criteria="Is it kind?", steps=None, shows=("response",))
        metric = score_metrics(own.name, (own.low, own.high))[0]
    else:
        (metric,) = select_metrics(name, kind=None)
    assert metric.id == name
    assert RECORDS[metric.kind].model_fields["kind"].default == metric.kind
