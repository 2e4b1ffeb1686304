"""What a run costs: never more than its budget by the provider's own books, never twice."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import MemoryStore
from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure
from labeler.labels_object import Labels
from support.command import Command
from wire.behaviors import good_label, says_of, sets
from wire.connections import Wire
from wire.provider import Call, Provider, Script, completion, faulty, label_for
from wire.runs import judge_of, labeling, reasons, records, row_file, rows, run

PRICE = "100,400"
"""Dollars for a million tokens, so that few rows cost dollars."""
CAP = 400
BOUNDED: dict[str, Any] = {"price": given_price(PRICE), "max_output_tokens": CAP}
BUDGET = Decimal(6)


def books(provider: Provider) -> Decimal:
    """Dollars that the provider has charged, by its own count of tokens."""
    prompt, answer, _ = provider.tokens
    return (prompt * Decimal(100) + answer * Decimal(400)) / 10**6


def charged_then(lost: str) -> Script:
    """Each third answer is made and charged for, and never arrives."""

    async def behave(call: Call, wire: Wire) -> None:
        content = json.dumps(label_for(call))
        value = completion(content, usage=wire.accounts.usage(call, content))
        await Wire(wire.accounts).complete(call, value)
        if lost == "reset":
            wire.reset()
        else:
            await wire.gone()

    return lambda call: behave if call.number % 3 == 0 else None


@pytest.mark.parametrize(
    "script",
    [
        (),
        charged_then("reset"),
        charged_then("hang"),
        faulty(0.4, 1, ["unknown-key", "malformed", "truncated", "refusal", "no-usage"]),
        faulty(0.4, 2, ["500", "reset", "close", "short", "429-wait-ms", "html", "bad-json"]),
    ],
    ids=["all well", "paid and reset", "paid and late", "bad answers", "bad network"],
)
def test_a_budget_is_kept_by_the_providers_books(script: Script) -> None:
    """Whatever goes wrong; what no longer fits is not asked, and what was asked has its outcome.

    The message says what to do; it is not kept against the row.
    """
    with Provider(script, count_tokens=True) as provider:
        outcomes = run(provider, rows(60), judge={**BOUNDED, "timeout": 2.0}, budget=BUDGET)
    assert 0 < books(provider) <= BUDGET
    assert ("label" in reasons(outcomes), len(outcomes)) == (True, 60)
    beyond = [o for o in outcomes if isinstance(o, LabelFailure) and o.reason == "budget"]
    assert "the budget of $6 does not cover this request" in beyond[0].message
    assert "raise the budget and run it again" in beyond[0].message
    assert not any(failure.lasting for failure in beyond)
    assert not any(failure.usage for failure in beyond if failure.attempts == 0)


def test_what_the_budget_left_is_asked_by_the_next_run(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Exit code 4 until all is labeled; no run overspends, and no label is bought twice."""
    given, codes, spent = row_file(tmp_path, rows(24)), list[int](), [Decimal(0)]
    with Provider(count_tokens=True) as provider:
        limits = ["--budget", BUDGET / 2, "--price", PRICE, "--max-output-tokens", CAP]
        while not codes or (codes[-1] == 4 and len(codes) < 9):
            code, _, err = labeler_command(*labeling(provider, given, *limits))
            codes.append(code)
            spent.append(books(provider))
            assert spent[-1] - spent[-2] <= BUDGET / 2
            assert ("(budget" in err) == (code == 4)
    assert len(codes) > 1 == codes.count(0)
    assert provider.paid.total() == len(provider.paid) == 24


def test_a_budget_without_a_price_sends_nothing(tmp_path: Path, labeler_command: Command) -> None:
    """Exit code 2, and the message says what to give."""
    with Provider() as provider:
        given = row_file(tmp_path, rows(3))
        code, _, err = labeler_command(*labeling(provider, given, "--budget", 1))
    assert (code, dict(provider.routes)) == (2, {})
    assert "a budget needs a price, and none is known for 'm'" in err


@pytest.mark.parametrize(
    ("budget", "given", "caps"),
    [(1, None, [5696, 11392]), (1, 900, [900, 1800]), (None, None, [None])],
)
def test_a_budget_caps_answers_by_their_sentences(
    budget: float | None, given: int | None, caps: list[int | None]
) -> None:
    """4,096 and 4 times 400 for two sentences; a given cap stays, and no budget needs none."""
    settings = {"price": given_price("1,1"), "max_output_tokens": given}
    with Provider(["truncated"] * 9) as provider:
        run(provider, rows(1), judge=settings, budget=budget)
    assert [call.body.get("max_completion_tokens") for call in provider.calls] == caps


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "many",
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"total_tokens": 900},
        {"prompt_tokens": 900, "completion_tokens": 0},
        {"prompt_tokens": 10**7, "completion_tokens": 9},
        {"prompt_tokens": 900, "total_tokens": 10**7},
    ],
)
def test_tokens_that_no_server_reports_are_unknown_and_not_none(usage: object) -> None:
    """Of labels, and of paid answers that are none; so are more than the texts can have."""
    for write, requests in ((good_label, 2), (lambda _: "No.", 4)):
        answer = says_of(write, lambda value: value.update(usage=usage))
        with Provider([answer] * requests) as provider:
            judge = judge_of(provider, price=given_price("1,2"))
            labels = labeler.label(rows(2), judge=judge, store=MemoryStore())
        unknown = f"{requests} requests, tokens unknown: the server reports none"
        assert str(labels.cost) == str(Labels(list(labels)).cost) == unknown


def test_usage_that_is_known_in_part_is_said_to_be_so(
    tmp_path: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A total makes the answer's tokens known; other requests are counted apart."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    total = sets(usage={"prompt_tokens": 800, "total_tokens": 900})
    with Provider([total, sets(usage=None)]) as provider:
        given = row_file(tmp_path, rows(2))
        _, _, err = labeler_command(*labeling(provider, given, "--price", "1,2"))
        assert "2 requests, 1 of unknown usage; 800 prompt tokens (0 cached); 100 compl" in err
        assert "$0.0010 and an unknown amount for requests of unknown usage by --price" in err
        _, _, err = labeler_command(*labeling(provider, given, "--price", "1,2"))
        assert "unknown" not in err


def test_the_estimate_is_of_the_size_that_the_provider_counts() -> None:
    """Prompt tokens of whole runs within a third; the provider's own rule is four bytes a token."""
    given = rows(40)
    with Provider(count_tokens=True) as provider:
        judge = judge_of(provider)
        said = labeler.estimate(given, judge=judge, store=MemoryStore())
        outcomes = run(provider, given)
    counted = provider.tokens.prompt
    assert counted * 2 / 3 < said.prompt.total < counted * 3 / 2
    stated = [record.reply.usage for record in records(outcomes)]
    assert sum(usage.prompt_tokens for usage in stated if usage) == counted
