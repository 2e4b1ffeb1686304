"""Rows judged several times, by one judge or by several, and their majority label.

Each judgment is a trial like any other, stored under its own key. The majority is computed from a
row's trials each time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import Protocol

from labeler.data.rows import Row, Rows
from labeler.errors import BadRow, UsageError
from labeler.judges.judge import Judge
from labeler.judges.limits import Limits
from labeler.judges.task import Task
from labeler.labeling.majority import RetrievalVotes, electorate, majority
from labeler.labeling.modes import choose_mode, first_tasks
from labeler.labeling.pipeline import Submission, judged_first
from labeler.labeling.run import Pending, Run
from labeler.labeling.tasks import LabelTasks
from labeler.labels.profiles import PROFILES
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Artifact
from labeler.sentences.example import Example

TOO_FEW_VOTES = "too_few_votes"
"""Reason of a failure: at most half of the voters gave a label."""


class VoteCounter(Protocol):
    """Receives the votes on each row, such as to measure agreement."""

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count the votes on one record; ``None`` stands for a voter without a label."""


def vote_rows(
    run: Run, rows: Rows, voters: Sequence[LabelTasks], votes: VoteCounter | None = None
) -> Generator[Outcome, None, None]:
    """Have every row judged by each voter and yield the majority labels in input order.

    Args:
        run: the run, which the caller ends. All voters together keep to its concurrency and its
            budget. Its store holds the votes; majorities are computed each time.
        rows: read once, some way ahead of the outcomes.
        voters: task factories that differ in judge or trial and share a splitter.
        votes: receives every vote, if given.

    Raises:
        UsageError: there are no voters, or two of them are one, or one could not keep to the
            budget; nothing was sent. Else as for :func:`labeler.labeling.pipeline.run_tasks`.
    """
    if not voters:
        raise UsageError("an ensemble needs a voter")
    for voter in voters:
        run.traffic_for(voter.judge)  # closed at the end, even if it is never asked
    require_bounds([voter.judge for voter in voters], run.limits)
    stream = run.read(rows, voters, outcomes=1)
    for voter in voters:
        first = first_tasks(voter, stream.first)
        choose_mode(voter.judge, first, run.cache.store, run.cache.is_known)
    _require_voters(stream.first, voters)
    for number, voter in enumerate(voters, start=1):
        if len(voters) > 1:
            run.notice(f"vote {number} of {len(voters)}: {voter.judge.spec}")
    judged, relevance = judged_first(run, stream, voters)
    submission = Submission(run, voters, relevance, together=True)
    retrievals = deque[RetrievalVotes | None]()

    def submit(row: Row) -> list[Pending]:
        retrievals.append(relevance.votes(row) if relevance else None)
        return submission.submit(row)

    schema = load_schema(PROFILES["trace"].schema_of(voters[0].prompt.name)).artifact
    for found in run.in_order(judged, submit, width=len(voters)):
        trials = [outcome for outcome, _ in found]
        outcome = vote(trials, len(voters), schema, retrievals.popleft(), votes)
        run.events.result(outcome, "judge")
        yield outcome


def vote(
    trials: Sequence[AnyOutcome],
    voters: int,
    schema: Artifact,
    retrievals: RetrievalVotes | None = None,
    votes: VoteCounter | None = None,
) -> Outcome:
    """Return the majority label of a row's trials, or the failure of a row without one. Pure.

    A lasting failure, such as a refusal, counts as a no. Any other vote may still come and change
    the result, so that there is none.

    Args:
        trials: the outcomes of one row, one for each voter.
        voters: number of voters.
        schema: schema of the majority label.
        retrievals: votes on the relevance of the documents, if it was judged without responses.
        votes: receives the votes, if given.
    """
    missing = [one for one in trials if isinstance(one, LabelFailure)]
    if missing and all(one.key is None for one in missing):  # the row cannot be asked about
        return missing[0]
    cast = [one if isinstance(one, LabelRecord) else None for one in trials]
    if votes is not None:
        votes.count(cast)
    given = [one for one in cast if one is not None]
    unsettled = [one for one in missing if not one.lasting]
    if unsettled or 2 * len(given) <= voters:
        return _undecided(len(given), voters, unsettled or missing)
    signature = electorate([one.signature for one in trials if one.signature], schema)
    return majority(given, signature, voters, retrievals)


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


def _undecided(given: int, voters: int, missing: Sequence[LabelFailure]) -> LabelFailure:
    """Return the failure of a row without a majority; its reason is what missing votes share."""
    reasons, last = {failure.reason for failure in missing}, missing[-1]
    said = last.message.partition(": ")[2]
    return LabelFailure(
        id=last.id,
        reason=reasons.pop() if len(reasons) == 1 else TOO_FEW_VOTES,
        message=f"{last.id!r}: {given} of {voters} votes are there, which does not settle it; a "
        f"missing one: {said}",
        attempts=0,
        key=last.key,
        signature=last.signature,
        metadata=last.metadata,
    )


def _require_voters(rows: Sequence[Row], voters: Sequence[LabelTasks]) -> None:
    """Check, before any spend, that the voters differ."""
    asked: dict[str, str] = {}
    for number, task in enumerate(_first_tasks(rows, voters), start=1):
        if task.key in asked:
            raise UsageError(
                f"vote {number} would be {asked[task.key]}'s again: a judge that is named twice "
                "has one vote; let it vote several times by repeating it"
            )
        asked[task.key] = f"{task.signature.judge}/{task.signature.model}"


def _first_tasks(rows: Sequence[Row], voters: Sequence[LabelTasks]) -> list[Task]:
    """Return the voters' tasks for the first row that has any."""
    for row in rows:
        if isinstance(row.content, Example):
            with suppress(BadRow):
                return [voter.task(row.content) for voter in voters]
    return []
