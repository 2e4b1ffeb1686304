"""The contract that an answer must keep, checked here and nowhere else.

Judges, importers, stores and readers of label files all come to :func:`check_label`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, TypeVar

from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    SentenceSupport,
    VerbatimLabel,
    VerbatimSupport,
)
from labeler.sentences.example import Frozen, KeyedExample

ViolationKind = Literal[
    "unknown_key",
    "special_not_allowed",
    "unknown_response_sentence",
    "missing_response_sentence",
    "duplicate_response_sentence",
    "supported_without_support",
    "unknown_reference_sentence",
    "missing_claims",
    "blank_claim",
    "claims_and_none",
    "verdict_without_keys",
    "verdict_against_support",
    "score_outside_scale",
    "no_steps",
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
        label: the answer with canonical keys, without duplicates, with what was unknown left out;
            of the answer's own profile.
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
    shown, a response sentence judged never or twice, full support without support; and for claims
    a sentence without any that is not said to make none, a verdict without the keys that it rests
    on, and a sentence whose support its claims deny.
    """
    check = _Check(example)
    label = check.label(answer)
    return CheckedLabel(label, dict(check.repairs), tuple(check.violations))


_Claim = TypeVar("_Claim", bound=ResponseClaim)
_AnyClaim = TypeVar("_AnyClaim", bound=Frozen)


class _Check:
    """One pass over one answer; collects repairs and violations."""

    def __init__(self, example: KeyedExample) -> None:
        self.documents = frozenset(example.document_keys())
        self.response = example.response_keys()
        self.reference = [sentence.key for sentence in example.reference or ()]
        self.repairs: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def label(self, answer: GPTLabelingOutput | VerbatimLabel) -> GPTLabelingOutput:
        """The answer with canonical keys."""
        shared = self._shared(answer)
        if isinstance(answer, ReferenceLabelingOutput):
            return ReferenceLabelingOutput(
                **vars(shared),
                response_claims=self._response_claims(answer.response_claims, shared),
                response_sentences_without_claims=self._claimless(answer),
                reference_claims=tuple(self._reference_claims(answer.reference_claims)),
                reference_sentences_without_claims=self._referenceless(answer),
            )
        if isinstance(answer, ClaimsLabelingOutput):
            return ClaimsLabelingOutput(
                **vars(shared),
                response_claims=self._response_claims(answer.response_claims, shared),
                response_sentences_without_claims=self._claimless(answer),
            )
        return shared

    def _shared(self, answer: GPTLabelingOutput | VerbatimLabel) -> GPTLabelingOutput:
        """What labels of all profiles have."""
        support = tuple(self._sentences(answer.sentence_support_information))
        self._coverage([entry.response_sentence_key for entry in support])
        return GPTLabelingOutput(
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

    def _sentences(
        self, entries: Iterable[SentenceSupport | VerbatimSupport]
    ) -> Iterable[SentenceSupport]:
        for entry in entries:
            key = self._sentence_key(entry.response_sentence_key, self.response)
            if key is None:
                self._violate(
                    "unknown_response_sentence",
                    "sentence_support_information",
                    [entry.response_sentence_key],
                )
                continue
            yield self._sentence(key, entry)

    def _sentence_key(self, given: str, shown: Collection[str]) -> str | None:
        """The sentence of the response or the reference that a text names, if it names one."""
        if given in shown:
            return given
        key = _spelling(given)
        if key not in shown:
            return None
        self.repairs["spelling"] += 1
        return key

    def _sentence(self, key: str, entry: SentenceSupport | VerbatimSupport) -> SentenceSupport:
        field = f"sentence_support_information[{key}].supporting_sentence_keys"
        supported = entry.fully_supported
        if supported is None:
            self.repairs["fully_supported_null"] += 1
            supported = bool(entry.supporting_sentence_keys)
        keys = self._keys(entry.supporting_sentence_keys, field, special_allowed=True)
        if supported and not keys:
            self._violate("supported_without_support", field, [key])
        if isinstance(entry, SentenceSupport) and (key, keys) == (
            entry.response_sentence_key,
            entry.supporting_sentence_keys,
        ):
            return entry
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

    def _response_claims(
        self, claims: Iterable[_Claim], label: GPTLabelingOutput
    ) -> tuple[_Claim, ...]:
        checked = tuple(self._checked_claims(claims))
        self._claims_agree(checked, label.sentence_support_information)
        return checked

    def _checked_claims(self, claims: Iterable[_Claim]) -> Iterable[_Claim]:
        for number, claim in enumerate(claims):
            key = self._sentence_key(claim.response_sentence_key, self.response)
            field = f"response_claims[{number}]"
            if key is None:
                self._violate("unknown_response_sentence", field, [claim.response_sentence_key])
                continue
            supporting = self._keys(
                claim.supporting_sentence_keys,
                f"{field}.supporting_sentence_keys",
                special_allowed=True,
            )
            contradicting = self._keys(
                claim.contradicting_sentence_keys, f"{field}.contradicting_sentence_keys"
            )
            if not claim.claim.strip():
                self._violate("blank_claim", field, [key])
            needed = {"entailment": supporting, "contradiction": contradicting}
            if not needed.get(claim.verdict, "none"):
                self._violate("verdict_without_keys", field, [claim.verdict])
            yield _with(
                claim,
                response_sentence_key=key,
                supporting_sentence_keys=supporting,
                contradicting_sentence_keys=contradicting,
            )

    def _claims_agree(
        self, claims: Sequence[ResponseClaim], support: Iterable[SentenceSupport]
    ) -> None:
        """Hold a sentence's support against its claims: it is that of all of them together."""
        denied = {c.response_sentence_key for c in claims if c.verdict != "entailment"}
        claiming = {c.response_sentence_key for c in claims}
        for entry in support:
            key = entry.response_sentence_key
            if key in claiming and entry.fully_supported == (key in denied):
                self._violate("verdict_against_support", f"response_claims of {key}", [key])

    def _claimless(self, answer: ClaimsLabelingOutput) -> tuple[str, ...]:
        field = "response_sentences_without_claims"
        return self._without_claims(
            field,
            answer.response_sentences_without_claims,
            [claim.response_sentence_key for claim in answer.response_claims],
            self.response,
            "unknown_response_sentence",
        )

    def _referenceless(self, answer: ReferenceLabelingOutput) -> tuple[str, ...]:
        field = "reference_sentences_without_claims"
        return self._without_claims(
            field,
            answer.reference_sentences_without_claims,
            [claim.reference_sentence_key for claim in answer.reference_claims],
            self.reference,
            "unknown_reference_sentence",
        )

    def _without_claims(
        self,
        field: str,
        given: Iterable[str],
        claiming: Iterable[str],
        shown: Sequence[str],
        unknown: ViolationKind,
    ) -> tuple[str, ...]:
        """Sentences that make no claim: each sentence has claims, or is said to make none."""
        named: dict[str, None] = {}
        for text in given:
            key = self._sentence_key(text, shown)
            if key is None:
                self._violate(unknown, field, [text])
            elif key in named:
                self.repairs["duplicate_key"] += 1
            else:
                named[key] = None
        made = {key if key in shown else _spelling(key) for key in claiming}
        self._violate("claims_and_none", field, [key for key in named if key in made])
        missing = [key for key in shown if key not in made and key not in named]
        self._violate("missing_claims", field, missing)
        return tuple(named)

    def _reference_claims(self, claims: Iterable[ReferenceClaim]) -> Iterable[ReferenceClaim]:
        for number, claim in enumerate(claims):
            key = self._sentence_key(claim.reference_sentence_key, self.reference)
            field = f"reference_claims[{number}]"
            if key is None:
                self._violate("unknown_reference_sentence", field, [claim.reference_sentence_key])
                continue
            if not claim.claim.strip():
                self._violate("blank_claim", field, [key])
            keys = self._keys(claim.supporting_sentence_keys, f"{field}.supporting_sentence_keys")
            yield _with(claim, reference_sentence_key=key, supporting_sentence_keys=keys)

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


def _with(claim: _AnyClaim, **keys: str | tuple[str, ...]) -> _AnyClaim:
    """A claim with canonical keys: itself, nearly always, which spares a copy."""
    given = vars(claim)
    if all(given[field] == value for field, value in keys.items()):
        return claim
    return claim.model_copy(update=keys)


_SEPARATOR = re.compile(r"[,;\s]+")


def _spelling(key: str) -> str:
    """Undo the spellings that models give to a key they mean: ``[0A]``, ``"0a"``, or ``0a.``."""
    return key.strip(" \t\n[](){}\"'`.:").lower()
