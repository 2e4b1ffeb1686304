"""Merges the labels of a record's windows into one label. Pure.

- Relevant and utilized sentences: those that their window calls so. A judge that compares sentences
  with each other compares within a window.
- A response sentence is supported if one window supports it. If its claims are supported in
  different windows, only a label with claims, worded alike in each window, shows that.
- The absence of something from the documents (``supported_without_sentence``) holds if every window
  supports it, unless one names a sentence for it.
- The response is supported if each of its sentences is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from labeler.errors import UsageError
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    RetrievalLabel,
    SentenceSupport,
)
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import position


def merge(labels: Sequence[GPTLabelingOutput], example: KeyedExample) -> GPTLabelingOutput:
    """Merge the labels of a record's windows.

    Relevant, utilized: the union. Support: see the module. The supporting keys are those of all
    windows that support the sentence; special strings count if no window names a sentence.
    Explanations are those of the supporting windows, or else of all, each with its window's number.

    Claims of a sentence that all windows word alike: each is entailed if some window entails it,
    else contradicted if some window contradicts it; the sentence is supported if all are entailed,
    in any window. Other claims cannot be matched: the sentence gets those of one window, the first
    that supports it, or else the one with the largest share of entailed or contradicted claims.
    Verdicts on the reference answer or the response alone, which every window shows, are those of
    the first window.

    Args:
        labels: of one profile, in reading order.
        example: the whole record.
    """
    if not labels:
        raise UsageError(f"{example.id!r}: there are no windows to merge")
    merging, first = _Merging(labels, example), labels[0]
    fields = vars(merge_retrievals(labels)) | merging.shared()
    if isinstance(first, ClaimsLabelingOutput):
        fields |= merging.claims()
    if isinstance(first, ReferenceLabelingOutput):
        fields |= merging.reference()
    return type(first)(**fields)


def merge_retrievals(labels: Sequence[GPTLabelingOutput | RetrievalLabel]) -> RetrievalLabel:
    """Merge the relevance of a record's windows: the union, and all explanations."""
    return RetrievalLabel(
        relevance_explanation=_explanations([label.relevance_explanation for label in labels]),
        all_relevant_sentence_keys=_union(label.all_relevant_sentence_keys for label in labels),
    )


class _Sentence(NamedTuple):
    support: SentenceSupport
    claims: Sequence[ResponseClaim]


class _Merging:
    """The labels of a record's windows."""

    def __init__(self, labels: Sequence[GPTLabelingOutput], example: KeyedExample) -> None:
        self._labels, self._example = labels, example
        self._entries = [
            {entry.response_sentence_key: entry for entry in label.sentence_support_information}
            for label in labels
        ]
        self._claims = _by_sentence(labels, "response_claims", "response_sentence_key")
        self._reference = _by_sentence(labels, "reference_claims", "reference_sentence_key")

    def shared(self) -> dict[str, Any]:
        """Merge the fields of all profiles besides relevance."""
        labels, support = self._labels, tuple(each.support for each in self._sentences)
        return {
            "overall_supported_explanation": _explanations(
                [label.overall_supported_explanation for label in labels]
            ),
            "overall_supported": bool(support) and all(e.fully_supported for e in support),
            "sentence_support_information": support,
            "all_utilized_sentence_keys": _union(
                label.all_utilized_sentence_keys for label in labels
            ),
        }

    def claims(self) -> dict[str, Any]:
        """Merge the fields of the profile ``claims``."""
        return {
            "response_claims": tuple(claim for each in self._sentences for claim in each.claims),
            "response_sentences_without_claims": tuple(
                each.support.response_sentence_key for each in self._sentences if not each.claims
            ),
        }

    def reference(self) -> dict[str, Any]:
        """Merge the fields of the profile ``reference``."""
        keys = [sentence.key for sentence in self._example.reference or ()]
        merged = {
            key: _reference_claims([each.get(key, []) for each in self._reference]) for key in keys
        }
        return {
            "reference_claims": tuple(claim for claims in merged.values() for claim in claims),
            "reference_sentences_without_claims": tuple(key for key in keys if not merged[key]),
        }

    @cached_property
    def _sentences(self) -> list[_Sentence]:
        return [self._sentence(key) for key in self._example.response_keys()]

    def _sentence(self, key: str) -> _Sentence:
        # An edited label may lack an entry.
        entries = [entries.get(key) or _unsupported(key) for entries in self._entries]
        claims = [claims.get(key, []) for claims in self._claims]
        kept = _support([e.supporting_sentence_keys if e.fully_supported else () for e in entries])
        if not _alike(claims):
            support = _sentence_support(entries, kept)
            return _Sentence(support, _chosen_claims(entries, claims, support))
        same = [_claim(group) for group in zip(*claims, strict=True)]
        entailed = [c.supporting_sentence_keys for c in same if c.verdict == "entailment"]
        if len(entailed) < len(same):
            return _Sentence(_sentence_support(entries, ()), same)
        return _Sentence(_sentence_support(entries, kept or _union(entailed)), same)


def _unsupported(key: str) -> SentenceSupport:
    return SentenceSupport(
        response_sentence_key=key,
        explanation="",
        supporting_sentence_keys=(),
        fully_supported=False,
    )


def _by_sentence(
    labels: Sequence[GPTLabelingOutput], field: str, key: str
) -> list[dict[str, list[Any]]]:
    """Group each label's claims by sentence; profiles without claims have none."""
    found: list[dict[str, list[Any]]] = []
    for label in labels:
        groups: dict[str, list[Any]] = {}
        for claim in getattr(label, field, ()):
            groups.setdefault(getattr(claim, key), []).append(claim)
        found.append(groups)
    return found


def _support(named: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Merge supporting keys.

    Args:
        named: supporting keys by window; empty if the window does not support the sentence.
    """
    naming = [keys for keys in named if _has_sentence(keys)]
    if naming:
        return _union(naming)
    every = all(named)
    return _union([key for key in keys if every or key != _ABSENCE] for keys in named)


def _has_sentence(keys: Iterable[str]) -> bool:
    """Return whether a document sentence is among keys."""
    return any(key not in SPECIAL_SUPPORT for key in keys)


def _sentence_support(entries: Sequence[SentenceSupport], kept: tuple[str, ...]) -> SentenceSupport:
    """Build a sentence's entry; it is supported if there are supporting keys."""
    yes = [entry.fully_supported for entry in entries]
    quoted = yes if kept and any(yes) else [True] * len(entries)
    partly = [e.supporting_sentence_keys for e in entries if not e.fully_supported]
    return SentenceSupport(
        response_sentence_key=entries[0].response_sentence_key,
        explanation=_explanations([entry.explanation for entry in entries], quoted),
        supporting_sentence_keys=kept or _union(partly),
        fully_supported=bool(kept),
    )


def _alike(claims: Sequence[Sequence[ResponseClaim | ReferenceClaim]]) -> bool:
    """Return whether all windows list the same claims, and at least one."""
    worded = {tuple(_words(claim.claim) for claim in each) for each in claims}
    return len(worded) == 1 and any(worded.pop())


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _claim(verdicts: Sequence[ResponseClaim]) -> ResponseClaim:
    """Merge the windows' verdicts on one claim."""
    entailed = [claim.verdict == "entailment" for claim in verdicts]
    pairs = list(zip(verdicts, entailed, strict=True))
    keys = _support([claim.supporting_sentence_keys if yes else () for claim, yes in pairs])
    denied = any(claim.verdict == "contradiction" for claim in verdicts)
    partly = [claim.supporting_sentence_keys for claim, yes in pairs if not yes]
    return verdicts[0].model_copy(
        update={
            "supporting_sentence_keys": keys or _union(partly),
            "contradicting_sentence_keys": _union(
                claim.contradicting_sentence_keys for claim in verdicts
            ),
            "verdict": "entailment" if keys else "contradiction" if denied else "neutral",
            "relevant_to_question": any(claim.relevant_to_question for claim in verdicts),
        }
    )


def _chosen_claims(
    entries: Sequence[SentenceSupport],
    claims: Sequence[Sequence[ResponseClaim]],
    merged: SentenceSupport,
) -> Sequence[ResponseClaim]:
    """Return the claims of the most decided window that agrees with the merged entry."""

    def decisiveness(window: int) -> tuple[bool, float, bool]:
        decided = sum(claim.verdict != "neutral" for claim in claims[window])
        share = decided / len(claims[window]) if claims[window] else 0.0
        if merged.fully_supported:
            share = float(_has_sentence(entries[window].supporting_sentence_keys))
        return share > 0, share, bool(claims[window])

    side = [n for n, e in enumerate(entries) if e.fully_supported == merged.fully_supported]
    return claims[max(side or range(len(entries)), key=decisiveness)]


def _reference_claims(claims: Sequence[Sequence[ReferenceClaim]]) -> Sequence[ReferenceClaim]:
    """Merge the claims of a reference sentence."""
    if not _alike(claims):
        return max(claims, key=_share_stated)
    return [
        same[0].model_copy(
            update={"supporting_sentence_keys": _union(c.supporting_sentence_keys for c in same)}
        )
        for same in zip(*claims, strict=True)
    ]


def _share_stated(claims: Sequence[ReferenceClaim]) -> float:
    """Return the share of claims that the documents state."""
    return sum(bool(claim.supporting_sentence_keys) for claim in claims) / max(1, len(claims))


def _explanations(texts: Sequence[str], quoted: Sequence[bool] | None = None) -> str:
    """Join the windows' explanations, each with its number."""
    chosen = quoted or [True] * len(texts)
    return "\n".join(
        f"[window {number} of {len(texts)}] {text}"
        for number, (text, is_quoted) in enumerate(zip(texts, chosen, strict=True), start=1)
        if is_quoted
    )


def _union(keys: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return all keys once, in reading order, special strings last."""
    found = {key for each in keys for key in each}
    special = [name for name in SPECIAL_SUPPORT if name in found]
    return (*sorted(found.difference(special), key=position), *special)


_ABSENCE = "supported_without_sentence"
"""A statement about all documents, which one window cannot make."""
