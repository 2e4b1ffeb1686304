"""Rows judged several times, by one judge or by several, and the label that most votes agree with.

The voters go one after the other over all rows, each into the store: a run that was cut off goes on
where it stopped, and no vote is bought twice. Then the votes are read back and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from labeler.agreeing.fields import UNITS, FieldAgreement, field_agreement, verdicts_of
from labeler.errors import BadRow, UsageError
from labeler.pipeline import Origin, Watcher, label_rows, row_failure
from labeler.profiles import PROFILES
from labeler.prompting import JudgeRequest, load_schema
from labeler.recipe import Recipe
from labeler.record import AnyOutcome, LabelFailure, LabelRecord, Outcome
from labeler.rows import Rows, distinct, survey
from labeler.statistics.agreement import Pattern
from labeler.stores import LabelStore
from labeler.traffic import Limits
from labeler.traffic.budget import Budget
from labeler.voting import electorate, majority

TOO_FEW_VOTES = "too_few_votes"
"""Reason of a row on which not more than half of the voters gave a label."""


@dataclass
class Votes:
    """What the voters said, counted: what is known of their agreement.

    Attributes:
        fields: how often each pattern of verdicts occurs, by field of the label.
    """

    fields: dict[str, Counter[Pattern]] = field(default_factory=dict)

    def agreement(self) -> list[FieldAgreement]:
        """How far the voters agree, field by field, over all that was counted so far."""
        return [
            field_agreement(name, UNITS[name], None, patterns)
            for name, patterns in self.fields.items()
        ]

    def count(self, votes: Sequence[LabelRecord | None]) -> None:
        """Count what was said of one record; ``None`` stands for who gave no label."""
        said = [verdicts_of(vote) if vote else None for vote in votes]
        shape = next((fields for fields in said if fields), {})
        for name, units in shape.items():
            patterns = self.fields.setdefault(name, Counter())
            for place in range(len(units)):
                patterns[tuple(one[name][place] if one else None for one in said)] += 1


def vote_rows(
    rows: Rows,
    voters: Sequence[Recipe],
    store: LabelStore,
    votes: Votes,
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
        UsageError: there are no voters; else as for :func:`labeler.pipeline.label_rows`.
    """
    if not voters:
        raise UsageError("an ensemble needs a voter")
    purse = _Purse(limits or Limits())
    lost: dict[str, LabelFailure] = {}
    try:
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
        total = survey(rows)
        if watcher:
            watcher.begin(total.distinct, total.repeated)
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
    voters: Sequence[Recipe],
    store: LabelStore,
    votes: Votes,
    lost: dict[str, LabelFailure],
) -> Generator[Outcome, None, None]:
    schema = load_schema(PROFILES["trace"].schema).artifact
    for row in distinct(rows):
        if isinstance(row.content, LabelFailure):
            yield row.content
            continue
        try:
            requests = [how.request(row.content) for how in voters]
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
        if 2 * len(given) > len(voters):
            signature = electorate([request.signature for request in requests], schema)
            yield majority(given, signature, len(voters))
        else:
            yield _undecided(requests, len(given), lost)


def _vote(store: LabelStore, request: JudgeRequest) -> LabelRecord | None:
    """A stored judgement under the name of the row at hand."""
    record = store.get(request.key)
    if not isinstance(record, LabelRecord):
        return None
    return record.model_copy(update={"example": request.example})


def _undecided(
    requests: Sequence[JudgeRequest], given: int, lost: dict[str, LabelFailure]
) -> LabelFailure:
    """Why a row has no majority: the reason that its voters share, or else that they are few."""
    failures = [lost[request.key] for request in requests if request.key in lost]
    reasons = {failure.reason for failure in failures}
    why = f"; the last to fail: {failures[-1].message}" if failures else ""
    return row_failure(
        requests[0],
        reasons.pop() if len(reasons) == 1 else TOO_FEW_VOTES,
        f"{given} of {len(requests)} votes are no majority{why}",
        attempts=0,
    )


class _Purse:
    """The budget of all voters together."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.spent = Budget(limits.budget)

    def limits(self) -> Limits:
        """What the next voter may do; a budget that is used up leaves it the least there is."""
        if self._limits.budget is None:
            return self._limits
        left = max(self._limits.budget - self.spent.spent, _NOTHING)
        return replace(self._limits, budget=left)

    def pay(self, spent: Budget) -> None:
        """Add what a voter spent."""
        self.spent.known += spent.known
        self.spent.doubtful += spent.doubtful


_NOTHING = Decimal("1e-12")
"""Dollars that buy nothing."""


class _Round:
    """Passes on what one voter costs, and not its outcomes: people are told of the majority's."""

    def __init__(self, watcher: Watcher | None, purse: _Purse) -> None:
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
