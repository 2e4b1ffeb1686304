"""The judge that asks for probabilities: one request a record, more where a server takes less."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from labeler.errors import UsageError
from labeler.judges.decisions.forms import LISTED, NAMED, QuestionForm
from labeler.judges.decisions.questions import DecisionPrompt, Question, shown
from labeler.judges.decisions.verdicts import THRESHOLDS, Decisions, answer_of, scores_of
from labeler.judges.limits import Size
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.error_rules import AttemptFailed, ObservedError, find_rule
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.request import Form
from labeler.judges.task import JudgeReply, Messages, Task
from labeler.sentences.example import Frozen

_REFUSALS = frozenset({400, 413, 422})
_OPTIONS = re.compile(r"option|choice|criteria|candidate")
_COUNTS = re.compile(r"question|many|most|max|limit|exceed|too.?long|fewer|length")
_STATED = re.compile(
    r"(?:most|max\w*|limit\w*|up to|more than|between \d+ and|exceed\w*|than or equal to|[<≤]=?)"
    r"\D{0,20}(\d{1,4})\b"
)
_NUMBER = re.compile(r"\b\d{1,4}\b")
_FEWEST_OPTIONS, _FEWEST_QUESTIONS = 8, 8
"""A message may quote a record, so a smaller number is not believed."""


@dataclass
class RequestLimits:
    """What a server takes in one request, as far as is known.

    Attributes:
        questions: questions at most.
        options: options of a choice at most.
    """

    questions: int
    options: int

    def learn(self, observed: ObservedError, asked: Sequence[Question]) -> bool:
        """Lower a limit that a rejected request was over; return False if none is named."""
        stated = f"{observed.code} {observed.param} {observed.message}".lower()
        if observed.kind != "status" or observed.status not in _REFUSALS:
            return False
        if find_rule(observed).reason == "context_length" or not _COUNTS.search(stated):
            return False
        longest = max(len(question.options) for question in asked)
        if _OPTIONS.search(stated) and longest > _FEWEST_OPTIONS:
            found = _below(longest, stated, _FEWEST_OPTIONS)
            if found or "question" not in stated or len(asked) <= _FEWEST_QUESTIONS:
                self.options = found or max(_FEWEST_OPTIONS, longest // 2)
                return True
        if len(asked) > _FEWEST_QUESTIONS and "question" in stated:
            found = _below(len(asked), stated, _FEWEST_QUESTIONS)
            self.questions = found or max(_FEWEST_QUESTIONS, len(asked) // 2)
            return True
        return False


def _below(count: int, stated: str, least: int) -> int:
    """Return the limit that a message states for a count; 0 if it states none."""
    for pattern in (_STATED, _NUMBER):
        numbers = map(int, pattern.findall(stated))
        fitting = [number for number in numbers if least <= number < count]
        if fitting:
            return max(fitting)
    return 0


class DecisionsJudge(HostedJudge):
    """Labels records with a model that answers questions with probabilities.

    It speaks OpenAI's ``/v1/decisions``.

    Args:
        model: name of the model.
        settings: as for :class:`~labeler.judges.openai.judge.HostedJudge`.

    Example:
        >>> from labeler.judges.decisions.judge import DecisionsJudge
        >>> DecisionsJudge("MODEL", api_key="key").spec.judge
        'decisions'
    """

    provider = "decisions"
    answers = frozenset({"trace", "reference", "retrieval"})
    questions: ClassVar[QuestionForm] = LISTED
    form = Form("/decisions", LISTED.body, LISTED.read, model_path="/models/{model}")

    def __init__(self, model: str, **settings: Any) -> None:  # noqa: ANN401 - checked by HostedJudge
        super().__init__(model, **settings)
        self.auto = False
        if settings.get("price") is None and self.price is not None:
            self.price = self.price.of_input()
        self._limits = RequestLimits(self.questions.most_questions, self.questions.most_options)

    async def label(self, task: Task[Any]) -> JudgeReply[Frozen]:
        """Judge one record, as :class:`HostedJudge` does."""
        log = await self._begin(task)
        try:
            decided, failed = await self._decide(log), None
        except Exception as error:  # noqa: BLE001 - raised again below
            failed = error
        if failed is not None:
            raise self._failure(log, failed)
        facts = log.facts(self.host).model_copy(update={"thresholds": THRESHOLDS})
        output = cast("type[Frozen]", task.answer_type)
        return JudgeReply(answer_of(decided, output), facts, scores=scores_of(decided))

    async def _decide(self, log: AttemptLog) -> Decisions:
        """Ask all questions, in as few requests as the server takes."""
        decided = Decisions(_prompt_of(log.task), log.task.example)
        most = self._limits.questions
        while questions := decided.open(self._limits.options):
            asked = questions[: min(most, self._limits.questions)]
            try:
                completion = await self._repeated(log, cast("Messages", asked))
            except AttemptFailed as failed:
                is_long = failed.rule.reason == "context_length" and len(asked) > 1
                if failed.stops or not (is_long or self._limits.learn(failed.observed, asked)):
                    raise
                most = -(-len(asked) // 2) if is_long else most
                continue
            decided.found.update(completion.decisions)
            log.answers = 0  # the requests of a record are not re-asks
        log.answers = log.readable = 1
        return decided

    def _size(self, log: AttemptLog, messages: Messages) -> Size:
        asked = cast("Sequence[Question]", messages)
        text = log.task.messages[0]["content"]
        tokens = self._counter.request([text, "\n".join(map(shown, asked))], "")
        if self.price is None:
            return Size(tokens)
        sent = [text, json.dumps(self.questions.asked(asked))]
        return Size(tokens, self.price.worst(self._counter.request_at_most(sent, ""), 0))


def _prompt_of(task: Task[Any]) -> DecisionPrompt:
    if not isinstance(task.prompt, DecisionPrompt):
        raise UsageError(f"judge {task.signature.judge} cannot ask by prompt {task.prompt.name!r}")
    return task.prompt


class SystemOneJudge(DecisionsJudge):
    """The same before TypeSafe's ``/v1/systemone``, or a server that speaks it."""

    provider = "systemone"
    questions = NAMED
    form = Form("/systemone", NAMED.body, NAMED.read, model_path="/models/{model}", version="/v1")
