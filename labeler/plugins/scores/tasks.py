"""Tasks for scores by criteria, and for the evaluation steps of a criterion.

The criterion is the user's own text and stands among the instructions. The record is untrusted text
and stands in data blocks, fenced by a marker that no text can contain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, cast

from labeler.judges.judge import Judge
from labeler.judges.prompting import (
    Message,
    Prompt,
    chat,
    data_text,
    fenced,
    fill,
    prompt_parts,
    sentence_lines,
)
from labeler.judges.task import JudgeReply, Task, TaskKind
from labeler.labeling.tasks import MissingField
from labeler.labels.contract import AnswerT, CheckedAnswer, Violation
from labeler.labels.record import AnyRecord
from labeler.labels.schemas import ResponseSchema, load_schema, read_resource
from labeler.labels.signature import Signature, digest
from labeler.plugins.scores.records import (
    Criterion,
    Part,
    ScoreAnswer,
    ScoreRecord,
    StepsAnswer,
    StepsRecord,
    distribution_of,
    score_key,
    steps_key,
)
from labeler.sentences.example import Example, KeyedExample, Sentence
from labeler.sentences.splitting import Splitter, key_example

RUBRIC_PROMPT = "rubric/v1"
STEPS_PROMPT = "steps/v1"
SCORE_SCHEMA = "score/v1"
STEPS_SCHEMA = "steps/v1"

TOP_LOGPROBS = 20
"""Alternatives requested for each token; OpenAI's servers return at most 20."""

_SCORE_TOKENS, _STEPS_TOKENS = 250, 250
"""Typical length of an answer, without reasoning."""
_MOST_STEPS = 20

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
"""Failure reason by missing part."""


@dataclass(frozen=True)
class _CriterionKind(TaskKind[AnswerT]):
    """A task about a criterion."""

    criterion: Criterion

    def unsupported(self, judge: str) -> str:
        """Return the error message for a judge that gives labels only."""
        return (
            f"judge {judge!r} can label but not score: criterion "
            f"{self.criterion.name!r} needs a language model: use --judge openai --model NAME "
            "(OpenAIJudge in Python), with --base-url for a server of your own"
        )


@dataclass(frozen=True)
class ScoreKind(_CriterionKind[ScoreAnswer]):
    """The score of a record by one criterion."""

    samples: int = 1
    """Trials that make one score together."""
    name = "score"
    answer_type = ScoreAnswer
    typical_tokens = _SCORE_TOKENS

    @property
    def rules(self) -> str:
        """The allowed scores."""
        return f"The score is a whole number {_scale(self.criterion)}."

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the score's key."""
        return score_key(example, self.criterion, signature)

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the criterion as instructions and the shown parts as data."""
        return chat(prompt.system, fill(prompt.user, _data(example, self.criterion)))

    def parameters(self, signature: Signature) -> Mapping[str, Any]:
        """Request log-probabilities if the signature includes them."""
        if "logprobs" not in signature.sampling:
            return {}
        return {"logprobs": True, "top_logprobs": signature.sampling["logprobs"]}

    def check(self, answer: ScoreAnswer, example: KeyedExample) -> CheckedAnswer[ScoreAnswer]:
        """Check that the score is on the scale."""
        del example
        if answer.score in self.criterion.scale:
            return CheckedAnswer(answer)
        outside = Violation(kind="score_outside_scale", field="score", keys=(str(answer.score),))
        return CheckedAnswer(answer, violations=(outside,))

    def record(
        self,
        task: Task[ScoreAnswer],
        check: CheckedAnswer[ScoreAnswer],
        reply: JudgeReply[ScoreAnswer],
    ) -> ScoreRecord:
        """Build the score record, with a distribution if the reply has log-probabilities."""
        del check
        likely = None
        if "logprobs" in task.signature.sampling:
            likely = distribution_of(reply.tokens, reply.answer.score, self.criterion.scale)
        return ScoreRecord(
            key=task.key,
            example=task.example,
            criterion=self.criterion,
            answer=reply.answer,
            distribution=likely,
            method="logprobs" if likely else "answer",
            samples=self.samples,
            normalised={**reply.repairs},
            signature=task.signature,
            reply=reply.facts,
        )

    def renamed(self, task: Task[ScoreAnswer], record: AnyRecord) -> AnyRecord:
        """Return the stored record with this row's id and this run's threshold and samples."""
        changes = {
            "example": task.example,
            "criterion": self.criterion,
            "samples": self.samples,
        }
        return record.model_copy(update=changes)


@dataclass(frozen=True)
class StepsKind(_CriterionKind[StepsAnswer]):
    """Evaluation steps for a criterion."""

    name = "steps"
    answer_type = StepsAnswer
    typical_tokens = _STEPS_TOKENS
    rules = f"There are one to {_MOST_STEPS} steps, and none is empty."

    def key(self, example: KeyedExample, signature: Signature) -> str:
        """Return the key of the steps."""
        del example
        return steps_key(self.criterion, signature)

    def messages(self, prompt: Prompt, example: KeyedExample) -> tuple[Message, ...]:
        """Render the prompt, which contains no text of a row."""
        del example
        return chat(prompt.system, prompt.user)

    def check(self, answer: StepsAnswer, example: KeyedExample) -> CheckedAnswer[StepsAnswer]:
        """Check that there are steps and none is empty."""
        del example
        steps = answer.steps
        if 0 < len(steps) <= _MOST_STEPS and all(step.strip() for step in steps):
            return CheckedAnswer(answer)
        none = Violation(kind="no_steps", field="steps", keys=(str(len(steps)),))
        return CheckedAnswer(answer, violations=(none,))

    def record(
        self,
        task: Task[StepsAnswer],
        check: CheckedAnswer[StepsAnswer],
        reply: JudgeReply[StepsAnswer],
    ) -> StepsRecord:
        """Build the steps record."""
        del check
        return StepsRecord(
            key=task.key,
            criterion=self.criterion,
            answer=reply.answer,
            signature=task.signature,
            reply=reply.facts,
        )

    def renamed(self, task: Task[StepsAnswer], record: AnyRecord) -> AnyRecord:
        """Return the stored record with this criterion's name."""
        del task
        return record.model_copy(update={"criterion": self.criterion})


@dataclass(frozen=True)
class ScoreTasks:
    """Builds score tasks for one criterion.

    Attributes:
        judge: judge to ask.
        splitter: sentence splitter.
        criterion: criterion with known steps.
        trial: 0 for the first score; repeats count up.
        samples: trials that make one score together.
        logprobs: whether to request the probabilities of the answer's tokens.
    """

    judge: Judge
    splitter: Splitter
    criterion: Criterion
    trial: int = 0
    samples: int = 1
    logprobs: bool = False

    @cached_property
    def kind(self) -> ScoreKind:
        """Kind of the tasks."""
        return ScoreKind(self.criterion, self.samples)

    @cached_property
    def prompt(self) -> Prompt:
        """Instructions for the criterion, and a template for one record's data."""
        # The criterion's name is part of the signature: each criterion scores in its own way.
        return _prompt(RUBRIC_PROMPT, self.criterion, f"+{self.criterion.name}")

    @cached_property
    def schema(self) -> ResponseSchema:
        """The published schema of scores, with the criterion's scale."""
        return _schema(self.criterion.low, self.criterion.high)

    @property
    def needs(self) -> frozenset[str]:
        """The reference answer, if the criterion shows it in any case."""
        return frozenset({"reference"} & set(self.criterion.parts(has_reference=False)))

    def task(self, example: Example) -> Task[ScoreAnswer]:
        """Split an example and build its task.

        Raises:
            MissingField: the row lacks a part that the criterion shows.
            BadRow: given sentences do not fit the text.
        """
        return self.keyed_task(key_example(example, self.splitter))

    def keyed_task(self, keyed: KeyedExample) -> Task[ScoreAnswer]:
        """Build the task of a keyed example.

        Raises:
            MissingField: it lacks a part that the criterion shows.
        """
        asked = {"logprobs": TOP_LOGPROBS} if self.logprobs else {}
        signature = self.judge.spec.signature(
            self.prompt, self.schema, keyed.splitter, trial=self.trial, asked=asked
        )
        _require_parts(keyed, self.criterion, signature)
        key = score_key(keyed, self.criterion, signature)
        return Task(key, keyed, signature, self.prompt, self.schema, self.kind)


def steps_task(judge: Judge, criterion: Criterion) -> Task[StepsAnswer]:
    """Build the task for a criterion's evaluation steps."""
    prompt, schema = _prompt(STEPS_PROMPT, criterion), load_schema(STEPS_SCHEMA)
    signature = judge.spec.signature(prompt, schema, _NO_SPLITTER)
    keyed = KeyedExample(
        id=criterion.name,
        question=criterion.criteria,
        documents=(),
        response=(),
        splitter=_NO_SPLITTER,
    )
    key = steps_key(criterion, signature)
    return Task(key, keyed, signature, prompt, schema, StepsKind(criterion))


_NO_SPLITTER = "none"


@lru_cache(maxsize=64)
def _template(name: str) -> tuple[str, str]:
    return prompt_parts(name, read_resource("prompts", name, ".md"))


def _prompt(name: str, criterion: Criterion, suffix: str = "") -> Prompt:
    """Fill a prompt file with a criterion's text; the suffix extends its name."""
    system, user = _template(name)
    values = {
        "name": criterion.name,
        "criteria": criterion.criteria or "It is what the steps below look for.",
        "scale": _scale(criterion),
        "anchors": _anchors(criterion),
        "steps": _steps(criterion),
        "blocks": "\n".join(_BLOCKS[part] for part in _BLOCKS if part in criterion.shows),
    }
    kept = {"marker": "{{marker}}", "data": "{{data}}"}  # filled in for each record
    return Prompt(f"{name}{suffix}", fill(system, values), fill(user, {**values, **kept}))


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
    """Return the marker and the data blocks of the parts that a criterion shows.

    The marker is a digest of exactly these parts, which cannot contain their own digest.
    """
    shown = {
        part: data_text(example.question)
        if part == "question"
        else sentence_lines(cast("Sequence[Sentence]", texts))
        for part, texts in criterion.texts(example).items()
    }
    marker = digest({"fence": shown})[:16]
    blocks = (fenced(part, text, marker) for part, text in shown.items())
    return {"marker": marker, "data": "\n\n".join(blocks)}


@lru_cache(maxsize=64)
def _schema(low: int, high: int) -> ResponseSchema:
    published = load_schema(SCORE_SCHEMA)
    schema = json.loads(published.text)
    schema["properties"]["score"]["enum"] = list(range(low, high + 1))
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return replace(published, text=text)


def _require_parts(example: KeyedExample, criterion: Criterion, signature: Signature) -> None:
    """Reject, before any spend, a row that lacks a shown part."""
    for part, texts in criterion.texts(example).items():
        if not texts:
            raise MissingField(
                f"{example.id!r}: nothing in {part!r}, which criterion {criterion.name!r} shows; "
                "the judge was not asked",
                reason=_MISSING[part],
                signature=signature,
            )
