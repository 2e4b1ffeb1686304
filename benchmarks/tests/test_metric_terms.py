"""Names of other systems' metrics, and figures that documents print."""

from __future__ import annotations

import pytest

from labeler.calculators import METRICS
from metric_terms import ASKED_APART, SYSTEMS
from published_examples import Figure


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_metric_of_a_system_has_its_place_here(system: str) -> None:
    """Its id is in the catalog, or it is one that is asked apart; none stands twice."""
    ids = [term.id for term in SYSTEMS[system]]
    assert len(set(ids)) == len(ids)
    assert all(name in METRICS or name in ASKED_APART for name in ids)


def test_every_claim_metric_belongs_to_a_system() -> None:
    """None was made up here."""
    ids = {term.id for terms in SYSTEMS.values() for term in terms} & METRICS.keys()
    of_claims = {m.name for m in METRICS.values() if m.profile.name != "trace"}
    assert of_claims <= {METRICS[one].name for one in ids}


def test_a_figure_that_differs_is_told() -> None:
    """Equal to as many digits as are printed, or not; a slip is one only where we are right."""
    assert Figure("d", "e", "m", "0.67", 2 / 3).verdict == "equal"
    assert Figure("d", "e", "m", "0.66", 2 / 3).verdict == "differs"
    assert Figure("d", "e", "m", "0.66", 2 / 3, slip="why", correct="0.67").verdict == "slip"
    assert Figure("d", "e", "m", "0.66", 0.5, slip="why", correct="0.67").verdict == "differs"
    assert Figure("d", "e", "m", "0.67", 2 / 3, slip="why", correct="0.67").verdict == "differs"
