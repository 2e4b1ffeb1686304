"""Scores over the wire: what is sent, what is read of the answer, and what it costs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from labeler.api import MemoryStore
from labeler.errors import FatalJudgeError
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure
from labeler.plugins.scores.api import iter_scores
from labeler.plugins.scores.collected import Scores
from labeler.plugins.scores.criteria import Criterion
from labeler.plugins.scores.records import ScoreOutcome, ScoreRecord
from support.command import Command
from support.scored import criterion
from wire.behaviors import sets_choice
from wire.probable import scored
from wire.provider import Provider, error, says
from wire.runs import KEY, brief, row_file, rows

WORKED = {"4": 0.6, "1": 0.02, "2": 0.05, "3": 0.2, "5": 0.1}
PRICED: dict[str, Any] = {"price": given_price("100,400"), "max_output_tokens": 400}


def run(
    provider: Provider,
    asked: Criterion | None = None,
    count: int = 1,
    *,
    judges: tuple[dict[str, Any], ...] = ({},),
    **options: Any,
) -> list[ScoreOutcome]:
    """Score rows by judges with these settings, into a store of their own."""
    common = {"model": "m", "api_key": KEY, "base_url": provider.url, "sleep": brief}
    by = [OpenAIJudge(**{**common, **one}) for one in judges]
    options = {"criteria": asked or criterion(), "judges": by, "store": MemoryStore(), **options}
    return list(iter_scores(rows(count), **options))


def only(outcomes: list[ScoreOutcome]) -> ScoreRecord:
    """The one score."""
    (outcome,) = outcomes
    assert isinstance(outcome, ScoreRecord), outcome
    return outcome


def cost(provider: Provider) -> Decimal:
    """Dollars that were spent by the provider's books."""
    prompt, answer, _ = provider.tokens
    return (prompt * Decimal(100) + answer * Decimal(400)) / 10**6


def test_probabilities_are_asked_for_and_weighed() -> None:
    """The worked example, from the wire to the number and its signature."""
    with Provider([scored([WORKED])]) as provider:
        found = only(run(provider, logprobs=True))
    (call,) = provider.calls
    assert (call.body["logprobs"], call.body["top_logprobs"]) == (True, 20)
    assert found.method == "logprobs"
    assert found.distribution == pytest.approx({1: 0.02, 2: 0.05, 3: 0.2, 4: 0.6, 5: 0.1})
    assert float(found.value) == pytest.approx(3.7319588, abs=5e-8)
    scores = Scores([found])
    assert "|logprobs:20|" in str(next(scores.rows(scores.metrics())).label)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        "many",
        *(
            {"content": content}
            for content in (
                None,
                [None, 7],
                [{"token": 4, "logprob": -1}],
                [{"token": "4", "logprob": "-1"}],
                [{"token": "4", "logprob": 3.0, "top_logprobs": []}],
                [{"token": "4", "logprob": -1, "bytes": [999]}],
            )
        ),
    ],
)
def test_without_usable_probabilities_the_answer_counts(logprobs: object) -> None:
    """Whatever a server sends in their place; the record says so."""
    with Provider([sets_choice(logprobs=logprobs)]) as provider:
        found = only(run(provider, logprobs=True))
    assert (found.answer.score, found.method, found.distribution) == (3, "answer", None)


def test_a_server_that_refuses_probabilities_ends_the_run() -> None:
    """No other row would fare better; the option is named."""
    refusal = error(400, "unsupported_parameter", param="logprobs")
    with Provider(lambda _: refusal) as provider:
        with pytest.raises(FatalJudgeError, match="logprobs"):
            run(provider, count=20, logprobs=True)
        assert len(provider.calls) <= 8


def test_a_score_off_the_scale_is_asked_for_again() -> None:
    """Naming what was wrong and what is allowed, and no key of any sentence."""
    off = says(json.dumps({"reasoning": "splendid", "score": 7}))
    with Provider([off]) as provider:
        found = only(run(provider))
    reproof = provider.calls[1].messages[-1]["content"]
    assert reproof == (
        "That answer broke the rules: score_outside_scale in score: '7'. The score is a whole "
        "number from 1 (the worst) to 5 (the best). Write the whole answer again, as JSON alone."
    )
    assert found.answer.score == 3
    assert found.reply.reasks == 1
    assert found.reply.broken_contracts == {"score_outside_scale": 1}


def test_probabilities_are_those_of_the_answer_that_counts() -> None:
    """Not those of one that was sent back."""
    off = scored([{"7": 0.9, "5": 0.1}])
    with Provider([off, scored([{"2": 0.75, "1": 0.25}])]) as provider:
        found = only(run(provider, logprobs=True))
    assert found.distribution == pytest.approx({1: 0.25, 2: 0.75})


@pytest.mark.parametrize(
    ("asked", "count", "judges"),
    [(criterion(steps=None), 20, (PRICED,)), (None, 3, (PRICED, {**PRICED, "model": "b"}))],
    ids=["steps and scores", "two judges"],
)
def test_all_is_paid_from_one_budget(asked: Any, count: int, judges: Any) -> None:
    """What the steps or the first judge cost is not there for the rest, which fails for it."""
    with Provider(count_tokens=True) as provider:
        outcomes = run(provider, asked, count, judges=judges, budget="0.75", concurrency=1)
        assert cost(provider) <= Decimal("0.75")
    assert [o.kind for o in outcomes[:3]] == ["score"] * 3
    assert {o.reason for o in outcomes if isinstance(o, LabelFailure)} == {"budget"}


# The command


TONE = '[[criterion]]\nname = "tone"\ncriteria = "Kind?"\nshows = ["question", "response"]\n'


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, labeler_command: Command, tmp_path: Path) -> Command:
    """The command with a key, next to three rows and a criterion."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    row_file(tmp_path, rows(3))
    (tmp_path / "tone.toml").write_text(TONE)
    return labeler_command


def scoring(provider: Provider, criteria: str, *more: str, output: str = "s.jsonl") -> list[str]:
    """The arguments of the command with which the provider scores the rows."""
    asked = ["score", "rows.jsonl", "--criteria", criteria, "--base-url", provider.url]
    return [*asked, "-o", output, *more]


def test_the_command_writes_scores_and_reuses_them(command: Command, tmp_path: Path) -> None:
    """Steps once, each score once; the second run asks nobody and writes the same."""
    more = ("--logprobs", "--model", "m")
    with Provider(lambda call: scored([WORKED]) if call.body.get("logprobs") else None) as provider:
        for output, counts in (
            ("a.jsonl", "6 scored by openai/m, 0 from the store, scores: 6 by logprobs, 0 failed"),
            ("b.jsonl", "0 scored by openai/m, 6 from the store"),
        ):
            asked = scoring(provider, "rubric_faithfulness,tone.toml", *more, output=output)
            code, out, err = command(*asked)
            assert (code, out, len(provider.calls)) == (0, "", 7)
            assert counts in err
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    code, out, _ = command("metrics", "a.jsonl")
    assert out.count(" 3.73 ") == 4  # of either criterion, in its sentence and its table


@pytest.mark.parametrize("criteria", ["rubric_faithfulness", "tone.toml"])
def test_a_used_up_budget_gives_exit_code_4(command: Command, criteria: str) -> None:
    """Whether the rows or the steps are beyond it."""
    limits = ["--budget", "0.001", "--price", "100,400", "--max-output-tokens", "400"]
    with Provider() as provider:
        code, _, err = command(*scoring(provider, criteria, "--model", "m", *limits))
        assert not provider.calls
    assert (code, "budget" in err) == (4, True)


def test_the_command_has_several_judges_score_and_says_how_far_they_agree(command: Command) -> None:
    """One file, each judge its scores; on standard error what a reader of the file sees too."""
    by_model = {"a": {"5": 0.9, "1": 0.1}, "b": {"4": 0.9, "1": 0.1}}
    with Provider(lambda call: scored([by_model[call.body["model"]]])) as provider:
        asked = scoring(provider, "rubric_faithfulness", "--judges", "openai:a,openai:b")
        code, out, err = command(*asked)
        assert (code, out, len(provider.calls)) == (0, "", 6)
    assert "6 scored by openai/a, openai/b, 0 from the store" in err
    assert "2 judges" in err
    assert "rubric_faithfulness: mean 5.000 by judge:openai/a|" in err
    code, out, _ = command("metrics", "s.jsonl", "--no-intervals")
    assert code == 0
    assert out.splitlines()[-1] in err
