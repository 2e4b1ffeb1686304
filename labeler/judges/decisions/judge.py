"""The judge that asks for probabilities: one request a record, more where a server takes less."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from labeler.errors import UsageError
from labeler.judges.decisions.forms import FORMS
from labeler.judges.decisions.limits import Limits
from labeler.judges.decisions.questions import DecisionPrompt, Question, shown
from labeler.judges.decisions.verdicts import THRESHOLDS, Decisions, answer_of, scores_of
from labeler.judges.limits import Size
from labeler.judges.openai.attempts import AttemptLog
from labeler.judges.openai.completion import Completion
from labeler.judges.openai.error_rules import AttemptFailed
from labeler.judges.openai.form import Form, Request
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.task import JudgeReply, Task
from labeler.judges.tokens import request_tokens, request_tokens_at_most
from labeler.sentences.example import Frozen

Messages = Sequence[Mapping[str, Any]]


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

    def __init__(self, model: str, **settings: Any) -> None:  # noqa: ANN401 - checked by HostedJudge
        super().__init__(model, **settings)
        self.auto = False
        if settings.get("price") is None and self.price is not None:
            self.price = self.price.of_input()
        self._form = FORMS[self.provider]
        self.form = Form(
            f"/{self._form.path}",
            self._body,
            self._read,
            model_path="/models/{model}",
            version=self._form.version,
        )
        self._limits = Limits(self._form.most_questions, self._form.most_options)

    def _body(self, asked: Request) -> dict[str, Any]:
        """Return a record with the questions that stand in for messages."""
        questions = self._form.asked(cast("Sequence[Question]", asked.messages))
        text = {self._form.text: _input(asked.task)}
        return {**asked.spec.parameters(), **text, "questions": questions}

    def _read(self, body: bytes, asked: Request) -> Completion | None:
        return self._form.read(body, _input(asked.task), cast("Sequence[Question]", asked.messages))

    async def _ask(self, log: AttemptLog) -> Decisions:
        """Ask all questions, in as few requests as the server takes."""
        decided = Decisions(_prompt_of(log.task), log.task.example)
        most = self._limits.questions
        while questions := decided.open(self._limits.options):
            asked = questions[: min(most, self._limits.questions)]
            try:
                completion = await self.complete(messages=cast("Messages", asked))
            except AttemptFailed as failed:
                is_long = failed.rule.reason == "context_length" and len(asked) > 1
                if failed.stops or not (is_long or self._limits.learn(failed.observed, asked)):
                    raise
                most = -(-len(asked) // 2) if is_long else most
                continue
            decided.found.update(completion.decisions)
            log.answers = 0  # the requests of a record are no re-asks
        log.answers = log.readable = 1
        return decided

    def _reply(self, log: AttemptLog, answer: Any) -> JudgeReply[Frozen]:  # noqa: ANN401 - of _answer
        facts = log.facts(self.host).model_copy(update={"thresholds": THRESHOLDS})
        output = cast("type[Frozen]", log.task.answer_type)
        return JudgeReply(answer_of(answer, output), facts, scores=scores_of(answer))

    def _size(self, log: AttemptLog, messages: Messages) -> Size:
        asked = cast("Sequence[Question]", messages)
        texts = [_input(log.task), "\n".join(map(shown, asked))]
        tokens = request_tokens(self._counter, [{"content": text} for text in texts], "")
        if self.price is None:
            return Size(tokens)
        sent = [{"content": texts[0]}, {"content": json.dumps(self._form.asked(asked))}]
        return Size(tokens, self.price.worst(request_tokens_at_most(self._counter, sent, ""), 0))


def _input(task: Task[Any]) -> str:
    return task.messages[0]["content"]


def _prompt_of(task: Task[Any]) -> DecisionPrompt:
    if not isinstance(task.prompt, DecisionPrompt):
        raise UsageError(f"judge {task.signature.judge} cannot ask by prompt {task.prompt.name!r}")
    return task.prompt


class SystemOneJudge(DecisionsJudge):
    """The same before TypeSafe's ``/v1/systemone``, or a server that speaks it."""

    provider = "systemone"
