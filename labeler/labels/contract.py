"""The contract of a label: every rule that an answer must keep, checked by :func:`check_label`.

Judges, importers, stores and readers of label files all use it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Generic, Literal, NamedTuple

from typing_extensions import TypeVar

from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceClaim,
    ReferenceLabelingOutput,
    ResponseClaim,
    RetrievalLabel,
    SentenceSupport,
    VerbatimLabel,
    VerbatimSupport,
)
from labeler.sentences.example import Frozen, KeyedExample

AnswerT = TypeVar("AnswerT", bound=Frozen, default=GPTLabelingOutput)

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

LONGEST_TEXT = 20_000
"""Characters of an explanation, or of any other text in an answer, at most. Judges write hundreds,
unless they repeat themselves."""


class Violation(Frozen):
    """One way in which an answer broke the contract."""

    kind: ViolationKind
    field: str
    """The field of the label, with the key of the response sentence where one applies."""
    keys: tuple[str, ...]
    """The offending keys as given."""

    def __str__(self) -> str:
        return f"{self.kind} in {self.field}: {', '.join(map(repr, self.keys))}"


class CheckedAnswer(NamedTuple, Generic[AnswerT]):
    """A checked answer.

    Attributes:
        answer: the answer with canonical keys, without duplicates and unknown keys, in its profile.
        repairs: number of trivial repairs by kind.
        violations: rules that the answer breaks; empty for one that a judge may return.
    """

    answer: AnswerT
    repairs: Mapping[str, int] = {}
    violations: tuple[Violation, ...] = ()


def check_label(answer: GPTLabelingOutput | VerbatimLabel, example: KeyedExample) -> CheckedAnswer:
    """Check an answer against the sentences that were shown.

    Trivial spelling (``0A``, ``[0a]``, ``0a.``, two keys in one text, a repeated key) is repaired
    and counted. Violations are faults that no metric could compute with: a key that was not shown,
    a response sentence judged never or twice, full support without support. For claims: a sentence
    that neither has claims nor is listed without claims, a verdict without the keys it needs, and a
    sentence whose support contradicts its claims.
    """
    check = _Check(example)
    label = check.label(answer)
    return CheckedAnswer(label, dict(check.repairs), tuple(check.violations))


def check_retrieval(answer: RetrievalLabel, example: KeyedExample) -> CheckedAnswer[RetrievalLabel]:
    """Check the relevant sentences of an answer, as :func:`check_label` does."""
    check = _Check(example)
    name = "all_relevant_sentence_keys"
    keys = check.keys(answer.all_relevant_sentence_keys, name, check.documents)
    label = answer.model_copy(update={name: keys})
    return CheckedAnswer(label, dict(check.repairs), tuple(check.violations))


def has_long_text(answer: Frozen) -> bool:
    """Return True if an explanation, or any other text of an answer, exceeds :data:`LONGEST_TEXT`.

    Such an answer is not a label; it is not one of the violations, which published schemas list.
    """
    return any(
        len(part) > LONGEST_TEXT
        if isinstance(part, str)
        else isinstance(part, Frozen) and has_long_text(part)
        for value in vars(answer).values()
        for part in (value if isinstance(value, tuple) else (value,))
    )


_Part = Literal["response", "reference"]
_UNKNOWN: dict[_Part, ViolationKind] = {
    "response": "unknown_response_sentence",
    "reference": "unknown_reference_sentence",
}
_Claim = TypeVar("_Claim", bound=ResponseClaim)
_PartT = TypeVar("_PartT", bound=Frozen)


_KEY = attrgetter("key")


class _Check:
    """One pass over one answer, which collects repairs and violations."""

    def __init__(self, example: KeyedExample) -> None:
        self.documents = frozenset(example.document_keys())
        self.evidence = frozenset(map(_KEY, example.evidence_sentences()))
        """Sentences that may support or contradict; the rest is about documents alone."""
        self.response = example.response_keys()
        self._shown: dict[_Part, list[str]] = {
            "response": self.response,
            "reference": [*map(_KEY, example.reference or ())],
        }
        self.repairs: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def label(self, answer: GPTLabelingOutput | VerbatimLabel) -> GPTLabelingOutput:
        """Return the answer with canonical keys."""
        shared = self._shared(answer)
        if not isinstance(answer, ClaimsLabelingOutput):
            return shared
        response_claims = tuple(self._response_claims(answer.response_claims))
        self._claims_agree(response_claims, shared.sentence_support_information)
        fields = {
            **vars(shared),
            "response_claims": response_claims,
            "response_sentences_without_claims": self._without_claims(
                "response",
                answer.response_sentences_without_claims,
                [claim.response_sentence_key for claim in answer.response_claims],
            ),
        }
        if not isinstance(answer, ReferenceLabelingOutput):
            return ClaimsLabelingOutput(**fields)
        return ReferenceLabelingOutput(
            **fields,
            reference_claims=tuple(self._reference_claims(answer.reference_claims)),
            reference_sentences_without_claims=self._without_claims(
                "reference",
                answer.reference_sentences_without_claims,
                [claim.reference_sentence_key for claim in answer.reference_claims],
            ),
        )

    def _shared(self, answer: GPTLabelingOutput | VerbatimLabel) -> GPTLabelingOutput:
        """Check the fields that labels of all profiles have."""
        support = tuple(self._sentences(answer.sentence_support_information))
        self._coverage([entry.response_sentence_key for entry in support])
        checked: dict[str, Any] = {
            name: self.keys(getattr(answer, name), name, self.documents)
            for name in ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
        }
        checked["sentence_support_information"] = support
        if type(answer) is GPTLabelingOutput:
            return _with(answer, **checked)
        given = {name: getattr(answer, name) for name in GPTLabelingOutput.model_fields}
        return GPTLabelingOutput(**given | checked)

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
        """Return the shown key that a text names, if any."""
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
        keys = self.keys(entry.supporting_sentence_keys, field, self.evidence, special_allowed=True)
        if supported and not keys:
            self._violate("supported_without_support", field, [key])
        if isinstance(entry, SentenceSupport):
            return _with(entry, response_sentence_key=key, supporting_sentence_keys=keys)
        return SentenceSupport(
            response_sentence_key=key,
            explanation=entry.explanation,
            supporting_sentence_keys=keys,
            fully_supported=supported,
        )

    def _coverage(self, judged: list[str]) -> None:
        if judged == self.response:
            return
        field = "sentence_support_information"
        counts = Counter(judged)
        self._violate(
            "missing_response_sentence", field, [k for k in self.response if not counts[k]]
        )
        self._violate("duplicate_response_sentence", field, [k for k in counts if counts[k] > 1])

    def _response_claims(self, claims: Iterable[_Claim]) -> Iterable[_Claim]:
        for number, claim in enumerate(claims):
            field = f"response_claims[{number}]"
            key = self._claiming("response", field, claim.response_sentence_key, claim.claim)
            if key is None:
                continue
            supporting = self.keys(
                claim.supporting_sentence_keys,
                f"{field}.supporting_sentence_keys",
                self.evidence,
                special_allowed=True,
            )
            contradicting = self.keys(
                claim.contradicting_sentence_keys,
                f"{field}.contradicting_sentence_keys",
                self.evidence,
            )
            needed = {"entailment": supporting, "contradiction": contradicting}
            if not needed.get(claim.verdict, "none"):
                self._violate("verdict_without_keys", field, [claim.verdict])
            yield _with(
                claim,
                response_sentence_key=key,
                supporting_sentence_keys=supporting,
                contradicting_sentence_keys=contradicting,
            )

    def _claiming(self, part: _Part, field: str, given: str, claim: str) -> str | None:
        """Return the key of a claim's sentence, if it was shown."""
        key = self._sentence_key(given, self._shown[part])
        if key is None:
            self._violate(_UNKNOWN[part], field, [given])
        elif not claim.strip():
            self._violate("blank_claim", field, [key])
        return key

    def _claims_agree(
        self, claims: Sequence[ResponseClaim], support: Iterable[SentenceSupport]
    ) -> None:
        """Check that a sentence is supported exactly if all of its claims are entailed."""
        denied = {c.response_sentence_key for c in claims if c.verdict != "entailment"}
        claiming = {c.response_sentence_key for c in claims}
        for entry in support:
            key = entry.response_sentence_key
            if key in claiming and entry.fully_supported == (key in denied):
                self._violate("verdict_against_support", f"response_claims of {key}", [key])

    def _without_claims(
        self, part: _Part, given: Iterable[str], claiming: Iterable[str]
    ) -> tuple[str, ...]:
        """Check the sentences without claims: each sentence has claims or is one of these."""
        field = f"{part}_sentences_without_claims"
        shown = self._shown[part]
        named: dict[str, None] = {}
        for text in given:
            key = self._sentence_key(text, shown)
            if key is None:
                self._violate(_UNKNOWN[part], field, [text])
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
            field = f"reference_claims[{number}]"
            key = self._claiming("reference", field, claim.reference_sentence_key, claim.claim)
            if key is None:
                continue
            keys = self.keys(
                claim.supporting_sentence_keys, f"{field}.supporting_sentence_keys", self.documents
            )
            yield _with(claim, reference_sentence_key=key, supporting_sentence_keys=keys)

    def keys(
        self,
        given: tuple[str, ...],
        field: str,
        allowed: frozenset[str],
        *,
        special_allowed: bool = False,
    ) -> tuple[str, ...]:
        """Return the canonical keys of the allowed sentences that are given, each once."""
        if allowed.issuperset(given) and len(set(given)) == len(given):
            return given
        known: dict[str, None] = {}
        unknown: list[str] = []
        misplaced: list[str] = []
        for text in given:
            for key in self._read(text):
                if key in SPECIAL_SUPPORT and not special_allowed:
                    misplaced.append(text)
                elif key not in allowed and key not in SPECIAL_SUPPORT:
                    unknown.append(text)
                elif key in known:
                    self.repairs["duplicate_key"] += 1
                else:
                    known[key] = None
        self._violate("unknown_key", field, unknown)
        self._violate("special_not_allowed", field, misplaced)
        return tuple(known)

    def _read(self, text: str) -> list[str]:
        """Return the keys that a text names; the text itself if it names none."""
        if text in self.evidence or text in SPECIAL_SUPPORT:
            return [text]
        parts = [_spelling(part) for part in _SEPARATOR.split(text) if part.strip()]
        if parts and all(part in self.evidence or part in SPECIAL_SUPPORT for part in parts):
            self.repairs["spelling" if len(parts) == 1 else "joined_keys"] += 1
            return parts
        return [text]

    def _violate(self, kind: ViolationKind, field: str, keys: list[str]) -> None:
        if keys:
            self.violations.append(
                Violation(kind=kind, field=field, keys=tuple(dict.fromkeys(keys)))
            )


def _with(part: _PartT, **values: str | tuple[object, ...]) -> _PartT:
    """Return a label or claim with canonical keys; usually itself, without a copy."""
    same = values.items() <= vars(part).items()
    return part if same else part.model_copy(update=values)


_SEPARATOR = re.compile(r"[,;\s]+")


def _spelling(key: str) -> str:
    """Normalize common spellings of a key: ``[0A]``, ``"0a"``, or ``0a.``."""
    return key.strip(" \t\n[](){}\"'`.:").lower()
