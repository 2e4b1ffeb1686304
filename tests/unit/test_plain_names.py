"""Plain words for metrics, and the metrics that are shown first."""

from __future__ import annotations

from dataclasses import replace

from labeler.calculators import METRICS, select_metrics
from labeler.calculators.headline import HEADLINES, headline_metrics, plain_name


def test_every_default_metric_has_plain_words() -> None:
    """Words of their own, without signs; another definition says which, a stranger keeps its id."""
    names = [plain_name(metric) for metric in select_metrics()]
    assert len(set(names)) == len(names)
    assert not any("_" in name or ":" in name for name in names)
    assert plain_name(METRICS["relevance:length"]) == "retrieved sentences relevant (length)"
    stranger = replace(METRICS["relevance"], name="ours")
    assert plain_name(stranger) == "ours"


def test_the_richest_profile_decides_what_is_shown_first() -> None:
    """At most six metrics of it; the metrics themselves where none of them is among those."""
    assert [m.id for m in headline_metrics(select_metrics())] == [*HEADLINES["reference"]]
    few = select_metrics("relevance, answer_relevancy, citation_f1")
    assert [m.id for m in headline_metrics(few)] == ["answer_relevancy", "relevance"]
    assert [m.id for m in headline_metrics(select_metrics("citation_f1"))] == ["citation_f1"]
    assert max(map(len, HEADLINES.values())) == 6
