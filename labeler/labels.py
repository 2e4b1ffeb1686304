"""What a judge answers, and the contract that an answer must keep.

The field names are RAGBench's (Friel, Belyi, Sanyal 2024). Explanations come before verdicts, so
that a model reasons before it decides. The contract is checked here and nowhere else: judges,
importers, stores and readers of label files all come to :func:`check_label`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from pydantic import Field

from labeler.example import Frozen, KeyedExample

SPECIAL_SUPPORT: tuple[str, ...] = (
    "supported_without_sentence",
    "general",
    "well_known_fact",
    "numerical_reasoning",
)
"""Strings that may stand for support without naming a sentence."""


class SentenceSupport(Frozen):
    """The judgement of one response sentence."""

    response_sentence_key: str = Field(description="Key of the response sentence being judged.")
    explanation: str = Field(
        description="Step by step: what the sentence claims, "
        "and what the documents say about each claim."
    )
    supporting_sentence_keys: tuple[str, ...] = Field(
        description="Keys of document sentences that support it, or special support strings. "
        "Empty exactly when the sentence is not fully supported."
    )
    fully_supported: bool = Field(description="True when every claim of the sentence is supported.")


class GPTLabelingOutput(Frozen):
    """The label of one record: relevance, support and utilization, sentence by sentence."""

    relevance_explanation: str = Field(
        description="Which information of the documents helps to answer the question, and why; "
        "judged without regard to the response."
    )
    all_relevant_sentence_keys: tuple[str, ...] = Field(
        description="Keys of all document sentences that help to answer the question."
    )
    overall_supported_explanation: str = Field(
        description="Step by step: is the response as a whole supported by the documents?"
    )
    overall_supported: bool = Field(description="True when the whole response is supported.")
    sentence_support_information: tuple[SentenceSupport, ...] = Field(
        description="One entry for every response sentence, in order."
    )
    all_utilized_sentence_keys: tuple[str, ...] = Field(
        description="Keys of all document sentences whose information the response uses."
    )


class VerbatimSupport(Frozen):
    """A sentence judgement as it was given, before normalisation."""

    response_sentence_key: str
    explanation: str
    supporting_sentence_keys: tuple[str, ...]
    fully_supported: bool | None
    """``None`` where the source left it open, as many published RAGBench rows do."""


class VerbatimLabel(Frozen):
    """An answer as it was given: spelling, duplicates, unknown keys and gaps included."""

    relevance_explanation: str
    all_relevant_sentence_keys: tuple[str, ...]
    overall_supported_explanation: str
    overall_supported: bool
    sentence_support_information: tuple[VerbatimSupport, ...]
    all_utilized_sentence_keys: tuple[str, ...]


ViolationKind = Literal[
    "unknown_key",
    "special_not_allowed",
    "unknown_response_sentence",
    "missing_response_sentence",
    "duplicate_response_sentence",
    "supported_without_support",
]


class Violation(Frozen):
    """One way in which an answer broke the contract."""

    kind: ViolationKind
    field: str
    """Where it is: a field of the label, with the response sentence's key where that applies."""
    keys: tuple[str, ...]
    """The offending keys, as they were given."""

    def __str__(self) -> str:
        return f"{self.kind} in {self.field}: {', '.join(map(repr, self.keys))}"


class CheckedLabel(NamedTuple):
    """An answer after the check.

    Attributes:
        label: the answer with canonical keys, without duplicates, with what was unknown left out.
        normalised: how many of each trivial repair were made.
        violations: what broke the contract; empty for an answer that a judge may return.
    """

    label: GPTLabelingOutput
    normalised: dict[str, int]
    violations: tuple[Violation, ...]


def check_label(answer: GPTLabelingOutput | VerbatimLabel, example: KeyedExample) -> CheckedLabel:
    """Check an answer against the very sentences that were shown.

    Trivial spelling (``0A``, ``[0a]``, ``0a.``, two keys in one text, a key twice) is repaired and
    counted. A violation is anything that a metric could not compute with: a key that was not
    shown, a response sentence judged never or twice, full support without support.
    """
    return _Check(example).run(answer)


class _Check:
    """One pass over one answer; collects repairs and violations."""

    def __init__(self, example: KeyedExample) -> None:
        self.documents = frozenset(example.document_keys())
        self.response = example.response_keys()
        self.repairs: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def run(self, answer: GPTLabelingOutput | VerbatimLabel) -> CheckedLabel:
        support = tuple(self._sentences(answer.sentence_support_information))
        self._coverage([entry.response_sentence_key for entry in support])
        label = GPTLabelingOutput(
            relevance_explanation=answer.relevance_explanation,
            all_relevant_sentence_keys=self._keys(
                answer.all_relevant_sentence_keys, "all_relevant_sentence_keys"
            ),
            overall_supported_explanation=answer.overall_supported_explanation,
            overall_supported=answer.overall_supported,
            sentence_support_information=support,
            all_utilized_sentence_keys=self._keys(
                answer.all_utilized_sentence_keys, "all_utilized_sentence_keys"
            ),
        )
        return CheckedLabel(label, dict(self.repairs), tuple(self.violations))

    def _sentences(
        self, entries: Iterable[SentenceSupport | VerbatimSupport]
    ) -> Iterable[SentenceSupport]:
        shown = frozenset(self.response)
        for entry in entries:
            key = entry.response_sentence_key
            if key not in shown:
                key = _spelling(key)
                if key in shown:
                    self.repairs["spelling"] += 1
            if key not in shown:
                self._violate(
                    "unknown_response_sentence",
                    "sentence_support_information",
                    [entry.response_sentence_key],
                )
                continue
            yield self._sentence(key, entry)

    def _sentence(self, key: str, entry: SentenceSupport | VerbatimSupport) -> SentenceSupport:
        field = f"sentence_support_information[{key}].supporting_sentence_keys"
        supported = entry.fully_supported
        if supported is None:
            self.repairs["fully_supported_null"] += 1
            supported = bool(entry.supporting_sentence_keys)
        keys = self._keys(entry.supporting_sentence_keys, field, special_allowed=True)
        if supported and not keys:
            self._violate("supported_without_support", field, [key])
        return SentenceSupport(
            response_sentence_key=key,
            explanation=entry.explanation,
            supporting_sentence_keys=keys,
            fully_supported=supported,
        )

    def _coverage(self, judged: list[str]) -> None:
        field = "sentence_support_information"
        counts = Counter(judged)
        self._violate(
            "missing_response_sentence", field, [k for k in self.response if not counts[k]]
        )
        self._violate("duplicate_response_sentence", field, [k for k in counts if counts[k] > 1])

    def _keys(
        self, given: Iterable[str], field: str, *, special_allowed: bool = False
    ) -> tuple[str, ...]:
        known: dict[str, None] = {}
        unknown: list[str] = []
        misplaced: list[str] = []
        for text in given:
            for key in self._read(text):
                if key in SPECIAL_SUPPORT and not special_allowed:
                    misplaced.append(text)
                elif key not in self.documents and key not in SPECIAL_SUPPORT:
                    unknown.append(text)
                elif key in known:
                    self.repairs["duplicate_key"] += 1
                else:
                    known[key] = None
        self._violate("unknown_key", field, unknown)
        self._violate("special_not_allowed", field, misplaced)
        return tuple(known)

    def _read(self, text: str) -> list[str]:
        """The keys that one given text names; the text itself where it names none."""
        if text in self.documents or text in SPECIAL_SUPPORT:
            return [text]
        parts = [_spelling(part) for part in _SEPARATOR.split(text) if part.strip()]
        if parts and all(part in self.documents or part in SPECIAL_SUPPORT for part in parts):
            self.repairs["spelling" if len(parts) == 1 else "joined_keys"] += 1
            return parts
        return [text]

    def _violate(self, kind: ViolationKind, field: str, keys: list[str]) -> None:
        if keys:
            self.violations.append(
                Violation(kind=kind, field=field, keys=tuple(dict.fromkeys(keys)))
            )


_SEPARATOR = re.compile(r"[,;\s]+")


def _spelling(key: str) -> str:
    """Undo the spellings that models give to a key they mean: ``[0A]``, ``"0a"``, or ``0a.``."""
    return key.strip(" \t\n[](){}\"'`.:").lower()
