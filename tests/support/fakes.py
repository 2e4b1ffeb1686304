"""Judges that stand at our own seam, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from labeler.judges.judge import JudgeSpec
from labeler.judges.task import JudgeReply, Task
from labeler.labels.answers import lowered
from labeler.labels.record import ReplyFacts, Usage
from labeler.plugins.scores.records import ScoreAnswer, StepsAnswer
from labeler.sentences.example import Frozen
from support.labeled import output

Behavior = Callable[[Task[Any]], JudgeReply[Frozen]]


def agreeable(request: Task) -> JudgeReply:
    """Everything is relevant, used and supported by the first sentence."""
    keys = tuple(request.example.document_keys())
    support = dict.fromkeys(request.example.response_keys(), keys[:1])
    answer = output(relevant=keys, utilized=keys, support=support, overall=True)
    return JudgeReply(answer, ReplyFacts(usage=Usage(prompt_tokens=10, completion_tokens=2)))


def scoring(score: int = 4) -> Behavior:
    """Gives every record the same score, and every criterion the same two steps."""

    def answer(request: Task[Any]) -> JudgeReply[Frozen]:
        facts = ReplyFacts(usage=Usage(prompt_tokens=10, completion_tokens=2))
        if request.answer_type is StepsAnswer:
            return JudgeReply(StepsAnswer(steps=("Read it.", "Weigh it.")), facts)
        return JudgeReply(ScoreAnswer(reasoning="so it is", score=score), facts)

    return answer


class CountingJudge:
    """Counts what it is asked, and how much of it at once.

    Args:
        behavior: answers a request, or raises.
        model: enters the labels' key.
        seconds: how long each answer takes.
    """

    def __init__(
        self, behavior: Behavior = agreeable, *, model: str = "fake-1", seconds: float = 0.0
    ) -> None:
        self.spec = JudgeSpec(judge="fake", model=model)
        self.asked: list[str] = []
        self.tasks: list[Task[Any]] = []
        self.most_at_once = 0
        self.closed = 0
        self._at_once = 0
        self._behavior = behavior
        self._seconds = seconds

    async def label(self, request: Task[Any]) -> JudgeReply[Frozen]:
        """Answer as told."""
        self.asked.append(request.example.id)
        self.tasks.append(request)
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self._seconds)
            return self._behavior(request)
        finally:
            self._at_once -= 1

    async def aclose(self) -> None:
        """Count the farewell."""
        self.closed += 1


def peeking(request: Task[Any]) -> JudgeReply[Frozen]:
    """Calls relevant what the response says, or else what has a word of the question."""
    example = request.example
    seen = " ".join(s.text for s in example.response) or example.question
    relevant = tuple(s.key for s in example.document_sentences() if _words(s.text) & _words(seen))
    answer = agreeable(request).answer.model_copy(update={"all_relevant_sentence_keys": relevant})
    return JudgeReply(lowered(answer, request.answer_type))


def _words(text: str) -> set[str]:
    return {word.strip(".?").casefold() for word in text.split()}
