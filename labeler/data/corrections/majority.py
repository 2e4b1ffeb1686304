"""What several people make of one label, decision by decision. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from labeler.data.corrections.correction import Correction, Judgement
from labeler.data.corrections.differences import decided
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport, in_order, judged_sentences
from labeler.labels.record import LabelRecord

UNNAMED_SUPPORT = "supported_without_sentence"
"""Support of a sentence for which neither people nor the judge named a key."""
_LONGEST_QUOTE = 1_000
"""Characters of a comment that an explanation repeats."""


def quoted(correction: Correction) -> str:
    """A person's comment after the name, as explanations repeat it."""
    comment = correction.comment.strip()
    cut = comment[:_LONGEST_QUOTE] + ("…" if len(comment) > _LONGEST_QUOTE else "")
    return f"{correction.annotator}: {cut}"


class Majority:
    """What several people make of one label.

    Args:
        record: the judge's.
        said: their corrections that count, each with its judgement, sorted by annotator.
    """

    def __init__(self, record: LabelRecord, said: Sequence[tuple[Correction, Judgement]]) -> None:
        self._record = record
        self._judge = record.label
        self._corrections = [correction for correction, _ in said]
        self._judgements = [judgement for _, judgement in said]
        self._decided = [decided(record, correction) for correction, _ in said]

    def label(self) -> GPTLabelingOutput:
        """The label that they make."""
        judge = self._judge
        relevant = self._keys(
            [j.relevant for j in self._judgements], judge.all_relevant_sentence_keys
        )
        utilized = self._keys(
            [j.utilized for j in self._judgements], judge.all_utilized_sentence_keys
        )
        overall, yes = self._decide(
            [j.overall_supported for j in self._judgements], judge.overall_supported
        )
        return GPTLabelingOutput(
            relevance_explanation=self._marked(
                _moved(judge.all_relevant_sentence_keys, relevant, "relevant"),
                judge.relevance_explanation,
            ),
            all_relevant_sentence_keys=relevant,
            overall_supported_explanation=self._overall(overall, yes, utilized),
            overall_supported=overall,
            sentence_support_information=tuple(self._sentences()),
            all_utilized_sentence_keys=utilized,
        )

    def _decide(self, votes: Sequence[bool], judge: bool | None) -> tuple[bool, int]:
        """The verdict, and how many people are for it."""
        yes = sum(votes)
        if 2 * yes == len(votes):
            return bool(judge), yes
        verdict = 2 * yes > len(votes)
        return verdict, yes if verdict else len(votes) - yes

    def _keys(self, named: Sequence[Sequence[str]], judge: Sequence[str]) -> tuple[str, ...]:
        """The document sentences that people say yes to."""
        return tuple(
            key
            for key in self._record.example.document_keys()
            if self._decide([key in keys for keys in named], key in judge)[0]
        )

    def _sentences(self) -> Iterator[SentenceSupport]:
        """The judgement of each response sentence; none of one that nobody decides on."""
        judged = judged_sentences(self._judge)
        for key in self._record.example.response_keys():
            entry = judged.get(key)
            votes = [
                key in judgement.support
                for judgement, own in zip(self._judgements, self._decided, strict=True)
                if key in own or key in judgement.support
            ]
            if entry is None and 2 * sum(votes) == len(votes):
                continue
            yield self._sentence(key, entry, votes)

    def _sentence(
        self, key: str, entry: SentenceSupport | None, votes: Sequence[bool]
    ) -> SentenceSupport:
        before = entry is not None and entry.fully_supported
        supported, agreeing = self._decide(votes, before)
        own = () if entry is None else entry.supporting_sentence_keys
        kept = self._support(key, own) if supported else ()
        notes = []
        if entry is None or supported != before:
            verdict = "supported" if supported else "not supported"
            notes.append(f"{verdict}, say {agreeing} of {len(votes)}")
        if supported:
            notes += _moved(own, kept, "support")
        return SentenceSupport(
            response_sentence_key=key,
            explanation=self._marked(notes, "" if entry is None else entry.explanation),
            supporting_sentence_keys=kept,
            fully_supported=supported,
        )

    def _support(self, key: str, judge: Sequence[str]) -> tuple[str, ...]:
        """The keys that support a sentence which is supported."""
        named = [keys for j in self._judgements if (keys := j.support.get(key))]
        if not named:
            return tuple(judge) or (UNNAMED_SUPPORT,)
        counts = Counter(name for keys in named for name in set(keys))
        kept = [
            name
            for name, count in counts.items()
            if 2 * count > len(named) or (2 * count == len(named) and name in judge)
        ]
        most = max(counts.values())
        made = in_order(kept or [name for name, count in counts.items() if count == most])
        return tuple(judge) if {*made} == {*judge} else made

    def _overall(self, overall: bool, agreeing: int, utilized: Sequence[str]) -> str:
        """Explains the whole: also what has no explanation of its own, and people's reasons."""
        notes = []
        if overall != self._judge.overall_supported:
            verdict = "supported" if overall else "not supported"
            notes.append(f"{verdict}, say {agreeing} of {len(self._judgements)}")
        notes += _moved(self._judge.all_utilized_sentence_keys, utilized, "utilized")
        reasons = [quoted(each) for each in self._corrections if each.comment.strip()]
        return self._marked(notes, self._judge.overall_supported_explanation, reasons)

    def _marked(self, notes: Sequence[str], explanation: str, reasons: Sequence[str] = ()) -> str:
        """An explanation with what people changed and why before it, where they did or said so."""
        if not notes and not reasons:
            return explanation
        names = ", ".join(each.annotator for each in self._corrections)
        verb = "corrected" if notes else "reviewed"
        return f"[{verb} by {names}: {'; '.join([*notes, *reasons])}] {explanation}"


def _moved(before: Sequence[str], after: Sequence[str], what: str) -> list[str]:
    """What was added to keys and taken from them, in words; nothing where they are the same."""
    moves = [
        *(f"+{k}" for k in after if k not in before),
        *(f"-{k}" for k in before if k not in after),
    ]
    return [f"{what} {' '.join(moves)}"] if moves else []
