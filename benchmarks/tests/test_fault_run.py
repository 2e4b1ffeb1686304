"""The fault run's server, its counting, and a run at the smallest scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import labeler
from fault_figures import Compared, Run, Work, cells, differing
from fault_run import REASONS, Server, Weather, label_run, receiving
from labeler.store.memory import MemoryStore
from peers import environments
from peers.answering import answer
from peers.records import made_up
from peers.server import FAULTS, reply
from wire.calls import Call

VERDICTS: dict[str, Any] = {
    "type": "object",
    "properties": {"verdicts": {"type": "array", "items": {"$ref": "#/$defs/Verdict"}}},
    "required": ["verdicts"],
    "$defs": {
        "Verdict": {
            "type": "object",
            "properties": {
                "reason": {"type": "string"},
                "verdict": {"enum": ["yes", "no"]},
                "certain": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                "grade": {"type": "integer", "maximum": 2},
            },
            "required": ["reason", "verdict", "certain", "grade"],
        }
    },
}
QUESTION: dict[str, Any] = {"role": "user", "content": "Is it so?"}
IN_FORMAT: dict[str, Any] = {
    "messages": [QUESTION],
    "response_format": {"json_schema": {"schema": VERDICTS}},
}
IN_TOOL: dict[str, Any] = {
    "messages": [QUESTION],
    "tools": [{"function": {"name": "judge", "parameters": VERDICTS}}],
}
IN_PROMPT: dict[str, Any] = {
    "messages": [{"role": "user", "content": f'Not {{this}} or {{"a": 1}}: {json.dumps(VERDICTS)}'}]
}


@pytest.mark.parametrize("body", [IN_FORMAT, IN_TOOL, IN_PROMPT])
def test_an_answer_fits_the_schema_however_it_is_asked_for(body: dict[str, Any]) -> None:
    """The schema may stand in the response format, in a tool or in the prompt."""
    said = json.loads(answer(body))
    jsonschema.validate(said, VERDICTS)
    assert said["verdicts"]


def test_the_same_messages_get_the_same_answer() -> None:
    """Only the first ask and the answer's number count: no other parameter, and no re-ask."""
    assert answer(IN_FORMAT) == answer({**IN_FORMAT, "temperature": 0.3, "n": 3})
    reask = [QUESTION, {"role": "assistant", "content": "{"}, {"role": "user", "content": "Again."}]
    assert answer(IN_FORMAT) == answer({**IN_FORMAT, "messages": reask})
    assert len({answer(IN_FORMAT, number) for number in range(20)}) > 1


def test_a_flawed_answer_lacks_an_item_or_breaks_the_schema() -> None:
    """One flaw is silent, the other is one that a reader can find."""
    whole, shorter = json.loads(answer(IN_FORMAT)), answer(IN_FORMAT, flaw="missing-item")
    assert json.loads(shorter)["verdicts"] == whole["verdicts"][:-1]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(json.loads(answer(IN_FORMAT, flaw="foreign-value")), VERDICTS)


def test_a_tool_is_called_and_several_answers_are_given() -> None:
    """The reply has the form that was asked for, as often as it was."""
    body = {**IN_TOOL, "n": 2}
    choices = reply(Call(1, "POST", "/", {}, json.dumps(body).encode()))["choices"]
    assert [choice["index"] for choice in choices] == [0, 1]
    called = choices[1]["message"]["tool_calls"][0]["function"]
    assert (called["name"], called["arguments"]) == ("judge", answer(body, 1))


def test_every_fault_has_its_true_reason() -> None:
    """Otherwise a failure could be called false for want of an entry."""
    assert set(REASONS) == set(FAULTS)


def test_a_fault_run_accounts_for_every_record() -> None:
    """Three calls of ten go wrong: each record is a label or a true failure, and twice alike."""
    # None of these is asked again after a pause, so that the test takes no longer than it must.
    kinds = ("truncated", "refusal", "filtered", "malformed", "unknown-key")
    weather = Weather(share=0.3, seed=3, latency=0.0, kinds=kinds)
    work = Work(made_up(24), concurrency=8, timeout=60)
    run = label_run(work, weather)
    assert len(run.values) == 24
    assert 0 < run.true_failures == 24 - len(run.valid)
    assert (run.false_failures, run.asked_again) == (0, 0)
    assert (run.unsaved, run.numbers_missing) == (0, 0)
    again = label_run(work, weather)
    assert (again.values, again.calls) == (run.values, run.calls)


def test_requests_after_a_whole_good_answer_are_counted() -> None:
    """A second store buys all again; only the client knows that the first answers came whole."""
    rows = made_up(6)
    with Server(Weather(latency=0.0)) as server, receiving() as received:
        for _ in range(2):
            judge = labeler.OpenAIJudge("stub-1", api_key="none", base_url=server.url)
            labeler.label(rows, judge=judge, store=MemoryStore())
    assert (len(received.records), received.asked_again) == (6, 6)


def test_cells_tell_what_became_of_each_record() -> None:
    """Of four records one is whole, one differs and lacks a metric, one is empty, one is lost."""
    clean = Run({id_: {"x": 1.0, "y": 0.5} for id_ in "abcd"}, calls=8, seconds=1.0)
    values: dict[str, dict[str, float | None]] = {
        "a": {"x": 1.0, "y": 0.5},
        "b": {"x": 0.0, "y": None},
        "c": {"x": None, "y": None},
    }
    faulty = Run(values, calls=10, seconds=2.5)
    assert (differing(faulty, clean), differing(clean, clean)) == (1, 0)
    work = Work([{"id": id_} for id_ in "abcd"], concurrency=2, timeout=3)
    assert list(cells(Compared("it", work, clean, faulty, clean))) == [
        *("it", "4", 2, "3"),
        *("1 (25.0%)", "0 (0.0%)", "0 (0.0%)", "2 (50.0%)", "1 (25.0%)"),
        *("1 (25.0%)", "0 (0.0%)", "n/a", "2.00 to 2.50", "1.0 to 2.5", "n/a"),
    ]


def test_a_peer_gets_no_key_and_no_way_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its process is given what it needs by name; all but this machine is behind a dead proxy."""
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    given = environments.quiet(tmp_path)
    assert "OPENAI_API_KEY" not in given
    assert (given["HOME"], given["NO_PROXY"]) == (str(tmp_path), "127.0.0.1")
    assert given["HTTPS_PROXY"].startswith("http://127.0.0.1:")
