"""The label that most people agree on, decision by decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from labeler.data.corrections.correction import Correction, Judgment, decided
from labeler.labels.answers import (
    GPTLabelingOutput,
    SentenceSupport,
    is_majority,
    judged_sentences,
    majority_keys,
)
from labeler.labels.record import LabelRecord

UNNAMED_SUPPORT = "supported_without_sentence"
"""Support of a supported sentence for which neither people nor the judge named a key."""
_LONGEST_QUOTE = 1_000
"""Most characters of a comment that an explanation quotes."""


def quoted(correction: Correction) -> str:
    """Return a person's comment after the name, as explanations quote it."""
    comment = correction.comment.strip()
    cut = comment[:_LONGEST_QUOTE] + ("…" if len(comment) > _LONGEST_QUOTE else "")
    return f"{correction.annotator}: {cut}"


class Majority:
    """The majority of several people's judgments of one label.

    Args:
        record: the judge's label.
        judged: the corrections that count, each with its judgment, sorted by annotator.
    """

    def __init__(self, record: LabelRecord, judged: Sequence[tuple[Correction, Judgment]]) -> None:
        self._record = record
        self._judge = record.label
        self._corrections = [correction for correction, _ in judged]
        self._judgments = [judgment for _, judgment in judged]
        self._decided = [decided(record, correction) for correction, _ in judged]

    def label(self) -> GPTLabelingOutput:
        """Return the label of the majority."""
        judge = self._judge
        relevant = self._keys(
            [j.relevant for j in self._judgments], judge.all_relevant_sentence_keys
        )
        utilized = self._keys(
            [j.utilized for j in self._judgments], judge.all_utilized_sentence_keys
        )
        overall, yes = self._decide(
            [j.overall_supported for j in self._judgments], judge.overall_supported
        )
        return GPTLabelingOutput(
            relevance_explanation=self._marked(
                _changes(judge.all_relevant_sentence_keys, relevant, "relevant"),
                judge.relevance_explanation,
            ),
            all_relevant_sentence_keys=relevant,
            overall_supported_explanation=self._overall(overall, yes, utilized),
            overall_supported=overall,
            sentence_support_information=tuple(self._sentences()),
            all_utilized_sentence_keys=utilized,
        )

    def _decide(self, votes: Sequence[bool], judge: bool | None) -> tuple[bool, int]:
        """Return the majority's verdict and its votes; the judge decides a tie."""
        yes, judge = sum(votes), bool(judge)
        verdict = is_majority(yes, len(votes), tie=judge)
        return verdict, yes if verdict else len(votes) - yes

    def _keys(self, named: Sequence[Sequence[str]], judge: Sequence[str]) -> tuple[str, ...]:
        """Return the document sentences that the majority names."""
        return tuple(
            key
            for key in self._record.example.document_keys()
            if self._decide([key in keys for keys in named], key in judge)[0]
        )

    def _sentences(self) -> Iterator[SentenceSupport]:
        """Yield the entry of each response sentence that the judge or the majority decides on."""
        judged = judged_sentences(self._judge)
        for key in self._record.example.response_keys():
            entry = judged.get(key)
            votes = [
                key in judgment.support
                for judgment, own in zip(self._judgments, self._decided, strict=True)
                if key in own or key in judgment.support
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
            notes += _changes(own, kept, "support")
        return SentenceSupport(
            response_sentence_key=key,
            explanation=self._marked(notes, "" if entry is None else entry.explanation),
            supporting_sentence_keys=kept,
            fully_supported=supported,
        )

    def _support(self, key: str, judge: Sequence[str]) -> tuple[str, ...]:
        """Return the supporting keys of a supported sentence."""
        named = [keys for j in self._judgments if (keys := j.support.get(key))]
        if not named:
            return tuple(judge) or (UNNAMED_SUPPORT,)
        majority = majority_keys(named, tied=judge)
        return tuple(judge) if {*majority} == {*judge} else majority

    def _overall(self, overall: bool, agreeing: int, utilized: Sequence[str]) -> str:
        """Return the overall explanation, with changes of utilization and people's reasons."""
        notes = []
        if overall != self._judge.overall_supported:
            verdict = "supported" if overall else "not supported"
            notes.append(f"{verdict}, say {agreeing} of {len(self._judgments)}")
        notes += _changes(self._judge.all_utilized_sentence_keys, utilized, "utilized")
        reasons = [quoted(one) for one in self._corrections if one.comment.strip()]
        return self._marked(notes, self._judge.overall_supported_explanation, reasons)

    def _marked(self, notes: Sequence[str], explanation: str, reasons: Sequence[str] = ()) -> str:
        """Return an explanation after a note of what people changed and why, if anything."""
        if not notes and not reasons:
            return explanation
        names = ", ".join(each.annotator for each in self._corrections)
        verb = "corrected" if notes else "reviewed"
        return f"[{verb} by {names}: {'; '.join([*notes, *reasons])}] {explanation}"


def _changes(before: Sequence[str], after: Sequence[str], field: str) -> list[str]:
    """Describe the keys that were added and removed; empty if there are none."""
    moves = [
        *(f"+{k}" for k in after if k not in before),
        *(f"-{k}" for k in before if k not in after),
    ]
    return [f"{field} {' '.join(moves)}"] if moves else []
