"""From rows and criteria to stored scores: first the steps that criteria lack, then the scores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import cast

from labeler.data.rows import Rows, RowSequence
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import Judge, require_answers
from labeler.judges.task import Task
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.purse import Purse
from labeler.judges.traffic.traffic import Limits
from labeler.labeling.pipeline import Origin, Watcher, label_rows
from labeler.labeling.scoring import ScoreTasks, steps_task
from labeler.labels.criteria import Criterion, StepsAnswer
from labeler.labels.record import AnyOutcome, LabelFailure, ScoreOutcome, StepsRecord
from labeler.sentences.example import Example
from labeler.sentences.splitting import Splitter
from labeler.store.protocol import LabelStore


@dataclass(frozen=True)
class Plan:
    """What is asked about each row.

    Attributes:
        judge: who is asked.
        splitter: what makes the sentences.
        criteria: what scores are given for.
        samples: trials that make one score together.
        repeat: how many such scores each row gets.
        logprobs: whether the probabilities of the answers' tokens are asked for.
    """

    judge: Judge
    splitter: Splitter
    criteria: Sequence[Criterion]
    samples: int = 1
    repeat: int = 1
    logprobs: bool = False

    def recipes(self) -> list[ScoreTasks]:
        """One for each criterion and trial, in that order."""
        return [
            ScoreTasks(self.judge, self.splitter, one, trial, self.samples, self.logprobs)
            for one in self.criteria
            for trial in range(self.samples * self.repeat)
        ]


def score_rows(
    rows: Rows,
    plans: Sequence[Plan],
    store: LabelStore,
    *,
    concurrency: int,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
    after: Callable[[], None] = lambda: None,
) -> Generator[ScoreOutcome, None, None]:
    """Score rows in order, plan by plan; every score is durable in the store before it is yielded.

    Steps that a criterion lacks are asked for once by each judge, before any row. All is paid out
    of one budget; where it is used up, what is stored is still found.

    Args:
        rows: read twice for each plan: once whole, before any score is asked for, then as it goes.
        plans: what is asked about each row, one plan for each judge. A row that cannot be read
            fails once, not once for each of them.
        store: where steps and scores are looked up and saved.
        concurrency: requests in flight at most.
        limits: what else holds requests back; the budget is that of all plans together.
        retry_failed: ask again where the store holds a lasting failure.
        watcher: told how the run goes.
        after: called at the very end, however the run ends.

    Raises:
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
        UsageError: there is no plan, two have one judge, one cannot keep to the budget, the rows
            cannot be read, two share an id and differ, or a judge gives labels alone.
    """
    purse, ends = Purse(limits or Limits()), _Ends(after)
    told = _Told(watcher, purse, len(plans))
    try:
        _require_judges(plans, limits)
        for plan in plans:
            for tasks in plan.recipes():
                require_answers(plan.judge, tasks.kind)
        ready = [
            _with_steps(plan, store, purse, watcher, retry_failed=retry_failed) for plan in plans
        ]
        for number, plan in enumerate(ready, start=1):
            if watcher and len(plans) > 1:
                watcher.notice(f"judge {number} of {len(plans)}: {plan.judge.spec}")
            run = label_rows(
                rows,
                plan.recipes(),
                store,
                concurrency=concurrency,
                limits=purse.limits(),
                retry_failed=retry_failed,
                watcher=told,
                after=ends.one_more(),
            )
            with closing(run):
                # What recipes of scores make.
                for outcome in cast("Generator[ScoreOutcome, None, None]", run):
                    if number == 1 or not _unread(outcome):
                        yield outcome
    finally:
        if watcher:
            watcher.ended(purse.spent)
        ends.one_ended()


def _require_judges(plans: Sequence[Plan], limits: Limits | None) -> None:
    """Find out before any spend what would make the scores worthless, or the run fail later."""
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
    if limits is not None and limits.budget is not None:
        for plan in plans:
            require = getattr(plan.judge, "require_bounds", None)
            if require is not None:
                require()


class _Ends:
    """Calls back when a run and all engines that work for it have ended.

    An engine may outlive the run that is abandoned: it still saves what was paid for.
    """

    def __init__(self, after: Callable[[], None]) -> None:
        self._after, self._open, self._lock = after, 1, Lock()

    def one_more(self) -> Callable[[], None]:
        """What is to be called at the end of another engine."""
        with self._lock:
            self._open += 1
        return self.one_ended

    def one_ended(self) -> None:
        """Note an end; the last one is that of all."""
        with self._lock:
            self._open -= 1
            last = not self._open
        if last:
            self._after()


def _unread(outcome: AnyOutcome) -> bool:
    """Whether it is that of a row that could not be read: nobody was asked about it."""
    return isinstance(outcome, LabelFailure) and outcome.signature is None


def _with_steps(
    plan: Plan, store: LabelStore, purse: Purse, watcher: Watcher | None, *, retry_failed: bool
) -> Plan:
    """A plan whose criteria have their steps: those of the store, or new ones.

    Raises:
        FatalJudgeError: a criterion gets none, or they leave nothing of the budget.
    """
    lacking = {one.name: one for one in plan.criteria if one.steps is None}
    if not lacking:
        return plan
    written = _write_steps(
        _StepsTasks(plan.judge, lacking),
        store,
        purse.limits(),
        _Before(watcher, purse),
        retry_failed=retry_failed,
    )
    if purse.empty:
        raise FatalJudgeError(
            "the budget is used up by the evaluation steps; they are stored; give it more",
            reason="budget",
            attempts=0,
        )
    return replace(plan, criteria=[written.get(one.name, one) for one in plan.criteria])


@dataclass(frozen=True)
class _StepsTasks:
    judge: Judge
    criteria: dict[str, Criterion]

    def task(self, example: Example) -> Task[StepsAnswer]:
        return steps_task(self.judge, self.criteria[example.id])

    def rows(self) -> list[Example]:
        return [
            Example(id=name, question=criterion.criteria, documents=(), response="")
            for name, criterion in self.criteria.items()
        ]


def _stepped(criterion: Criterion, steps: tuple[str, ...]) -> Criterion:
    return criterion.model_copy(update={"steps": steps})


def _write_steps(
    how: _StepsTasks, store: LabelStore, limits: Limits, told: _Before, *, retry_failed: bool
) -> dict[str, Criterion]:
    """Criteria with their steps: those of the store, or new ones."""
    written = {}
    run = label_rows(
        RowSequence(how.rows()),
        how,
        store,
        concurrency=len(how.criteria),
        limits=limits,
        retry_failed=retry_failed,
        watcher=told,
    )
    with closing(run):
        for outcome in run:
            if isinstance(outcome, StepsRecord):
                written[outcome.id] = _stepped(how.criteria[outcome.id], outcome.answer.steps)
            elif isinstance(outcome, LabelFailure):
                raise FatalJudgeError(
                    f"criterion {outcome.id!r} has no evaluation steps, and none could be had: "
                    f"{outcome.message}; give steps in its file",
                    reason=outcome.reason,
                    attempts=outcome.attempts,
                )
    return written


class _Before:
    """Watches a run for steps, and passes on what is not about rows."""

    def __init__(self, watcher: Watcher | None, purse: Purse) -> None:
        self._watcher, self._purse = watcher, purse

    def begin(self, rows: int, repeated: int) -> None:
        """Criteria are no rows."""

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Steps are no row's outcome."""

    def paid(self, outcome: AnyOutcome) -> None:
        """Pass on what was paid for."""
        if self._watcher:
            self._watcher.paid(outcome)

    def ended(self, spent: Budget) -> None:
        """Take what it cost out of the purse."""
        self._purse.pay(spent)

    def notice(self, text: str) -> None:
        """Pass on what is said."""
        if self._watcher:
            self._watcher.notice(text)


class _Told(_Before):
    """Watches the runs for scores of all judges, as if they were one."""

    def __init__(self, watcher: Watcher | None, purse: Purse, judges: int) -> None:
        super().__init__(watcher, purse)
        self._judges, self._begun = judges, 0

    def begin(self, rows: int, repeated: int) -> None:
        """Tell of the rows of all judges, once."""
        self._begun += 1
        if self._watcher and self._begun == 1:
            self._watcher.begin(rows * self._judges, repeated)

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Pass on, but tell of a row that cannot be read once."""
        if self._watcher and (self._begun == 1 or not _unread(outcome)):
            self._watcher.seen(outcome, origin)
