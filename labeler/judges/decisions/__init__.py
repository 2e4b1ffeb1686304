"""The judge that asks for probabilities: one request a record, more where a server takes less.

Two APIs differ in the form of their questions. Sources: types of openai 3.57.0 (``decision.py``,
``decision_create_params.py``), and the specification in jevcompat 0.1.1. Servers deviate: an answer
that does not fit its question exactly is an error, never a guess. ``confidence`` is not read: it
says how concentrated a distribution is, in five ways.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, cast

from labeler.errors import UsageError
from labeler.judges.decisions.questions import (
    THRESHOLDS,
    Decision,
    DecisionPrompt,
    Decisions,
    Question,
    answer_of,
    scores_of,
    shown,
)
from labeler.judges.limits import Size
from labeler.judges.openai.attempts import AttemptLog, cut_prompt
from labeler.judges.openai.completion import Completion, counts_of, fact_of, unreadable
from labeler.judges.openai.error_rules import AttemptFailed, ErrorKind, ObservedError, find_rule
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.reading import at, json_of, list_of, parse_object
from labeler.judges.openai.request import Form, Request
from labeler.judges.openai.server_errors import error_in
from labeler.judges.task import JudgeReply, Messages, Task
from labeler.sentences.example import Frozen

_LEAST_TOLERANCE, _FEWEST_DIGITS = 0.05, 2
"""A distribution's sum may be off by this in any case; digits after the point that servers show."""
_ROUNDED = 1e-6
"""A probability may be off by this: servers add up numbers of 32 bits."""


class Unfit(Exception):
    """An answer that does not fit its question; the message names the question and the fault."""

    def __init__(self, fault: str, *, kind: ErrorKind = "undecided") -> None:
        super().__init__(fault)
        self.kind = kind


@dataclass(frozen=True)
class QuestionForm:
    """The form of questions and answers in one API.

    Attributes:
        text: field of the request with the record.
        most_questions: questions that some server takes in one request.
        most_options: options that some server takes in one choice.
        asked: makes the value of ``questions``.
        answers: returns answers by the name of their question, of the value of ``answers``.
        fields: type of an answer to a question of yes or no, and the field of its probability.
    """

    text: str
    most_questions: int
    most_options: int
    asked: Callable[[Sequence[Question]], Any]
    answers: Callable[[Any, Sequence[Question]], Mapping[str, Any]]
    fields: tuple[str, str]

    def body(self, request: Request) -> dict[str, Any]:
        """Return a record with the questions that stand in for messages."""
        text = {self.text: request.task.messages[0]["content"]}
        return {**request.spec.parameters, **text, "questions": self.asked(_questions(request))}

    def read(self, body: bytes, request: Request) -> Completion:
        """Read an answer."""
        values, has_twins = parse_object(body.decode("utf-8-sig", "replace"), ends=False)
        if values is None:
            is_json = json_of(body) is not None
            odd = ObservedError("undecided", facts="the body is not an object")
            return Completion(error=odd if is_json else unreadable(body))
        asked = _questions(request)
        error, decisions = self._decided(values, asked, has_twins=has_twins)
        counted, read = counts_of(values.get("usage"), is_empty=True)
        texts = [request.task.messages[0]["content"], *(one.instructions for one in asked)]
        return Completion(
            # Checked here: a request holds some of a task's questions.
            error=error or cut_prompt(read, texts),
            usage=counted,
            model=fact_of(values.get("model")),
            decisions=decisions,
        )

    def _decided(
        self, values: Mapping[str, Any], asked: Sequence[Question], *, has_twins: bool
    ) -> tuple[ObservedError | None, Mapping[str, Decision]]:
        """Return why there is no answer to all questions, or the answers."""
        if error := error_in(values, "answers"):
            return error, {}
        if "answers" not in values:
            return ObservedError("undecided", facts="the body has no answers"), {}
        if has_twins:
            return ObservedError("undecided", facts="a name stands twice in one object"), {}
        try:
            given = self.answers(values["answers"], asked)
            return None, {one.name: self._decision(given[one.name], one) for one in asked}
        except Unfit as unfit:
            return ObservedError(unfit.kind, facts=str(unfit)), {}

    def _decision(self, answer: object, question: Question) -> Decision:
        where, (kind, field) = f"question {question.name!r}", self.fields
        stated = at(answer, "type")
        if stated == "refusal":
            raise Unfit(where, kind="refusal")
        if stated != ("choice" if question.options else kind):
            raise Unfit(f"{where}: its answer has another type")
        if not question.options:
            return _probability(at(answer, field), where)
        return _distribution(at(answer, "probabilities"), question.options, where)


def _questions(request: Request) -> Sequence[Question]:
    return cast("Sequence[Question]", request.messages)


def _probability(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit(f"{where}: its probability is not a number")
    if not -_ROUNDED <= value <= 1 + _ROUNDED:  # NaN neither
        raise Unfit(f"{where}: its probability is not from 0 to 1")
    return min(1.0, max(0.0, float(value)))


def _distribution(given: object, options: Sequence[str], where: str) -> dict[str, float]:
    """Return the probabilities of all options, whose sum is 1."""
    values = _by_value(given) if isinstance(given, list) else given
    if not isinstance(values, dict) or set(values) != set(options):
        raise Unfit(f"{where}: its options differ from the question's")
    found = {option: _probability(values[option], where) for option in options}
    total = math.fsum(found.values())
    if not total or abs(total - 1) > _tolerance(found.values()):
        raise Unfit(f"{where}: its probabilities sum to {total:.4g}")
    return found if total == 1 else {option: value / total for option, value in found.items()}


def _by_value(given: list[object]) -> dict[str, object] | None:
    pairs = [(at(one, "value"), at(one, "probability")) for one in given]
    found = {value: probability for value, probability in pairs if isinstance(value, str)}
    return found if len(found) == len(pairs) else None


def _tolerance(values: Any) -> float:  # noqa: ANN401 - numbers
    """Return what rounding explains: half a unit of the last digit shown, for each option."""
    digits = max(-int(Decimal(repr(value)).normalize().as_tuple().exponent) for value in values)
    return max(_LEAST_TOLERANCE, len(values) * 0.5 * 10.0 ** -max(digits, _FEWEST_DIGITS)) + 1e-9


def _listed_questions(asked: Sequence[Question]) -> list[dict[str, Any]]:
    return [
        {
            "type": "choice" if one.options else "predicate",
            "name": one.name,
            "instructions": one.instructions,
            **({"choices": [{"value": option} for option in one.options]} if one.options else {}),
        }
        for one in asked
    ]


def _listed_answers(given: Any, asked: Sequence[Question]) -> Mapping[str, Any]:  # noqa: ANN401 - a JSON value
    """Return answers by name; those without a name are in the order of the questions."""
    answers = list_of(given)
    own: list[Any] = [at(answer, "name") for answer in answers]
    names: list[Any] = [one.name for one in asked]
    if own == [None] * len(names):
        own = names
    if sorted(map(str, own)) != sorted(names):
        raise Unfit(
            f"{len(names)} questions were asked, and {len(own)} answers name others or none"
        )
    return dict(zip(own, answers, strict=True))


def _named_questions(asked: Sequence[Question]) -> dict[str, Any]:
    # Some servers reject an option without a description.
    return {
        one.name: {
            "type": "choice" if one.options else "noul",
            "instructions": one.instructions,
            **({"criteria": {option: option for option in one.options}} if one.options else {}),
        }
        for one in asked
    }


def _named_answers(given: Any, asked: Sequence[Question]) -> Mapping[str, Any]:  # noqa: ANN401 - as above
    if not isinstance(given, dict) or set(given) != {one.name for one in asked}:
        raise Unfit(f"{len(asked)} questions were asked, and the answers are to others")
    return given


# Where a server takes less than here, it says so, and the run keeps to that.
LISTED = QuestionForm(
    text="input",
    most_questions=400,
    most_options=255,
    asked=_listed_questions,
    answers=_listed_answers,
    fields=("predicate", "probability"),
)
"""The form of OpenAI's decisions."""
NAMED = QuestionForm(
    text="state",
    most_questions=1000,
    most_options=255,
    asked=_named_questions,
    answers=_named_answers,
    fields=("noul", "noul"),
)
"""The form of TypeSafe's systemone."""


_REFUSALS = frozenset({400, 413, 422})
_OPTIONS = re.compile(r"option|choice|criteria|candidate")
_COUNTS = re.compile(r"question|many|most|max|limit|exceed|too.?long|fewer|length")
_NUMBER = re.compile(r"\b\d{1,4}\b")
_FEWEST = 8
"""A message may quote a record, so a smaller number is not believed."""


@dataclass
class RequestLimits:
    """Limits of one request to a server, as far as they are known.

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
        longest, count = max(len(question.options) for question in asked), len(asked)
        if _OPTIONS.search(stated) and longest > _FEWEST:
            # Other records learn at the same time.
            self.options = min(self.options, _below(longest, stated))
        elif "question" in stated and count > _FEWEST:
            self.questions = min(self.questions, _below(count, stated))
        else:
            return False
        return True


def _below(count: int, stated: str) -> int:
    """Return the limit that a message states for a count, half the count if it states none.

    If a greater number than the limit is taken for it, the next message leads on.
    """
    numbers = map(int, _NUMBER.findall(stated))
    fitting = (number for number in numbers if _FEWEST <= number < count)
    return max(fitting, default=max(_FEWEST, count // 2))


class DecisionsJudge(HostedJudge):
    """Labels records with a model that answers questions with probabilities.

    It speaks OpenAI's ``/v1/decisions``.

    Args:
        model: name of the model.
        settings: as for :class:`~labeler.judges.openai.judge.HostedJudge`.

    Example:
        >>> from labeler.judges.decisions import DecisionsJudge
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
