"""Names of other systems' metrics."""

from __future__ import annotations

import pytest

from labeler.calculators import METRICS
from metric_terms import ASKED_APART, SYSTEMS


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
