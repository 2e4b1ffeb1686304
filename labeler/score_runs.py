"""From rows and criteria to stored scores: first the steps that criteria lack, then the scores."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import cast

from labeler.errors import FatalJudgeError
from labeler.judges import Judge
from labeler.pipeline import Origin, Watcher, label_rows
from labeler.record import AnyOutcome, LabelFailure, ScoreOutcome, StepsRecord
from labeler.rows import Rows, RowSequence
from labeler.scores import Criterion
from labeler.scoring import ScoreRecipe, StepsRecipe, stepped
from labeler.splitting import Splitter
from labeler.stores import LabelStore
from labeler.traffic import Limits
from labeler.traffic.budget import Budget


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

    def recipes(self) -> list[ScoreRecipe]:
        """One for each criterion and trial, in that order."""
        return [
            ScoreRecipe(self.judge, self.splitter, one, trial, self.samples, self.logprobs)
            for one in self.criteria
            for trial in range(self.samples * self.repeat)
        ]


def score_rows(
    rows: Rows,
    plan: Plan,
    store: LabelStore,
    *,
    concurrency: int,
    limits: Limits | None = None,
    retry_failed: bool = False,
    watcher: Watcher | None = None,
    after: Callable[[], None] = lambda: None,
) -> Generator[ScoreOutcome, None, None]:
    """Score rows in order; every score is durable in the store before it is yielded.

    Steps that a criterion lacks are asked for once, before any row, out of the same budget.

    Args:
        rows: read twice: once whole, before any score is asked for, then as it goes.
        plan: what is asked about each row.
        store: where steps and scores are looked up and saved.
        concurrency: requests in flight at most.
        limits: what else holds requests back.
        retry_failed: ask again where the store holds a lasting failure.
        watcher: told how the run goes.
        after: called at the very end, however the run ends.

    Raises:
        FatalJudgeError: no row can be scored, or a criterion gets no steps.
        RunPaused: the server asks to wait longer than the limits allow.
        StoreError: the store cannot be read or written.
        UsageError: the rows cannot be read, two share an id and differ, or the judge gives labels
            alone; nothing was sent.
    """
    told = _Before(watcher)
    limits = limits or Limits()
    try:
        lacking = {one.name: one for one in plan.criteria if one.steps is None}
        if lacking:
            written = _write_steps(
                StepsRecipe(plan.judge, lacking), store, limits, told, retry_failed=retry_failed
            )
            steps = [written.get(one.name, one) for one in plan.criteria]
            plan, limits = replace(plan, criteria=steps), _left_of(limits, told.spent)
    except BaseException:
        after()
        raise
    run = label_rows(
        rows,
        plan.recipes(),
        store,
        concurrency=concurrency,
        limits=limits,
        retry_failed=retry_failed,
        watcher=_Then(watcher, told.spent) if watcher else None,
        after=after,
    )
    # What recipes of scores make.
    yield from cast("Generator[ScoreOutcome, None, None]", run)


def _write_steps(
    how: StepsRecipe, store: LabelStore, limits: Limits, told: _Before, *, retry_failed: bool
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
                written[outcome.id] = stepped(how.criteria[outcome.id], outcome.answer.steps)
            elif isinstance(outcome, LabelFailure):
                raise FatalJudgeError(
                    f"criterion {outcome.id!r} has no evaluation steps, and none could be had: "
                    f"{outcome.message}; give steps in its file",
                    reason=outcome.reason,
                    attempts=outcome.attempts,
                )
    return written


def _left_of(limits: Limits, spent: Budget) -> Limits:
    """The limits after something was spent.

    Raises:
        FatalJudgeError: nothing is left.
    """
    if limits.budget is None:
        return limits
    left = limits.budget - spent.spent
    if left <= 0:
        raise FatalJudgeError(
            "the budget is used up by the evaluation steps; they are stored; give it more",
            reason="budget",
            attempts=0,
        )
    return replace(limits, budget=left)


class _Before:
    """Watches the run for the steps, and passes on what is not about rows."""

    def __init__(self, watcher: Watcher | None) -> None:
        self.spent = Budget()
        self._watcher = watcher

    def begin(self, rows: int, repeated: int) -> None:
        """Criteria are no rows."""

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Steps are no row's outcome."""

    def paid(self, outcome: AnyOutcome) -> None:
        """Pass on what was paid for."""
        if self._watcher:
            self._watcher.paid(outcome)

    def ended(self, spent: Budget) -> None:
        """Keep what it cost."""
        self.spent = spent

    def notice(self, text: str) -> None:
        """Pass on what is said."""
        if self._watcher:
            self._watcher.notice(text)


class _Then:
    """Watches the run for the scores; its cost comes on top of that of the steps."""

    def __init__(self, watcher: Watcher, before: Budget) -> None:
        self._before, self._watcher = before, watcher
        self.begin, self.seen = watcher.begin, watcher.seen
        self.paid, self.notice = watcher.paid, watcher.notice

    def ended(self, spent: Budget) -> None:
        """Tell the cost of both."""
        both = Budget(spent.cap)
        both.known = spent.known + self._before.known
        both.doubtful = spent.doubtful + self._before.doubtful
        self._watcher.ended(both)
