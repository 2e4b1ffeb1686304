"""Rows judged several times, by one judge or by several, and the label that most votes agree with.

The voters go one after the other over all rows, each into the store: a run that was cut off goes on
where it stopped, and no vote is bought twice. Then the votes are read back and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Protocol

from labeler.data.rows import Rows, count_rows, distinct
from labeler.errors import BadRow, UsageError
from labeler.judges.task import Task
from labeler.judges.traffic.budget import Budget
from labeler.judges.traffic.purse import Purse
from labeler.judges.traffic.traffic import Limits
from labeler.labeling.pipeline import Origin, Watcher, label_rows, row_failure
from labeler.labeling.tasks import LabelTasks
from labeler.labeling.voting import electorate, majority
from labeler.labels.profiles import PROFILES
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.labels.schemas import load_schema
from labeler.labels.signature import Signature
from labeler.sentences.example import Example
from labeler.store.protocol import LabelStore

TOO_FEW_VOTES = "too_few_votes"
"""Reason of a row on which not more than half of the voters gave a label."""


class VoteCounter(Protocol):
    """Receives the votes on each row, such as to measure how far the voters agree."""

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count the votes on one record; ``None`` stands for a voter that gave no label."""


def vote_rows(
    rows: Rows,
    voters: Sequence[LabelTasks],
    store: LabelStore,
    votes: VoteCounter,
    *,
    concurrency: int,
    limits: Limits | None = None,
    retry_failed: bool = False,
    in_batch: Callable[[str], str | None] = lambda _: None,
    watcher: Watcher | None = None,
    after: Callable[[], None] = lambda: None,
) -> Generator[Outcome, None, None]:
    """Have every row judged by each voter, then yield what most of them say, in input order.

    Args:
        rows: read once for each voter, and once more to count.
        voters: recipes that differ in judge or trial and cut rows into the same sentences.
        store: where the votes are looked up and saved; the majority is worked out anew each time.
        votes: told of every vote.
        concurrency: requests in flight at most.
        limits: what else holds requests back; the budget is that of all voters together.
        retry_failed: ask again where the store holds a lasting failure.
        in_batch: the name of the batch in which a key's label is on its way, if there is one.
        watcher: told how it goes: of rows and outcomes while votes are counted, of costs always.
        after: called at the very end, however the run ends.

    Raises:
        UsageError: there are no voters, or two of them are one, or one could not keep to the
            budget; nothing was sent. Else as for :func:`labeler.labeling.pipeline.label_rows`.
    """
    purse = Purse(limits or Limits())
    lost: dict[str, LabelFailure] = {}
    try:
        _require_voters(rows, voters, limits)
        total = count_rows(rows)
        if watcher:
            watcher.begin(total.distinct, total.repeated)
        for number, how in enumerate(voters, start=1):
            if watcher and len(voters) > 1:
                watcher.notice(f"vote {number} of {len(voters)}: {how.judge.spec}")
            run = label_rows(
                rows,
                how,
                store,
                concurrency=concurrency,
                limits=purse.limits(),
                retry_failed=retry_failed,
                in_batch=in_batch,
                watcher=_Round(watcher, purse),
            )
            for outcome in run:
                if isinstance(outcome, LabelFailure) and outcome.key:
                    lost[outcome.key] = outcome
        for outcome in _counted(rows, voters, store, votes, lost):
            if watcher:
                watcher.seen(outcome, "judge")
            yield outcome
    finally:
        if watcher:
            watcher.ended(purse.spent)
        after()


def _counted(
    rows: Rows,
    voters: Sequence[LabelTasks],
    store: LabelStore,
    votes: VoteCounter,
    lost: dict[str, LabelFailure],
) -> Generator[Outcome, None, None]:
    schema = load_schema(PROFILES["trace"].schema).artifact
    for row in distinct(rows):
        if isinstance(row.content, LabelFailure):
            yield row.content
            continue
        try:
            requests = [_asked(how, row.content, store) for how in voters]
        except BadRow as error:
            yield LabelFailure(
                id=row.content.id,
                reason=error.reason,
                message=f"{row.where}: {error}",
                metadata=row.content.metadata,
            )
            continue
        said = [_vote(store, request) for request in requests]
        votes.count(said)
        given = [vote for vote in said if vote is not None]
        missing = [
            _why(store, request, lost)
            for request, vote in zip(requests, said, strict=True)
            if vote is None
        ]
        unsettled = [failure for failure in missing if not failure.lasting]
        if 2 * len(given) > len(voters) and not unsettled:
            signature = electorate([_voter(request) for request in requests], schema)
            yield majority(given, signature, len(voters))
        else:
            yield _undecided(requests[0], len(given), len(voters), unsettled or missing)


def _asked(how: LabelTasks, example: Example, store: LabelStore) -> Task:
    """The judgement that is a voter's vote: of the whole record, or merged of its windows.

    Raises:
        BadRow: nothing was asked about it.
    """
    request = how.task(example)
    windowed = how.windows_of(request, lambda key: store.get(key) is not None)
    return windowed.request if windowed else request


def _voter(request: Task) -> Signature:
    """Who votes: the same for few windows as for many."""
    signature = request.signature
    if signature.windows is None:
        return signature
    alike = signature.windows.model_copy(update={"number": 0})
    return signature.model_copy(update={"windows": alike})


def _vote(store: LabelStore, request: Task) -> LabelRecord | None:
    """A stored judgement under the name of the row at hand."""
    record = store.get(request.key)
    if not isinstance(record, LabelRecord):
        return None
    return record.model_copy(update={"example": request.example})


def _why(store: LabelStore, request: Task, lost: dict[str, LabelFailure]) -> LabelFailure:
    """Why a voter gave no label.

    A failure for good, such as a refusal, is a voter's last word, and counts as a no. One of the
    network or the budget is none: the vote may still come, and turn the result.
    """
    found = lost.get(request.key) or store.failure(request.key)
    return found or row_failure(request, TOO_FEW_VOTES, "it gave no label", attempts=0)


def _undecided(
    request: Task, given: int, voters: int, missing: Sequence[LabelFailure]
) -> LabelFailure:
    """Why a row has no majority: the reason that its voters share, or else that they are few."""
    reasons = {failure.reason for failure in missing}
    said = missing[-1].message.partition(": ")[2]
    return row_failure(
        request,
        reasons.pop() if len(reasons) == 1 else TOO_FEW_VOTES,
        f"{given} of {voters} votes are there, which does not settle it; a missing one: {said}",
        attempts=0,
    )


def _require_voters(rows: Rows, voters: Sequence[LabelTasks], limits: Limits | None) -> None:
    """Find out before any spend what would make the votes worthless."""
    if not voters:
        raise UsageError("an ensemble needs a voter")
    asked: dict[str, str] = {}
    for number, request in enumerate(_first_requests(rows, voters), start=1):
        if request.key in asked:
            raise UsageError(
                f"vote {number} would be {asked[request.key]}'s again: a judge that is named twice "
                "has one vote; let it vote several times by repeating it"
            )
        asked[request.key] = f"{request.signature.judge}/{request.signature.model}"
    if limits is not None and limits.budget is not None:
        for how in voters:
            require = getattr(how.judge, "require_bounds", None)
            if require is not None:
                require()


def _first_requests(rows: Rows, voters: Sequence[LabelTasks]) -> list[Task]:
    """What the voters would be asked of the first row that can be asked about."""
    for row in rows:
        if not isinstance(row.content, LabelFailure):
            with suppress(BadRow):
                return [how.task(row.content) for how in voters]
    return []


class _Round:
    """Passes on what one voter costs, and not its outcomes: people are told of the majority's."""

    def __init__(self, watcher: Watcher | None, purse: Purse) -> None:
        self._watcher, self._purse = watcher, purse

    def begin(self, rows: int, repeated: int) -> None:
        """Nothing: rows are told of once."""

    def seen(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Nothing: it is a vote."""

    def paid(self, outcome: AnyOutcome) -> None:
        """Pass on."""
        if self._watcher:
            self._watcher.paid(outcome)

    def ended(self, spent: Budget) -> None:
        """Add up."""
        self._purse.pay(spent)

    def notice(self, text: str) -> None:
        """Pass on."""
        if self._watcher:
            self._watcher.notice(text)
