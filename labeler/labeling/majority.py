"""Majority votes: several labels of one record become one, sentence by sentence. Pure.

Only the fields of the profile ``trace`` are voted on: claims of different labels cannot be matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from labeler.errors import UsageError
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport, in_order
from labeler.labels.record import (
    LabelRecord,
    ReplyFacts,
    RetrievalBasis,
    SentenceScores,
    label_key,
    retrieval_key,
    shown,
)
from labeler.labels.retrieval_record import resting_on
from labeler.labels.signature import Artifact, Signature, digest

JUDGE = "majority"
"""Kind of judge in the signature of a majority label."""
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
    explanation is that of a vote on the winning side, after the count: for a sentence, the vote
    whose supporting keys are nearest to the result; else the first. The scores of the record are
    the shares of the votes.

    Args:
        votes: labels of the very same sentences, more than half of ``voters``.
        signature: signature of the majority; see :func:`electorate`.
        voters: number of voters; a voter without a label votes no.
        retrievals: votes on the relevance of the documents, if it was judged without responses;
            they count whatever became of the vote on the response.

    Raises:
        UsageError: there are too few votes, or two of them judge different sentences.
    """
    _require_votes(votes, voters)
    example = votes[0].example
    labels = [vote.label for vote in votes]
    judged: Sequence[RetrievalBasis | GPTLabelingOutput] = (
        retrievals.bases if retrievals else labels
    )
    relevant = _shares((one.all_relevant_sentence_keys for one in judged), voters)
    utilized = _shares((label.all_utilized_sentence_keys for label in labels), voters)
    supporters = {
        key: [entry for label in labels if (entry := _entry(label, key)).fully_supported]
        for key in example.response_keys()
    }
    kept = _winners(relevant)
    sentences = tuple(_sentence(key, yes, labels, voters) for key, yes in supporters.items())
    overall = all(entry.fully_supported for entry in sentences)
    if not sentences:
        overall = 2 * sum(label.overall_supported for label in labels) > voters
    closest = min(judged, key=lambda one: len(kept ^ set(one.all_relevant_sentence_keys)))
    agreeing = [label for label in labels if label.overall_supported == overall]
    reason = agreeing[0].overall_supported_explanation if agreeing else _BY_SENTENCES
    label = GPTLabelingOutput(
        relevance_explanation=closest.relevance_explanation,
        all_relevant_sentence_keys=in_order(kept),
        overall_supported_explanation=_counted(len(agreeing), voters, reason),
        overall_supported=overall,
        sentence_support_information=sentences,
        all_utilized_sentence_keys=in_order(_winners(utilized)),
    )
    made = LabelRecord(
        key=label_key(example, signature),
        example=example,
        label=label,
        signature=signature,
        reply=ReplyFacts(attempts=0, labeler_version=votes[0].reply.labeler_version),
        scores=SentenceScores(
            support={key: len(yes) / voters for key, yes in supporters.items()},
            relevance=relevant,
            utilization=utilized,
        ),
        not_measured=tuple(
            name for name in votes[0].not_measured if all(name in v.not_measured for v in votes)
        ),
    )
    return resting_on(made, retrievals.basis(made)) if retrievals else made


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


def _require_votes(votes: Sequence[LabelRecord], voters: int) -> None:
    if 2 * len(votes) <= voters:
        raise UsageError(f"{len(votes)} of {voters} votes are no majority")
    asked = {digest(shown(vote.example)) for vote in votes}
    if len(asked) > 1:
        raise UsageError(
            f"the votes on {votes[0].id!r} judge different sentences: a majority needs the same "
            "question, documents and response, cut into sentences by the same splitter"
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
        judge=JUDGE,
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


def _entry(label: GPTLabelingOutput, key: str) -> SentenceSupport:
    return next(e for e in label.sentence_support_information if e.response_sentence_key == key)


def _sentence(
    key: str, yes: Sequence[SentenceSupport], labels: Sequence[GPTLabelingOutput], voters: int
) -> SentenceSupport:
    supported = 2 * len(yes) > voters
    every = [_entry(label, key) for label in labels]
    side = [entry for entry in every if entry.fully_supported == supported]
    kept = _support(yes) if supported else ()
    return SentenceSupport(
        response_sentence_key=key,
        explanation=_counted(len(side), voters, _nearest(side or every, kept).explanation),
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


def _support(yes: Sequence[SentenceSupport]) -> tuple[str, ...]:
    """Return the keys that most supporting votes name."""
    counts = Counter(key for entry in yes for key in entry.supporting_sentence_keys)
    most = min(len(yes) // 2 + 1, max(counts.values()))
    return in_order(key for key, count in counts.items() if count >= most)


def _counted(count: int, voters: int, explanation: str) -> str:
    return f"[{count} of {voters} votes] {explanation}"
