"""Rows judged several times, by one judge or by several, and their majority label.

All votes on a row are submitted together, and each is stored. The majority is computed as soon as
the row's votes are in.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from labeler.data.rows import Row, Rows
from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge
from labeler.judges.task import Task
from labeler.judges.traffic.limits import Limits
from labeler.labeling.cache import Settled
from labeler.labeling.failures import bad_row, task_failure
from labeler.labeling.majority import RetrievalVotes, electorate, majority
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.retrievals import Retrievals
from labeler.labeling.run import Pending, Run, joined, settled
from labeler.labeling.tasks import LabelTasks, needs_of
from labeler.labels.profiles import PROFILES
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from labeler.labels.retrieval_record import RetrievalRecord, basis_of
from labeler.labels.schemas import load_schema
from labeler.sentences.example import Example

TOO_FEW_VOTES = "too_few_votes"
"""Reason of a failure: at most half of the voters gave a label."""


class VoteCounter(Protocol):
    """Receives the votes on each row, such as to measure agreement."""

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count the votes on one record; ``None`` stands for a voter without a label."""


class Uncounted:
    """Counts no votes: nobody asked for their agreement."""

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Do nothing."""


def vote_rows(
    run: Run, rows: Rows, voters: Sequence[LabelTasks], votes: VoteCounter
) -> Generator[Outcome, None, None]:
    """Have every row judged by each voter and yield the majority labels in input order.

    Args:
        run: the run, which the caller ends. All voters together keep to its concurrency and its
            budget. Its store holds the votes; majorities are computed each time.
        rows: read twice: once before any spend, then some way ahead of the outcomes.
        voters: task factories that differ in judge or trial and share a splitter.
        votes: receives every vote.

    Raises:
        UsageError: there are no voters, or two of them are one, or one could not keep to the
            budget; nothing was sent. Else as for :func:`labeler.labeling.pipeline.run_tasks`.
    """
    for voter in voters:
        run.traffic_for(voter.judge)  # closed at the end, even if it is never asked
        choose_mode(voter.judge, first_tasks(voter, rows), run.cache.store, run.cache.is_known)
    _require_voters(rows, voters)
    require_bounds([voter.judge for voter in voters], run.limits)
    total = run.count(rows, needs_of(voters))
    if run.listener:
        run.listener.on_start(total)
    for number, voter in enumerate(voters, start=1):
        if len(voters) > 1:
            run.notice(f"vote {number} of {len(voters)}: {voter.judge.spec}")
    retrievals = Retrievals(run)
    retrievals.judge(rows, voters, total)
    submit = Poll(run, voters, votes, retrievals).submit
    for outcome, *_ in run.in_order(rows, submit, expected=total, width=len(voters)):
        if run.listener:
            run.listener.on_result(outcome, "judge")
        if isinstance(outcome, LabelRecord | LabelFailure):  # as majorities are
            yield outcome


def require_bounds(judges: Sequence[Judge], limits: Limits | None) -> None:
    """Check, before any spend, that every judge can keep to the budget.

    Raises:
        UsageError: the cost of a judge's requests has no upper bound.
    """
    if limits is not None and limits.budget is not None:
        for judge in judges:
            require = getattr(judge, "require_bounds", None)
            if require is not None:
                require()


@dataclass(frozen=True)
class Poll:
    """Submits the votes on each row and computes the majority."""

    run: Run
    voters: Sequence[LabelTasks]
    votes: VoteCounter
    retrievals: Retrievals

    def submit(self, row: Row) -> list[Pending]:
        """Submit the votes on a row."""
        if isinstance(row.content, LabelFailure):
            return [settled(row.content, "row")]
        try:
            tasks = [voter.task(row.content) for voter in self.voters]
            votes = [self._vote(*pair) for pair in zip(self.voters, tasks, strict=True)]
        except BadRow as error:
            failure = bad_row(error, f"{row.where}: {error}", row.content)
            return [settled(failure, "row")]
        asked = [vote.task for vote in votes]
        pending = [vote.submit() for vote in votes]
        return [joined(pending, lambda outcomes: self._majority(asked, tasks, outcomes))]

    def _vote(self, voter: LabelTasks, task: Task) -> _Vote:
        """Prepare a vote; none is submitted before all of them are known to be possible."""
        rested = self.retrievals.rest(voter, task)
        if isinstance(rested, LabelFailure):
            return _Vote(task, lambda: settled(rested, "store"))
        voter.require_fit(rested, self.run.cache.is_known)
        return _Vote(rested, lambda: self.run.submit(voter.judge, rested))

    def _majority(
        self, asked: Sequence[Task], tasks: Sequence[Task], outcomes: Sequence[Settled]
    ) -> Settled:
        """Count the votes on one row."""
        cast = [one.outcome if isinstance(one.outcome, LabelRecord) else None for one in outcomes]
        self.votes.count(cast)
        given = [vote for vote in cast if vote is not None]
        missing = [one.outcome for one in outcomes if isinstance(one.outcome, LabelFailure)]
        # A lasting failure, such as a refusal, counts as a no. Any other vote may still come and
        # change the result.
        unsettled = [failure for failure in missing if not failure.lasting]
        if 2 * len(given) > len(self.voters) and not unsettled:
            signatures = [
                one.outcome.signature or task.signature
                for one, task in zip(outcomes, asked, strict=True)
            ]
            schema = load_schema(PROFILES["trace"].schema_of(self.voters[0].prompt.name))
            signature = electorate(signatures, schema.artifact)
            retrievals = self._retrieval_votes(tasks)
            return Settled(majority(given, signature, len(self.voters), retrievals), "judge")
        failure = _undecided(asked[0], len(given), len(self.voters), unsettled or missing)
        return Settled(failure, "judge")

    def _retrieval_votes(self, tasks: Sequence[Task]) -> RetrievalVotes | None:
        """Return the votes on a row's retrieval; ``None`` if no voter judges it by itself."""
        bases, signatures = [], []
        for voter, task in zip(self.voters, tasks, strict=True):
            if voter.relevance is None:
                return None
            found = self.retrievals.outcome(voter.relevance, task)
            if isinstance(found, RetrievalRecord):
                bases.append(basis_of(found, task.example))
            signature = found.signature if found else None
            signatures.append(signature or voter.relevance.task(task).signature)
        return RetrievalVotes(bases, electorate(signatures, signatures[0].response_schema))


class _Vote(NamedTuple):
    """A vote that can be submitted: the task of its label, and how."""

    task: Task
    submit: Callable[[], Pending]


def _undecided(
    task: Task, given: int, voters: int, missing: Sequence[LabelFailure]
) -> LabelFailure:
    """Return the failure of a row without a majority; its reason is that of all missing votes."""
    reasons = {failure.reason for failure in missing}
    message = missing[-1].message.partition(": ")[2]
    return task_failure(
        task,
        reasons.pop() if len(reasons) == 1 else TOO_FEW_VOTES,
        f"{given} of {voters} votes are there, which does not settle it; a missing one: {message}",
        attempts=0,
    )


def _require_voters(rows: Rows, voters: Sequence[LabelTasks]) -> None:
    """Check, before any spend, that there are voters and that they differ."""
    if not voters:
        raise UsageError("an ensemble needs a voter")
    asked: dict[str, str] = {}
    for number, task in enumerate(_first_tasks(rows, voters), start=1):
        if task.key in asked:
            raise UsageError(
                f"vote {number} would be {asked[task.key]}'s again: a judge that is named twice "
                "has one vote; let it vote several times by repeating it"
            )
        asked[task.key] = f"{task.signature.judge}/{task.signature.model}"


def _first_tasks(rows: Rows, voters: Sequence[LabelTasks]) -> list[Task]:
    """Return the voters' tasks for the first row that has any."""
    for row in rows:
        if isinstance(row.content, Example):
            with suppress(BadRow):
                return [voter.task(row.content) for voter in voters]
    return []
