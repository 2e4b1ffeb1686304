"""The contract of a label: every rule that an answer must keep, checked by :func:`check_label`.

Judges, importers, stores and readers of label files all use it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from labeler.sentences.characters import normalized
from labeler.sentences.example import Frozen, KeyedExample, position

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

SUPPORT = "degenerate_support"
"""Count of overruled support verdicts: of sentences, and of the whole response."""
USE = "degenerate_use"
"""Count of document sentences that the judge called utilized."""
CLAIMS = "degenerate_claims"
"""Count of overruled claims, of the response and of a reference answer."""
OVERRULED = frozenset({SUPPORT, USE, CLAIMS})
"""Names of counts of overruled verdicts; :mod:`labeler.labels.non_answers` overrules them."""


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

    Trivial spelling (``0A``, ``[0a]``, ``0a.``, several keys or a range in one text, a repeated
    key) is repaired and counted. Violations are faults that no metric could compute with: a key
    that was not shown, a response sentence judged never or twice, full support without support. For
    claims: a sentence that neither has claims nor is listed without claims, a verdict without the
    keys it needs, and a sentence whose support contradicts its claims.
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
_PartT = TypeVar("_PartT", bound=Frozen)
_ClaimT = TypeVar("_ClaimT", bound=ResponseClaim | ReferenceClaim)
_KEY = attrgetter("key")
_SUPPORT = "sentence_support_information"
_SUPPORTING, _CONTRADICTING = "supporting_sentence_keys", "contradicting_sentence_keys"
_NEEDED = {"entailment": _SUPPORTING, "contradiction": _CONTRADICTING}
"""Keys that a verdict needs."""
_UNKNOWN: dict[_Part, ViolationKind] = {
    "response": "unknown_response_sentence",
    "reference": "unknown_reference_sentence",
}


class _Check:
    """One pass over one answer, which collects repairs and violations."""

    def __init__(self, example: KeyedExample) -> None:
        self.documents = frozenset(example.document_keys())
        self.evidence = frozenset(map(_KEY, example.evidence_sentences()))
        """Sentences that may support or contradict; the rest is about documents alone."""
        self._shown: dict[_Part, list[str]] = {
            "response": example.response_keys(),
            "reference": [*map(_KEY, example.reference or ())],
        }
        self.repairs: Counter[str] = Counter()
        self.violations: list[Violation] = []

    def label(self, answer: GPTLabelingOutput | VerbatimLabel) -> GPTLabelingOutput:
        """Return the answer with canonical keys."""
        support = tuple(self._sentences(answer.sentence_support_information))
        self._coverage([entry.response_sentence_key for entry in support])
        checked: dict[str, Any] = {
            name: self.keys(getattr(answer, name), name, self.documents)
            for name in ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
        }
        checked[_SUPPORT] = support
        if isinstance(answer, ClaimsLabelingOutput):
            lists = {_SUPPORTING: (self.evidence, True), _CONTRADICTING: (self.evidence, False)}
            claims = tuple(self._claims("response", answer.response_claims, lists))
            self._claims_agree(claims, support)
            checked["response_claims"] = claims
            checked |= self._without_claims("response", answer, claims)
        if isinstance(answer, ReferenceLabelingOutput):
            lists = {_SUPPORTING: (self.documents, False)}
            expected = tuple(self._claims("reference", answer.reference_claims, lists))
            checked["reference_claims"] = expected
            checked |= self._without_claims("reference", answer, expected)
        if isinstance(answer, GPTLabelingOutput):
            return _with(answer, **checked)
        return GPTLabelingOutput(**vars(answer) | checked)

    def _sentences(
        self, entries: Iterable[SentenceSupport | VerbatimSupport]
    ) -> Iterator[SentenceSupport]:
        for entry in entries:
            key = self._own_key("response", entry.response_sentence_key, _SUPPORT)
            if key is None:
                continue
            field = f"sentence_support_information[{key}].supporting_sentence_keys"
            supported = entry.fully_supported
            if supported is None:
                self.repairs["fully_supported_null"] += 1
                supported = bool(entry.supporting_sentence_keys)
            keys = self.keys(
                entry.supporting_sentence_keys, field, self.evidence, special_allowed=True
            )
            if supported and not keys:
                self._violate("supported_without_support", field, [key])
            own = entry
            if isinstance(own, VerbatimSupport):
                own = SentenceSupport(**vars(own) | {"fully_supported": supported})
            yield _with(own, response_sentence_key=key, supporting_sentence_keys=keys)

    def _own_key(self, part: _Part, given: str, field: str) -> str | None:
        """Return the shown key of the response or the reference that a text names, if any."""
        shown = self._shown[part]
        if given in shown:
            return given
        key = _spelling(given)
        if key in shown:
            self.repairs["spelling"] += 1
            return key
        self._violate(_UNKNOWN[part], field, [given])
        return None

    def _coverage(self, judged: list[str]) -> None:
        response = self._shown["response"]
        if judged == response:
            return
        counts = Counter(judged)
        missing = [key for key in response if not counts[key]]
        self._violate("missing_response_sentence", _SUPPORT, missing)
        repeated = [key for key in counts if counts[key] > 1]
        self._violate("duplicate_response_sentence", _SUPPORT, repeated)

    def _claims(
        self,
        part: _Part,
        claims: Iterable[_ClaimT],
        lists: Mapping[str, tuple[frozenset[str], bool]],
    ) -> Iterator[_ClaimT]:
        """Check claims.

        Args:
            part: the text that makes them.
            claims: the claims.
            lists: their lists of keys, each with the keys that it may have, and True if it may
                have special strings.
        """
        name = f"{part}_sentence_key"
        for number, claim in enumerate(claims):
            field = f"{part}_claims[{number}]"
            key = self._own_key(part, getattr(claim, name), field)
            if key is None:
                continue
            if not claim.claim.strip():
                self._violate("blank_claim", field, [key])
            checked: dict[str, Any] = {name: key}
            for one, (allowed, special) in lists.items():
                given = getattr(claim, one)
                checked[one] = self.keys(given, f"{field}.{one}", allowed, special_allowed=special)
            verdict = getattr(claim, "verdict", "neutral")
            if not checked.get(_NEEDED.get(verdict, ""), True):
                self._violate("verdict_without_keys", field, [verdict])
            yield _with(claim, **checked)

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
        self, part: _Part, answer: ClaimsLabelingOutput, claims: Iterable[Frozen]
    ) -> dict[str, Any]:
        """Check the sentences without claims: each sentence has claims or is one of these."""
        field = f"{part}_sentences_without_claims"
        shown = self._shown[part]
        named: dict[str, None] = {}
        for text in getattr(answer, field):
            key = self._own_key(part, text, field)
            if key in named:
                self.repairs["duplicate_key"] += 1
            elif key is not None:
                named[key] = None
        made = {getattr(one, f"{part}_sentence_key") for one in claims}
        self._violate("claims_and_none", field, [key for key in named if key in made])
        missing = [key for key in shown if key not in made and key not in named]
        self._violate("missing_claims", field, missing)
        return {field: tuple(named)}

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
        texts = filter(None, _SEPARATOR.split(normalized("NFKC", text)))
        parts = [key for part in texts for key in self._range(part) or [_spelling(part)]]
        if parts and all(part in self.evidence or part in SPECIAL_SUPPORT for part in parts):
            self.repairs["spelling" if len(parts) == 1 else "joined_keys"] += 1
            return parts
        return [text]

    def _range(self, text: str) -> list[str]:
        """Return the keys from one to another of the same text, as of ``0a-0c``."""
        ends = [_spelling(end) for end in _TO.split(text)]
        if len(ends) == 1 or not self.evidence.issuperset(ends):
            return []
        first, last = position(ends[0]), position(ends[-1])
        between = [key for key in self.evidence if first <= position(key) <= last]
        return sorted(between, key=position) if first[:2] == last[:2] else []

    def _violate(self, kind: ViolationKind, field: str, keys: list[str]) -> None:
        if keys:
            self.violations.append(
                Violation(kind=kind, field=field, keys=tuple(dict.fromkeys(keys)))
            )


def _with(part: _PartT, **values: str | tuple[object, ...]) -> _PartT:
    """Return a label or claim with canonical keys; usually itself, without a copy."""
    same = values.items() <= vars(part).items()
    return part if same else part.model_copy(update=values)


_SEPARATOR = re.compile(r"(?:[,;\s/|&\u3001]|\band\b)+")
_TO = re.compile(r"[-\u2010-\u2014]|\.\.+")
_AROUND = " \t\n[](){}<>\"'`.:*#\u00ab\u00bb\u2018\u2019\u201c\u201d\u201e\u200b\ufeff"


def _spelling(key: str) -> str:
    """Normalize common spellings of a key: ``[0A]``, ``"0a"``, ``**0a**``, or ``0a.``."""
    return key.strip(_AROUND).lower()
