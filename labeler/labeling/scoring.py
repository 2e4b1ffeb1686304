"""Asks for scores, and for the steps by which a criterion is graded.

Both go the way of labels: one structured request, checked, stored under a key of all that can
change the answer. The criterion is its user's text and stands among the instructions; the record is
strangers' text and stands in data blocks, whose fence carries a marker that no text can hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from labeler.errors import UsageError
from labeler.judges.judge import Judge
from labeler.judges.prompting import (
    JudgeRequest,
    Message,
    Prompt,
    data_text,
    prompt_parts,
    sentence_lines,
)
from labeler.labeling.tasks import Unanswerable
from labeler.labels import resources
from labeler.labels.contract import Violation
from labeler.labels.criteria import Criterion, Part, ScoreAnswer, StepsAnswer
from labeler.labels.logprobs import Token, distribution_of
from labeler.labels.profiles import Profile
from labeler.labels.record import AnyRecord, ReplyFacts, ScoreRecord, SentenceScores, StepsRecord
from labeler.labels.record import score_key as key_of_score
from labeler.labels.record import steps_key as key_of_steps
from labeler.labels.schemas import ResponseSchema, load_schema
from labeler.labels.signature import Signature, digest
from labeler.sentences.example import Example, Frozen, KeyedExample
from labeler.sentences.splitting import Splitter, key_example

RUBRIC_PROMPT = "rubric/v1"
STEPS_PROMPT = "steps/v1"
SCORE_SCHEMA = "score/v1"
STEPS_SCHEMA = "steps/v1"

TOP_LOGPROBS = 20
"""Tokens whose probabilities are asked for at each place: as many as OpenAI's servers give."""

_SCORE_TOKENS, _STEPS_TOKENS = 250, 250
"""About how long an answer is, without reasoning."""
_MOST_STEPS = 20

_A = TypeVar("_A", bound=Frozen)

_VARIABLE = re.compile(r"\{\{([a-z_]+)\}\}")
_BLOCKS = {
    "question": "- QUESTION: what the user asked.",
    "documents": "- DOCUMENTS: the sentences of the documents that were retrieved for it, with keys"
    " such as `0a`, `0b`, `1a`.",
    "response": "- RESPONSE: the sentences of the response under judgement, with keys such as `a`,"
    " `b`.",
    "reference": "- REFERENCE: the sentences of a reference answer, which is held to be right, with"
    " keys such as `ref.a`.",
    "key_facts": "- REFERENCE: the sentences of a reference answer, with keys such as `ref.a`; or,"
    " where there is none, DOCUMENTS: those of the documents, with keys such as `0a`.",
}
_MISSING: dict[Part, str] = {
    "question": "empty_question",
    "documents": "no_document_sentences",
    "response": "empty_response",
    "reference": "no_reference",
}
"""Why a row cannot be scored, by the part that it lacks."""


@dataclass(frozen=True)
class ScoreRecipe:
    """All that turns an example into the request for a score, but for the example.

    Attributes:
        judge: who is asked.
        splitter: what makes the sentences.
        criterion: what the score is given for; its steps are known.
        trial: 0 for the first score, another number for a repeated one.
        samples: how many trials make one score together.
        logprobs: whether the probabilities of the answer's tokens are asked for.
    """

    judge: Judge
    splitter: Splitter
    criterion: Criterion
    trial: int = 0
    samples: int = 1
    logprobs: bool = False

    @cached_property
    def prompt(self) -> Prompt:
        """The instructions for the criterion, and a frame for one record's data."""
        # Each criterion is a way of scoring of its own: its name is part of the signature.
        return _prompt(RUBRIC_PROMPT, self.criterion, f"+{self.criterion.name}")

    @cached_property
    def schema(self) -> ResponseSchema:
        """The published schema of scores, with the scale of the criterion."""
        return _schema(self.criterion.low, self.criterion.high)

    def request(self, example: Example) -> ScoreRequest:
        """Key an example and name the score that it asks for.

        Raises:
            Unanswerable: the row lacks a part that the criterion shows.
            BadRow: given sentences do not fit the text.
        """
        return self.request_keyed(key_example(example, self.splitter))

    def request_keyed(self, keyed: KeyedExample) -> ScoreRequest:
        """Name the score of an example that has its keys already.

        Raises:
            Unanswerable: it lacks a part that the criterion shows.
        """
        asked = {"logprobs": TOP_LOGPROBS} if self.logprobs else {}
        signature = self.judge.spec.signature(
            self.prompt, self.schema, keyed.splitter, trial=self.trial, asked=asked
        )
        _refuse_lacking(keyed, self.criterion, signature)
        key = key_of_score(keyed, self.criterion, signature)
        return ScoreRequest(
            key, keyed, signature, self.prompt, self.schema, self.criterion, self.samples
        )


@dataclass(frozen=True)
class StepsRecipe:
    """Asks for the steps of criteria, each of which stands as a row of its own."""

    judge: Judge
    criteria: Mapping[str, Criterion]
    """By name, which is the row's id."""

    def request(self, example: Example) -> StepsRequest:
        """The request for the steps of the criterion that an example is named after."""
        criterion = self.criteria[example.id]
        prompt, schema = _prompt(STEPS_PROMPT, criterion), load_schema(STEPS_SCHEMA)
        signature = self.judge.spec.signature(prompt, schema, _NO_SPLITTER)
        keyed = KeyedExample(
            id=criterion.name,
            question=criterion.criteria,
            documents=(),
            response=(),
            splitter=_NO_SPLITTER,
        )
        key = key_of_steps(criterion, signature)
        return StepsRequest(key, keyed, signature, prompt, schema, criterion)

    def rows(self) -> list[Example]:
        """A row for each criterion."""
        return [
            Example(id=name, question=criterion.criteria, documents=(), response="")
            for name, criterion in self.criteria.items()
        ]


_NO_SPLITTER = "none"


@dataclass(frozen=True)
class _CriterionRequest(JudgeRequest):
    """A request that is made for a criterion."""

    criterion: Criterion

    @property
    def profile(self) -> Profile:
        """None.

        Raises:
            UsageError: always; judges that give nothing but labels ask for it.
        """
        raise UsageError(
            f"judge {self.signature.judge!r} gives labels alone: criterion "
            f"{self.criterion.name!r} needs a language model: use --judge openai --model NAME "
            "(OpenAIJudge in Python), with --base-url for a server of your own"
        )


@dataclass(frozen=True)
class ScoreRequest(_CriterionRequest):
    """One record to be scored by one criterion, and all that can change the score."""

    samples: int = 1

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages: the criterion in the instructions, what it shows in the data."""
        user = _filled(self.prompt.user, _data(self.example, self.criterion))
        return (
            {"role": "system", "content": self.prompt.system},
            {"role": "user", "content": user},
        )

    @property
    def answer_type(self) -> type[Frozen]:
        """The class that an answer is read into."""
        return ScoreAnswer

    @property
    def rules(self) -> str:
        """What an answer must keep, in words for a judge that broke it."""
        return f"The score is a whole number {_scale(self.criterion)}."

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What is sent besides the judge's own parameters."""
        if "logprobs" not in self.signature.sampling:
            return {}
        return {"logprobs": True, "top_logprobs": self.signature.sampling["logprobs"]}

    @property
    def expected_tokens(self) -> int:
        """About how long an answer will be."""
        return _SCORE_TOKENS

    def broken_by(self, answer: Frozen) -> tuple[Violation, ...]:
        """What an answer breaks: a score is one of the scale's."""
        given = _of(ScoreAnswer, answer)
        if given.score in self.criterion.scale:
            return ()
        return (Violation(kind="score_outside_scale", field="score", keys=(str(given.score),)),)

    def admit(
        self,
        answer: Frozen,
        facts: ReplyFacts,
        *,
        scores: SentenceScores | None = None,
        tokens: Sequence[Token] = (),
    ) -> ScoreRecord | tuple[Violation, ...]:
        """Make the record that an answer becomes, or say what it breaks."""
        del scores
        given = _of(ScoreAnswer, answer)
        broken = self.broken_by(given)
        if broken:
            return broken
        asked = "logprobs" in self.signature.sampling
        likely = distribution_of(tokens, given.score, self.criterion.scale) if asked else None
        return ScoreRecord(
            key=self.key,
            example=self.example,
            criterion=self.criterion,
            answer=given,
            distribution=likely,
            method="logprobs" if likely else "answer",
            samples=self.samples,
            signature=self.signature,
            reply=facts,
        )

    def renamed(self, record: AnyRecord) -> AnyRecord:
        """The stored record under this row's name, with this run's threshold and samples."""
        changes = {
            "example": self.example,
            "criterion": self.criterion,
            "samples": self.samples,
        }
        return record.model_copy(update=changes)


@dataclass(frozen=True)
class StepsRequest(_CriterionRequest):
    """A criterion to be given evaluation steps."""

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The chat messages; there is no stranger's text in them."""
        return (
            {"role": "system", "content": self.prompt.system},
            {"role": "user", "content": self.prompt.user},
        )

    @property
    def answer_type(self) -> type[Frozen]:
        """The class that an answer is read into."""
        return StepsAnswer

    @property
    def rules(self) -> str:
        """What an answer must keep, in words for a judge that broke it."""
        return f"There are one to {_MOST_STEPS} steps, and none is empty."

    @property
    def expected_tokens(self) -> int:
        """About how long an answer will be."""
        return _STEPS_TOKENS

    def broken_by(self, answer: Frozen) -> tuple[Violation, ...]:
        """What an answer breaks: there are steps, and none is empty."""
        steps = _of(StepsAnswer, answer).steps
        if 0 < len(steps) <= _MOST_STEPS and all(step.strip() for step in steps):
            return ()
        return (Violation(kind="no_steps", field="steps", keys=(str(len(steps)),)),)

    def admit(
        self,
        answer: Frozen,
        facts: ReplyFacts,
        *,
        scores: SentenceScores | None = None,
        tokens: Sequence[Token] = (),
    ) -> StepsRecord | tuple[Violation, ...]:
        """Make the record that an answer becomes, or say what it breaks."""
        del scores, tokens
        given = _of(StepsAnswer, answer)
        return self.broken_by(given) or StepsRecord(
            key=self.key,
            criterion=self.criterion,
            answer=given,
            signature=self.signature,
            reply=facts,
        )

    def renamed(self, record: AnyRecord) -> AnyRecord:
        """The stored record under this criterion's name."""
        return record.model_copy(update={"criterion": self.criterion})


def _of(kind: type[_A], answer: Frozen) -> _A:
    """An answer of the class that was asked for.

    Raises:
        TypeError: it is none; the judge's code is at fault.
    """
    if not isinstance(answer, kind):
        raise TypeError(f"a {kind.__name__} was asked for, got a {type(answer).__name__}")
    return answer


@lru_cache(maxsize=64)
def _template(name: str) -> tuple[str, str]:
    return prompt_parts(name, resources.read("prompts", name, ".md"))


def _prompt(name: str, criterion: Criterion, suffix: str = "") -> Prompt:
    """A prompt file with the text of a criterion; the suffix goes with its name."""
    system, user = _template(name)
    values = {
        "name": criterion.name,
        "criteria": criterion.criteria or "It is what the steps below look for.",
        "scale": _scale(criterion),
        "anchors": _anchors(criterion),
        "steps": _steps(criterion),
        "blocks": "\n".join(_BLOCKS[part] for part in _BLOCKS if part in criterion.shows),
    }
    kept = {"marker": "{{marker}}", "data": "{{data}}"}  # filled for each record
    return Prompt(f"{name}{suffix}", _filled(system, values), _filled(user, {**values, **kept}))


def _filled(text: str, values: Mapping[str, str]) -> str:
    # One pass: text that came in as a value is never looked at again.
    return _VARIABLE.sub(lambda match: values[match[1]], text)


def _scale(criterion: Criterion) -> str:
    return f"from {criterion.low} (the worst) to {criterion.high} (the best)"


def _anchors(criterion: Criterion) -> str:
    described = sorted(criterion.anchors.items(), reverse=True)
    if not described:
        return (
            f"{criterion.high} means that the criterion is met in full, {criterion.low} that it is "
            "not met at all; the numbers between are even steps."
        )
    return "\n".join(f"- {score}: {meaning}" for score, meaning in described)


def _steps(criterion: Criterion) -> str:
    if not criterion.steps:
        return (
            "Go through what the criterion asks for, point by point. Hold each point against the "
            "data. Weigh what you found by the descriptions of the scale."
        )
    return "\n".join(f"{n}. {step}" for n, step in enumerate(criterion.steps, 1))


def _data(example: KeyedExample, criterion: Criterion) -> dict[str, str]:
    """The marker and the data blocks of what a criterion shows of an example.

    The marker is fixed by exactly what is shown, which cannot hold the digest of itself.
    """
    lines = {
        "question": lambda: data_text(example.question),
        "documents": lambda: sentence_lines(example.document_sentences()),
        "response": lambda: sentence_lines(example.response),
        "reference": lambda: sentence_lines(example.reference or ()),
    }
    parts = criterion.parts(has_reference=bool(example.reference))
    shown = {part: lines[part]() for part in parts}
    marker = digest({"fence": shown})[:16]
    blocks = (
        f"BEGIN {part.upper()} {marker}\n{text}\nEND {part.upper()} {marker}"
        for part, text in shown.items()
    )
    return {"marker": marker, "data": "\n\n".join(blocks)}


@lru_cache(maxsize=64)
def _schema(low: int, high: int) -> ResponseSchema:
    published = load_schema(SCORE_SCHEMA)
    schema = json.loads(published.text)
    schema["properties"]["score"]["enum"] = list(range(low, high + 1))
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return replace(published, text=text)


def _refuse_lacking(example: KeyedExample, criterion: Criterion, signature: Signature) -> None:
    """Refuse, before any spend, a row that lacks a part that is shown."""
    there: dict[Part, bool] = {
        "question": bool(example.question.strip()),
        "documents": any(example.documents),
        "response": bool(example.response),
        "reference": bool(example.reference),
    }
    for part in criterion.parts(has_reference=there["reference"]):
        if not there[part]:
            raise Unanswerable(
                f"{example.id!r}: nothing in {part!r}, which criterion {criterion.name!r} shows; "
                "the judge was not asked",
                reason=_MISSING[part],
                signature=signature,
            )


def stepped(criterion: Criterion, steps: Iterable[str]) -> Criterion:
    """A criterion with the steps that were written for it."""
    return criterion.model_copy(update={"steps": tuple(steps)})
