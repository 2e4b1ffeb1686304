"""Scores of rows by criteria: missing evaluation steps first, then the scores."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from labeler.data.row_stream import RowStream
from labeler.data.rows import Row, Rows
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import Judge, require_answers
from labeler.judges.providers import provider_of
from labeler.judges.task import Task
from labeler.labeling.pipeline import choose_mode, first_tasks, submit_rows
from labeler.labeling.run import Run
from labeler.labels.record import LabelFailure
from labeler.plugins.scores.records import Criterion, ScoreOutcome, ScoreRecord, StepsRecord
from labeler.plugins.scores.tasks import ScoreKind, ScoreTasks, steps_task
from labeler.sentences.splitting import Splitter


@dataclass(frozen=True)
class Plan:
    """The scores that one judge gives each row.

    Attributes:
        judge: judge to ask.
        splitter: sentence splitter.
        criteria: criteria to score by.
        samples: trials that make one score together.
        repeat: scores of each row and criterion.
        logprobs: whether to request the probabilities of the answers' tokens.

    Raises:
        UsageError: probabilities are requested, and the provider has none.
    """

    judge: Judge
    splitter: Splitter
    criteria: Sequence[Criterion]
    samples: int = 1
    repeat: int = 1
    logprobs: bool = False

    def __post_init__(self) -> None:
        provider = provider_of(self.judge.spec.judge)
        if self.logprobs and provider is not None and "logprobs" in provider.lacks:
            raise UsageError(
                f"judge {self.judge.spec.judge} takes no logprobs: the API has none; drop "
                "--logprobs"
            )

    def factories(self) -> list[ScoreTasks]:
        """Return one task factory for each criterion and trial, in that order."""
        return [
            ScoreTasks(self.judge, self.splitter, one, trial, self.samples, self.logprobs)
            for one in self.criteria
            for trial in range(self.samples * self.repeat)
        ]

    def first_tasks(self, rows: Sequence[Row]) -> Iterator[Task[Any]]:
        """Yield what may be stored already: steps, and scores of the first rows."""
        for criterion in self.criteria:
            if criterion.steps is None:
                yield steps_task(self.judge, criterion)
        for factory in self.factories():
            if factory.criterion.steps is not None:
                yield from first_tasks(factory, rows)


def score_rows(run: Run, rows: Rows, plans: Sequence[Plan]) -> Generator[ScoreOutcome, None, None]:
    """Score rows in order, plan by plan; every score is durable in the store before it is yielded.

    Each judge writes the steps that a criterion lacks once, before any row.

    Args:
        run: the run, which the caller ends; all plans together keep to its budget.
        rows: read once for each plan.
        plans: one plan for each judge. A row that cannot be read fails once, not once for each.

    Raises:
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
        UsageError: there is no plan, two have one judge, one cannot keep to the budget, the rows
            cannot be read, or a judge gives labels alone.
    """
    _require_judges(plans)
    stream = run.read(rows, [one for plan in plans for one in plan.factories()])
    for plan in plans:
        first = plan.first_tasks(stream.first)
        choose_mode(plan.judge, first, run.cache.store, run.cache.is_known)
    ready = [_with_steps(plan, run) for plan in plans]
    for number, plan in enumerate(ready, start=1):
        if len(plans) > 1:
            run.notice(f"judge {number} of {len(plans)}: {plan.judge.spec}")
        read = stream if number == 1 else RowStream(rows)
        for outcome in submit_rows(run, read, plan.factories(), with_unreadable=number == 1):
            if isinstance(outcome, ScoreRecord | LabelFailure):  # as scores are
                yield outcome


def _require_judges(plans: Sequence[Plan]) -> None:
    """Check, before any spend, that there are judges, that they differ and that they score."""
    if not plans:
        raise UsageError("scores need a judge: none is given")
    asked = [(plan.judge.spec, plan.judge.spec.sampling()) for plan in plans]
    for number, (spec, settings) in enumerate(asked):
        if (spec.judge, spec.model, settings) in [
            (other.judge, other.model, given) for other, given in asked[:number]
        ]:
            raise UsageError(
                f"judge {spec} is named twice: its scores would be the same ones; repeat has a "
                "judge score again"
            )
    for plan in plans:
        for criterion in plan.criteria:
            require_answers(plan.judge, ScoreKind(criterion))


def _with_steps(plan: Plan, run: Run) -> Plan:
    """Return a plan whose criteria have steps, from the store or from its judge.

    Raises:
        FatalJudgeError: a criterion gets no steps, or they use up the budget.
    """
    lacking = [criterion for criterion in plan.criteria if criterion.steps is None]
    if not lacking:
        return plan
    tasks = [(plan.judge, steps_task(plan.judge, one)) for one in lacking]
    settled = run.wait(run.submit(partial(run.settled, tasks)))
    written: dict[str, Criterion] = {}
    for criterion, (outcome, _) in zip(lacking, settled, strict=True):
        if isinstance(outcome, StepsRecord):
            steps = {"steps": outcome.answer.steps}
            written[criterion.name] = criterion.model_copy(update=steps)
        elif isinstance(outcome, LabelFailure):
            raise FatalJudgeError(
                f"criterion {outcome.id!r} has no evaluation steps, and none could be had: "
                f"{outcome.message}; give steps in its file",
                reason=outcome.reason,
                attempts=outcome.attempts,
            )
    if run.budget.cap is not None and run.budget.spent >= run.budget.cap:
        raise FatalJudgeError(
            "the budget is used up by the evaluation steps; they are stored; give it more",
            reason="budget",
            attempts=0,
        )
    return replace(plan, criteria=[written.get(one.name, one) for one in plan.criteria])
