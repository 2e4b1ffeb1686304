"""Scores of rows by criteria: the tasks, and the run that asks them.

The criterion is the user's own text and stands among the instructions. The record is untrusted text
and stands in data blocks, fenced by a marker that no text can contain.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

from labeler.data.rows import Row, Rows
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import Judge, require_answers
from labeler.judges.options import provider_of
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
from labeler.labeling.pipeline import choose_mode, first_tasks, require_different, submit_rows
from labeler.labeling.run import Run
from labeler.labeling.tasks import MissingField
from labeler.labels.contract import AnswerT, CheckedAnswer, Violation
from labeler.labels.record import AnyRecord, LabelFailure
from labeler.labels.signature import ResponseSchema, Signature, digest, load_schema, read_resource
from labeler.plugins.scores.criteria import BLOCKS, Criterion, Part
from labeler.plugins.scores.records import (
    ScoreAnswer,
    ScoreOutcome,
    ScoreRecord,
    StepsAnswer,
    StepsRecord,
    distribution_of,
    score_key,
    steps_key,
)
from labeler.sentences.example import Example, KeyedExample, Sentence
from labeler.sentences.splitting import Splitter, key_example

_RUBRIC, _STEPS = "rubric/v1", "steps/v1"
"""Prompts."""
_TOP_LOGPROBS = 20
"""Alternatives requested for each token; OpenAI's servers return at most 20."""
_TYPICAL_TOKENS = 250
"""Typical length of an answer, without reasoning."""
_MOST_STEPS = 20
_NO_SPLITTER = "none"

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
    answer_type, record_type = ScoreAnswer, ScoreRecord
    typical_tokens = _TYPICAL_TOKENS

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

    def fields(self, task: Task[ScoreAnswer], reply: JudgeReply[ScoreAnswer]) -> dict[str, Any]:
        """Return the criterion, and a distribution if the reply has log-probabilities."""
        likely = None
        if "logprobs" in task.signature.sampling:
            likely = distribution_of(reply.tokens, reply.answer.score, self.criterion.scale)
        return {
            "example": task.example,
            "criterion": self.criterion,
            "distribution": likely,
            "method": "logprobs" if likely else "answer",
            "samples": self.samples,
            "normalised": {**reply.repairs},
        }

    def renamed(self, task: Task[ScoreAnswer], record: AnyRecord) -> AnyRecord:
        """Return the stored record with this row's id and this run's threshold and samples."""
        own = {"example": task.example, "criterion": self.criterion, "samples": self.samples}
        return record.model_copy(update=own)


@dataclass(frozen=True)
class StepsKind(_CriterionKind[StepsAnswer]):
    """Evaluation steps for a criterion."""

    name = "steps"
    answer_type, record_type = StepsAnswer, StepsRecord
    typical_tokens = _TYPICAL_TOKENS
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

    def fields(self, task: Task[StepsAnswer], reply: JudgeReply[StepsAnswer]) -> dict[str, Any]:
        """Return the criterion."""
        del task, reply
        return {"criterion": self.criterion}

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
        logprobs: True to request the probabilities of the answer's tokens.
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
        return _prompt(_RUBRIC, self.criterion, f"+{self.criterion.name}")

    @cached_property
    def schema(self) -> ResponseSchema:
        """The published schema of scores, with the criterion's scale."""
        published = load_schema("score/v1")
        schema = json.loads(published.text)
        schema["properties"]["score"]["enum"] = list(self.criterion.scale)
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        return replace(published, text=text)

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
        asked = {"logprobs": _TOP_LOGPROBS} if self.logprobs else {}
        signature = self.judge.spec.signature(
            self.prompt, self.schema, keyed.splitter, trial=self.trial, asked=asked
        )
        for part, texts in self.criterion.texts(keyed).items():
            if not texts:
                raise MissingField(
                    f"{keyed.id!r}: nothing in {part!r}, which criterion {self.criterion.name!r} "
                    "shows; the judge was not asked",
                    reason=_MISSING[part],
                    signature=signature,
                )
        key = self.kind.key(keyed, signature)
        return Task(key, keyed, signature, self.prompt, self.schema, self.kind)


def steps_task(judge: Judge, criterion: Criterion) -> Task[StepsAnswer]:
    """Build the task for a criterion's evaluation steps."""
    prompt, schema = _prompt(_STEPS, criterion), load_schema("steps/v1")
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


def _prompt(name: str, criterion: Criterion, suffix: str = "") -> Prompt:
    """Fill a prompt file with a criterion's text; the suffix extends its name."""
    system, user = prompt_parts(name, read_resource("prompts", name, ".md"))
    described = sorted(criterion.anchors.items(), reverse=True)
    anchors = "\n".join(f"- {score}: {meaning}" for score, meaning in described) or (
        f"{criterion.high} means that the criterion is met in full, {criterion.low} that it is "
        "not met at all; the numbers between are even steps."
    )
    steps = "\n".join(f"{n}. {step}" for n, step in enumerate(criterion.steps or (), 1)) or (
        "Go through what the criterion asks for, point by point. Hold each point against the "
        "data. Weigh what you found by the descriptions of the scale."
    )
    values = {
        "name": criterion.name,
        "criteria": criterion.criteria or "It is what the steps below look for.",
        "scale": _scale(criterion),
        "anchors": anchors,
        "steps": steps,
        "blocks": "\n".join(line for part, line in BLOCKS.items() if part in criterion.shows),
    }
    kept = {"marker": "{{marker}}", "data": "{{data}}"}  # filled in for each record
    return Prompt(f"{name}{suffix}", fill(system, values), fill(user, {**values, **kept}))


def _scale(criterion: Criterion) -> str:
    return f"from {criterion.low} (the worst) to {criterion.high} (the best)"


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


def score_rows(
    run: Run, rows: Rows, plans: Sequence[Sequence[ScoreTasks]]
) -> Generator[ScoreOutcome, None, None]:
    """Score rows in order; each score is durable in the store before it is yielded.

    Each judge writes the steps that a criterion lacks once, before any row.

    Args:
        run: the run, which the caller ends; all judges together keep to its budget.
        rows: read once.
        plans: the tasks of each judge. A row that cannot be read fails once, not once for each.

    Raises:
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
        UsageError: there is no judge, one is named twice, cannot score, has no probabilities that
            are requested or cannot keep to the budget, or the rows cannot be read.
    """
    if not plans:
        raise UsageError("scores need a judge: none is given")
    every = [one for plan in plans for one in plan]
    for one in every:
        require_answers(one.judge, one.kind)
        provider = provider_of(one.judge.spec.judge)
        if one.logprobs and provider is not None and "logprobs" in provider.lacks:
            raise UsageError(
                f"judge {one.judge.spec.judge} takes no logprobs: the API has none; drop --logprobs"
            )
    stream = run.read(rows, every)
    require_different(stream.first, every)
    for plan in plans:
        choose_mode(plan[0].judge, _first_tasks(plan, stream.first), run.cache)
    ready = [one for plan in plans for one in _with_steps(plan, run)]
    for outcome in submit_rows(run, stream, ready):
        if isinstance(outcome, ScoreRecord | LabelFailure):  # as scores are
            yield outcome


def _first_tasks(plan: Sequence[ScoreTasks], rows: Sequence[Row]) -> Iterator[Task[Any]]:
    """Yield what may be stored already: steps, and scores of the first rows."""
    for one in plan:
        if one.criterion.steps is not None:
            yield from first_tasks(one, rows)
        elif not one.trial:
            yield steps_task(one.judge, one.criterion)


def _with_steps(plan: Sequence[ScoreTasks], run: Run) -> Sequence[ScoreTasks]:
    """Return tasks whose criteria have steps, from the store or from their judge.

    Raises:
        FatalJudgeError: a criterion gets no steps.
    """
    lacking = [one for one in plan if one.criterion.steps is None and not one.trial]
    if not lacking:
        return plan
    tasks = [(one.judge, steps_task(one.judge, one.criterion)) for one in lacking]
    written: dict[str, Criterion] = {}
    for one, (outcome, _) in zip(
        lacking, run.wait(run.submit(partial(run.settled, tasks))), strict=True
    ):
        if isinstance(outcome, StepsRecord):
            steps = {"steps": outcome.answer.steps}
            written[one.criterion.name] = one.criterion.model_copy(update=steps)
        elif isinstance(outcome, LabelFailure):
            raise FatalJudgeError(
                f"criterion {outcome.id!r} has no evaluation steps, and none could be had: "
                f"{outcome.message}; give steps in its file",
                reason=outcome.reason,
                attempts=outcome.attempts,
            )
    return [replace(one, criterion=written.get(one.criterion.name, one.criterion)) for one in plan]
