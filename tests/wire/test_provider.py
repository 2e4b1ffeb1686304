"""The dice by which the server of the tests misbehaves."""

from __future__ import annotations

import json

from wire.clients import record, request_of
from wire.provider import COMPLETIONS, FAULTS, Call, faulty


def test_a_stated_share_of_calls_misbehaves() -> None:
    """By the record and how often it was asked, not by the order; none at 0, every one at 1."""
    bodies = (json.dumps(request_of(record(f"r{number}"))).encode() for number in range(500))
    calls = [Call(n, "POST", COMPLETIONS, {}, raw) for n, raw in enumerate(bodies, 1)]
    one, other = faulty(0.2, seed=7), faulty(0.2, seed=7)
    picked = {call.identity: (one(call), one(call)) for call in calls}
    assert 70 <= sum(bool(first) for first, _ in picked.values()) <= 130
    assert any(first and not second for first, second in picked.values())
    again = {call.identity: other(call) for call in reversed(calls)}
    assert again == {name: first for name, (first, _) in picked.items()}
    assert set(map(faulty(1), calls)) == set(FAULTS)
    assert set(map(faulty(0), calls)) == {None}
