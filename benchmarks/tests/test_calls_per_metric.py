"""What the metrics of a record cost, here and elsewhere."""

from __future__ import annotations

import pytest

from calls_per_metric import WANTED, Asked, Measured, main, measured, report
from labeler.calculators import METRICS, select_metrics
from labeler.plugins.scores.criteria import CRITERIA
from metric_terms import ASKED_APART, SYSTEMS, system_table


def test_seven_metrics_take_one_call_that_sends_the_context_once() -> None:
    """Counted where they arrive; and every metric has a value."""
    assert measured(records=3, documents=4) == Measured(1.0, 1.0, ())


def test_the_counts_of_the_others_add_up() -> None:
    """RAGAS 3C + 11 and 7 contexts, DeepEval C + 14 and 5, each for what it offers."""
    text = report(Measured(1, 1, ()), documents=5)
    assert "| **calls a record** | 3C + 11 = 26 | C + 14 = 19 | **1** (measured) |" in text
    assert "| **times the context is sent** | 7 | 5 | **1** (measured) |" in text
    assert text.count("not offered") == 2


def test_metrics_without_a_value_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A call that gives no metric is not cheap."""
    monkeypatch.setattr("calls_per_metric.measured", lambda *_: Measured(1, 1, ("context_recall",)))
    assert main([]) == 1
    assert "Without a value: context_recall" in capsys.readouterr().out


def test_what_is_asked_is_a_metric_here() -> None:
    """Every id is in the catalog, and every framework offers most of them."""
    assert {name for wanted in WANTED for name in wanted.ids} <= METRICS.keys()
    offered = [[getattr(w, peer) for w in WANTED] for peer in ("ragas", "deepeval")]
    assert all(sum(isinstance(one, Asked) for one in peer) == 6 for peer in offered)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_metric_of_a_system_has_its_place_here(system: str) -> None:
    """Its id is in the catalog, or it is one that is asked apart; none stands twice."""
    ids = [term.id for term in SYSTEMS[system]]
    assert len(set(ids)) == len(ids)
    assert all(name in METRICS or name in ASKED_APART for name in ids)


def test_what_is_asked_apart_is_asked_so() -> None:
    """Criteria and metrics of written questions have lists of their own."""
    questions = {metric.id for metric in select_metrics("all", kind="questions")}
    for name, how in ASKED_APART.items():
        assert name in (questions if "question call" in how else {*CRITERIA, "g_eval"})


def test_every_claim_metric_belongs_to_a_system() -> None:
    """None was made up here."""
    ids = {term.id for terms in SYSTEMS.values() for term in terms} & METRICS.keys()
    of_claims = {m.name for m in METRICS.values() if m.profile.name != "trace"}
    assert of_claims <= {METRICS[one].name for one in ids}


def test_the_table_of_systems_says_what_each_metric_costs() -> None:
    """Fields and profile of a label, or the call that it is asked with."""
    lines = system_table().splitlines()
    assert len(lines) == 2 + sum(map(len, SYSTEMS.values()))
    recall = "| Contextual Recall | `context_recall` | `reference_claims.supporting_sentence_keys`"
    assert any(f"{recall} | `reference` | the label call |" in line for line in lines)
    assert any("`rubric_faithfulness` | none | none | 1 rubric call |" in line for line in lines)
