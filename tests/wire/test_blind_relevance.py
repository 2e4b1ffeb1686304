"""Relevance that is judged without responses, on the wire: online, in batches, through a kill."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.store import MemoryStore
from support.command import Command
from wire.calls import Call
from wire.provider import Provider, answers
from wire.runs import (
    comes_true,
    in_a_batch,
    labeling,
    process,
    reasons,
    records,
    row_file,
    run,
    running,
)

ANSWERS = 3
"""Responses to each question."""


def rows(questions: int) -> list[dict[str, Any]]:
    """Rows with several responses over each retrieval."""
    return [
        {
            "id": f"q{question}-{answer}",
            "question": f"What is item {question}?",
            "documents": [f"Item {question} is a lamp.", "Chairs are made of wood."],
            "response": f"RESPONSE-{question}-{answer} is a lamp.",
            "reference": "A lamp.",
        }
        for question in range(questions)
        for answer in range(ANSWERS)
    ]


def asks_relevance(call: Call) -> bool:
    """Whether a request is about a retrieval."""
    return "all_relevant_sentence_keys" in call.asked_for


def judged(provider: Provider, given: list[dict[str, Any]], **options: Any) -> list[Outcome]:
    """Label rows online."""
    return run(provider, given, relevance="blind", **options)


def require_blind(calls: list[Call], retrievals: int, responses: int) -> None:
    """Check the numbers of both kinds of requests, and that none shows what it must not."""
    assert Counter(map(asks_relevance, calls)) == {True: retrievals, False: responses}
    assert not any(b"RESPONSE" in call.raw for call in calls if asks_relevance(call))


@pytest.mark.parametrize("profile", ["trace", "claims", "reference"])
def test_no_request_about_relevance_shows_a_response(profile: str) -> None:
    """And none about a response asks for relevance."""
    with Provider() as provider:
        found = records(judged(provider, rows(4), profile=profile))
    require_blind(provider.calls, 4, 12)
    assert len(found) == 12
    named = {(record.example.question, record.label.all_relevant_sentence_keys) for record in found}
    assert len(named) == 4


def test_an_unknown_key_is_asked_for_again() -> None:
    """As in a label; the second answer counts."""

    def wrong(value: dict[str, Any]) -> None:
        value["all_relevant_sentence_keys"] = ["9z"]

    with Provider([answers(wrong)]) as provider:
        [record] = records(judged(provider, rows(1)[:1]))
    assert len(provider.calls) == 3
    again = provider.calls[1].messages[-1]["content"]
    assert "unknown_key in all_relevant_sentence_keys: '9z'" in again
    assert len(record.label.all_relevant_sentence_keys) == 1


def test_one_refused_retrieval_fails_its_rows_alone() -> None:
    """The others are labeled; the responses of the failed ones are not sent."""
    with Provider(["refusal"]) as provider:
        found = judged(provider, rows(4), concurrency=1)
    assert len(records(found)) == 9
    require_blind(provider.calls, 4, 9)


def test_batches_take_two_stages(tmp_path: Path) -> None:
    """Retrievals first; responses when these are stored; then a run finds everything."""
    given = rows(2)
    with Provider() as provider:
        first, second, third = (
            in_a_batch(provider, given, tmp_path, relevance="blind") for _ in range(3)
        )
        lines = Counter(map(asks_relevance, provider.batch_lines))
        found = judged(provider, given, store=tmp_path)
    assert (first.waiting, second.waiting) == (6, 0)
    assert lines[True] == first.lines
    assert lines[False] == second.lines
    assert (first.lines, second.lines) == (2, 6)
    assert third.batch is None
    assert not provider.calls
    assert all(isinstance(one, LabelRecord) and one.fault() is None for one in found)


def test_rows_of_a_refused_retrieval_wait_for_no_batch(tmp_path: Path) -> None:
    """They failed, for a reason that is named once; the others go on."""
    with Provider(lambda call: "refusal" if b"item 0" in call.raw else None) as provider:
        before, done = (
            in_a_batch(provider, rows(2), tmp_path, relevance="blind") for _ in range(2)
        )
        found = judged(provider, rows(2), store=tmp_path)
    assert (before.waiting, done.waiting) == (6, 0)
    assert done.left_out == {"failed before": 3}
    failed = [one for one in found if isinstance(one, LabelFailure)]
    assert [one.message.count("only on request") for one in failed] == [1, 1, 1]


def test_a_killed_run_goes_on(tmp_path: Path, labeler_command: Command) -> None:
    """Among the responses, all retrievals being known: nothing is lost or bought twice."""
    given = row_file(tmp_path, rows(6))
    with Provider(latency=0.05) as provider:
        command = labeling(provider, given, "--relevance", "blind", "--concurrency", 1)
        with running(process(command), tmp_path) as first:
            assert comes_true(lambda: provider.paid.total() >= 9, 60)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait(timeout=60)
        assert labeler_command(*command)[0] == 0
    assert len((tmp_path / "labels.jsonl").read_text().splitlines()) == 18
    assert len(provider.paid) == 24
    assert provider.paid.total() <= 25  # the request under way may be charged without an answer


def test_a_budget_counts_both_kinds() -> None:
    """Rows beyond it fail, whichever kind they lack; a larger one goes on."""
    priced = {"price": given_price("1000,1000"), "max_output_tokens": 10}
    options: dict[str, Any] = {"judge": priced, "concurrency": 1, "store": MemoryStore()}
    labeled = []
    with Provider() as provider:
        for budget in (75, 1000):
            found = judged(provider, rows(4), budget=budget, **options)
            assert set(reasons(found)) <= {"label", "budget"}
            labeled.append(len(records(found)))
    assert 0 < labeled[0] < labeled[1] == 12
    assert set(provider.paid.values()) == {1}
