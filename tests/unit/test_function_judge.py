"""Judges that are functions: a name and a version enter the key, the answer is checked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import labeler
from labeler.errors import UsageError
from labeler.judges.task import Task
from labeler.labels.record import LabelFailure, LabelRecord
from support.answers import answer as trace_answer

ROWS = [{"id": "1", "question": "Q?", "documents": ["D is E."], "response": "D is E."}]


def answer(task: Task, **changes: Any) -> dict[str, Any]:
    """The answer of a judge who trusts everything, as JSON."""
    keys = task.example.document_keys()
    support = dict.fromkeys(task.example.response_keys(), keys)
    return trace_answer(support, relevant=keys, used=keys, said="It is so.") | changes


def test_a_function_is_asked_once_for_each_version() -> None:
    """Its labels are stored like any other's, under its name and version."""
    asked: list[str] = []
    store = labeler.MemoryStore()

    def trusting(task: Task) -> dict[str, Any]:
        asked.append(task.example.id)
        return answer(task)

    async def later(task: Task) -> dict[str, Any]:
        return trusting(task)

    for version, function in (("1", trusting), ("1", trusting), ("2", later)):
        judge = labeler.judge("mine", version=version)(function)
        (record,) = labeler.label(ROWS, judge=judge, store=store)
        assert isinstance(record, LabelRecord)
        assert f"judge:function/mine/{version}|" in str(record.signature)
    assert len(asked) == len({"1", "2"})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"overall_supported": "perhaps"}, "malformed"),
        ({"all_relevant_sentence_keys": ["9z"]}, "contract"),
    ],
)
def test_an_answer_of_a_function_is_checked(changes: dict[str, Any], reason: str) -> None:
    """As that of a model is; the row fails and the run goes on."""
    judge = labeler.judge("wrong", version=1)(lambda task: answer(task, **changes))
    (failure,) = labeler.label(ROWS, judge=judge, store=labeler.MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert failure.reason == reason


def test_a_function_without_a_name_and_a_version_is_refused() -> None:
    """Its labels could not be told from those of another function."""
    with pytest.raises(UsageError, match=r"@labeler\.judge\(NAME, version=VERSION\)"):
        labeler.label(ROWS, judge=answer, store=labeler.MemoryStore())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a name and a version"):
        labeler.judge("", version=1)


def test_an_exhausted_iterator_fails_the_row() -> None:
    """An asyncio future cannot carry it: the run would never end."""

    @labeler.judge("exhausted", version=1)
    def exhausted(_: Any) -> Any:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(exhausted.label(None))  # type: ignore[arg-type]


def test_a_version_has_no_slash() -> None:
    """Name and version would be cut elsewhere: two judges would share their labels."""
    with pytest.raises(UsageError, match="without a slash"):
        labeler.judge("strict", version="a/1")
