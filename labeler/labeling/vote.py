"""Rows judged several times, by one judge or by several, and their majority label.

Each judgment is a trial like any other, stored under its own key. The majority is computed from a
row's trials each time, sentence by sentence. Only the fields of the profile ``trace`` are voted on:
claims of different labels cannot be matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labeler.data.rows import Row, Rows
from labeler.errors import BadRow, UsageError
from labeler.labeling.cache import Settled
from labeler.labeling.pipeline import (
    blind_relevance,
    build_task,
    judge_row,
    opened,
    require_different,
)
from labeler.labeling.run import Run
from labeler.labeling.tasks import LabelTasks
from labeler.labels.answers import (
    PROFILES,
    GPTLabelingOutput,
    SentenceSupport,
    in_order,
    is_majority,
    majority_keys,
)
from labeler.labels.record import (
    AnyOutcome,
    LabelFailure,
    LabelRecord,
    Outcome,
    ReplyFacts,
    RetrievalBasis,
    SentenceScores,
)
from labeler.labels.retrieval_record import RetrievalRecord, basis_of, resting_on
from labeler.labels.signature import (
    MAJORITY,
    Artifact,
    Signature,
    digest,
    label_key,
    load_schema,
    retrieval_key,
)
from labeler.sentences.example import Example

if TYPE_CHECKING:
    from labeler.calculators.rater_agreement import Votes
    from labeler.labeling.blind import BlindRelevance

TOO_FEW_VOTES = "too_few_votes"
"""Reason of a failure: at most half of the voters gave a label."""


def vote_rows(
    run: Run, rows: Rows, voters: Sequence[LabelTasks], votes: Votes | None = None
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
    stream = opened(run, rows, voters, outcomes=1)
    require_different(stream.first, voters)
    for number, voter in enumerate(voters, start=1):
        if len(voters) > 1:
            run.notice(f"vote {number} of {len(voters)}: {voter.judge.spec}")
    relevance = blind_relevance(run, voters)

    async def judged(row: Row) -> tuple[list[Settled], RetrievalVotes | None]:
        retrievals = await retrieval_votes(relevance, row, voters) if relevance else None
        return await judge_row(run, voters, relevance, row, together=True), retrievals

    schema = load_schema(PROFILES["trace"].schema_of(voters[0].prompt.name)).artifact
    count = 0
    for found, retrievals in run.in_order(stream, judged, len(voters)):
        count += 1
        trials = [outcome for outcome, _ in found]
        outcome = vote(trials, len(voters), schema, retrievals, votes)
        run.events.result(outcome, "judge")
        yield outcome
    if relevance:
        relevance.report(count)


async def retrieval_votes(
    relevance: BlindRelevance, row: Row, voters: Sequence[LabelTasks]
) -> RetrievalVotes | None:
    """Return the votes on a row's retrieval; ``None`` if no judge can be asked about the row."""
    if not isinstance(row.content, Example):
        return None
    bases, signatures = [], []
    with suppress(BadRow):
        for voter in voters:
            task = await build_task(voter, row)
            if voter.relevance is None:
                return None
            found = await relevance.outcome(voter.relevance, task)
            if isinstance(found, RetrievalRecord):
                bases.append(basis_of(found, task.example))
            signatures.append(found.signature or voter.relevance.task(task).signature)
        return RetrievalVotes(bases, electorate(signatures, signatures[0].response_schema))
    return None


def vote(
    trials: Sequence[AnyOutcome],
    voters: int,
    schema: Artifact,
    retrievals: RetrievalVotes | None = None,
    votes: Votes | None = None,
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
    signature = electorate([one.signature for one in trials if one.signature], schema)
    unsettled = [one for one in missing if not one.lasting]
    if unsettled or not is_majority(len(given), voters):
        return _undecided(len(given), voters, unsettled or missing, signature)
    return majority(given, signature, voters, retrievals)


def _undecided(
    given: int, voters: int, missing: Sequence[LabelFailure], signature: Signature
) -> LabelFailure:
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
        signature=signature,
        metadata=last.metadata,
    )


_BY_SENTENCES = "No vote on the whole response says so: it follows from the votes on its sentences."


def majority(
    votes: Sequence[LabelRecord],
    signature: Signature,
    voters: int,
    retrievals: RetrievalVotes | None = None,
) -> LabelRecord:
    """Return the label that most votes agree on, decision by decision.

    A sentence is relevant, utilized or supported if more than half of the voters say so; a tie is a
    no. The response is supported if all its sentences are. A sentence's supporting keys are those
    named by more than half of the voters who call it supported, or else the most named ones. Each
    explanation comes from a vote on the winning side, after the count: for a sentence, the vote
    whose supporting keys are nearest to the result; else the first. The scores of the record are
    the shares of the votes.

    Args:
        votes: labels of the very same sentences, more than half of ``voters``.
        signature: signature of the majority; see :func:`electorate`.
        voters: number of voters; a voter without a label votes no.
        retrievals: votes on the relevance of the documents, if it was judged without responses;
            they count whatever became of the vote on the response.
    """
    example = votes[0].example
    labels = [vote.label for vote in votes]
    judged: Sequence[RetrievalBasis | GPTLabelingOutput] = (
        retrievals.bases if retrievals else labels
    )
    relevant = _shares((one.all_relevant_sentence_keys for one in judged), voters)
    utilized = _shares((label.all_utilized_sentence_keys for label in labels), voters)
    by_key = [{e.response_sentence_key: e for e in x.sentence_support_information} for x in labels]
    verdicts = {key: [entries[key] for entries in by_key] for key in example.response_keys()}
    support = {
        key: sum(one.fully_supported for one in given) / voters for key, given in verdicts.items()
    }
    kept = _winners(relevant)
    sentences = tuple(_sentence(given, voters) for given in verdicts.values())
    closest = min(judged, key=lambda one: len(kept ^ set(one.all_relevant_sentence_keys)))
    label = GPTLabelingOutput(
        relevance_explanation=closest.relevance_explanation,
        all_relevant_sentence_keys=in_order(kept),
        **_whole(sentences, labels, voters),
        sentence_support_information=sentences,
        all_utilized_sentence_keys=in_order(_winners(utilized)),
    )
    made = LabelRecord(
        key=label_key(example, signature),
        example=example,
        label=label,
        signature=signature,
        reply=ReplyFacts(attempts=0, labeler_version=votes[0].reply.labeler_version),
        scores=SentenceScores(support=support, relevance=relevant, utilization=utilized),
        not_measured=tuple(
            name for name in votes[0].not_measured if all(name in v.not_measured for v in votes)
        ),
    )
    return resting_on(made, retrievals.basis(made)) if retrievals else made


def _whole(
    sentences: Sequence[SentenceSupport], labels: Sequence[GPTLabelingOutput], voters: int
) -> dict[str, Any]:
    """Return the verdict on a whole response, and its explanation."""
    overall = all(entry.fully_supported for entry in sentences)
    if not sentences:
        overall = is_majority(sum(label.overall_supported for label in labels), voters)
    agreeing = [label for label in labels if label.overall_supported == overall]
    reason = agreeing[0].overall_supported_explanation if agreeing else _BY_SENTENCES
    return {
        "overall_supported_explanation": _counted(len(agreeing), voters, reason),
        "overall_supported": overall,
    }


@dataclass(frozen=True)
class RetrievalVotes:
    """Votes on the relevance of a row's documents.

    Attributes:
        bases: those that were given.
        signature: signature of the majority; see :func:`electorate`.
    """

    bases: Sequence[RetrievalBasis]
    signature: Signature

    def basis(self, majority: LabelRecord) -> RetrievalBasis:
        """Return the retrieval label that the relevance of a majority label stands for."""
        label, scores = majority.label, majority.scores
        return RetrievalBasis(
            key=retrieval_key(majority.example, self.signature),
            signature=self.signature,
            relevance_explanation=label.relevance_explanation,
            all_relevant_sentence_keys=label.all_relevant_sentence_keys,
            scores=scores.relevance if scores else {},
        )


def electorate(voters: Sequence[Signature], schema: Artifact) -> Signature:
    """Return the signature of a majority; it does not depend on failed votes.

    Args:
        voters: signatures of all voters.
        schema: schema of the profile ``trace``, which every majority label has, or that of
            retrieval labels.
    """
    prompts = {voter.prompt for voter in voters}
    named = sorted(f"{voter.judge}/{voter.model} {digest(voter.facts())[:8]}" for voter in voters)
    return Signature(
        judge=MAJORITY,
        model=f"{len(voters)} votes",
        sampling={"voters": " + ".join(named)},
        prompt=voters[0].prompt if len(prompts) == 1 else None,
        response_schema=schema,
        splitter=voters[0].splitter,
    )


def _shares(named: Iterable[Iterable[str]], voters: int) -> dict[str, float]:
    """Return the share of the voters that name each key, for named keys."""
    counts = Counter(key for keys in named for key in keys)
    return {key: counts[key] / voters for key in in_order(counts)}


def _winners(shares: Mapping[str, float]) -> frozenset[str]:
    return frozenset(key for key, share in shares.items() if share > 0.5)  # noqa: PLR2004 - half


def _sentence(verdicts: Sequence[SentenceSupport], voters: int) -> SentenceSupport:
    yes = [one for one in verdicts if one.fully_supported]
    supported = is_majority(len(yes), voters)
    side = [one for one in verdicts if one.fully_supported == supported]
    kept = majority_keys([one.supporting_sentence_keys for one in yes]) if supported else ()
    return SentenceSupport(
        response_sentence_key=verdicts[0].response_sentence_key,
        explanation=_counted(len(side), voters, _nearest(side or verdicts, kept).explanation),
        supporting_sentence_keys=kept,
        fully_supported=supported,
    )


def _nearest(entries: Sequence[SentenceSupport], kept: Iterable[str]) -> SentenceSupport:
    """Return the first entry that names most of the kept keys and fewest others.

    Another entry's explanation could mention sentences that were not kept.
    """
    wanted = frozenset(kept)

    def closeness(entry: SentenceSupport) -> tuple[int, int]:
        named = frozenset(entry.supporting_sentence_keys)
        return len(named & wanted), -len(named - wanted)

    return max(entries, key=closeness)


def _counted(count: int, voters: int, explanation: str) -> str:
    return f"[{count} of {voters} votes] {explanation}"
