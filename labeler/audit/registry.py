"""Checks and what they look at: ``Subject``, findings, ``Check``, its decorator and registry."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, Literal

from labeler.catalog import Catalog, named_keywords
from labeler.errors import UnknownName, UsageError
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ReferenceClaim,
    ResponseClaim,
    SecondOpinion,
    SentenceSupport,
)
from labeler.labels.record import LabelRecord
from labeler.sentences.citations import Cited, read_citations, source_sentences
from labeler.sentences.display import Brief
from labeler.sentences.numbers import decimal_marks, known_figures
from labeler.sentences.statements import Claim, read_claim
from labeler.sentences.words import stems, surface_words


class Subject:
    """One record under audit: what a check looks at.

    Args:
        record: the label record.
        second_opinion: the label of another judge, if there is one.

    Attributes:
        label: the label.
        judged: the verdict on each response sentence.
        supported: the verdicts on those that are judged supported.
        unsupported: the others.
        relevant: document sentences judged relevant.
        utilized: document sentences judged utilized.
        documents: keys of the document sentences, in reading order.
        document_set: the same as a set.
        evidence: keys of the sentences that may support: of documents, tool outputs and turns.
        supporting: document sentences in the support of a supported response sentence.
        response_claims: claims of the response, in labels that have some.
        reference_claims: claims of the reference answer, likewise.

    Example:
        >>> subject = labeler.audit.Subject(labels["pilot-boat-half"])
        >>> subject.texts["b"], sorted(subject.relevant)
        ('All fishing boats are exempt.', ['0a', '1b'])
    """

    def __init__(self, record: LabelRecord, second_opinion: SecondOpinion | None = None) -> None:
        label, example = record.label, record.example
        self.record, self.second_opinion, self.label = record, second_opinion, label
        self.judged = label.sentence_support_information
        self.supported = tuple(entry for entry in self.judged if entry.fully_supported)
        self.unsupported = tuple(entry for entry in self.judged if not entry.fully_supported)
        self.relevant = frozenset(label.all_relevant_sentence_keys)
        self.utilized = frozenset(label.all_utilized_sentence_keys)
        self.documents = tuple(example.document_keys())
        self.document_set = frozenset(self.documents)
        self.evidence = tuple(sentence.key for sentence in example.evidence_sentences())
        named = (key for entry in self.supported for key in self.named(entry))
        self.supporting = self.document_set.intersection(named)
        self.response_claims: tuple[ResponseClaim, ...] = getattr(label, "response_claims", ())
        self.reference_claims: tuple[ReferenceClaim, ...] = getattr(label, "reference_claims", ())
        self._words: dict[str, list[str]] = {}
        self._figures: dict[str, set[str]] = {}

    @cached_property
    def disagreements(self) -> dict[str, float]:
        """Probability that a verdict is wrong by the second opinion, by response sentence."""
        found = self.second_opinion.disagreements(self.label) if self.second_opinion else {}
        return {key: contrary for key, contrary in found.items() if key in self.claims}

    @property
    def disagreement(self) -> float:
        """The greatest of the disagreements; 0 without any."""
        return max(self.disagreements.values(), default=0.0)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Text of every sentence that the label may speak of, by key, documents first."""
        example = self.record.example
        sentences = [*example.evidence_sentences(), *example.response, *(example.reference or ())]
        return {sentence.key: sentence.text for sentence in sentences}

    @staticmethod
    def named(entry: SentenceSupport) -> tuple[str, ...]:
        """Return the sentences in the support of a verdict, without special strings."""
        return tuple(k for k in entry.supporting_sentence_keys if k not in SPECIAL_SUPPORT)

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The analyzed response sentences, by key, without those that only name sources."""
        response = self.record.example.response
        sources = source_sentences([sentence.text for sentence in response])
        return {s.key: read_claim(s) for n, s in enumerate(response) if n not in sources}

    @cached_property
    def checkable(self) -> tuple[tuple[SentenceSupport, Claim], ...]:
        """Supported sentences whose support names sentences and that make a claim of their own.

        Excluded are sentences about what the documents do not say, and introductions to lists.
        """
        pairs = ((e, self.claims.get(e.response_sentence_key)) for e in self.supported)
        return tuple(
            (entry, claim)
            for entry, claim in pairs
            if claim and self.named(entry)
            if claim.words and not claim.is_meta and not claim.introduces
        )

    @cached_property
    def cited(self) -> dict[str, Cited]:
        """What each response sentence with a citation marker cites, by key."""
        example = self.record.example
        texts = [sentence.text for sentence in example.response]
        found = zip(
            example.response_keys(), read_citations(texts, len(example.documents)), strict=True
        )
        return {key: cited for key, cited in found if cited != Cited()}

    @cached_property
    def decimal_marks(self) -> str:
        """The characters that may be a decimal mark in the record's texts."""
        return decimal_marks([self.record.example.question, *self.texts.values()])

    @cached_property
    def asked_figures(self) -> set[str]:
        """Values of the numbers in the question."""
        return known_figures(self.record.example.question, self.decimal_marks)

    def figures(self, *keys: str) -> set[str]:
        """Return the values of the numbers in some sentences."""
        for key in keys:
            if key not in self._figures:
                self._figures[key] = known_figures(self.texts.get(key, ""), self.decimal_marks)
        return set[str]().union(*(self._figures[key] for key in keys))

    @cached_property
    def everywhere(self) -> frozenset[str]:
        """Word stems of all documents, tool outputs and earlier turns."""
        return frozenset(stem for key in self.evidence for stem in self.words(key))

    def words(self, key: str) -> list[str]:
        """Return the word stems of a sentence, in order; empty for an unknown key."""
        if key not in self._words:
            self._words[key] = stems(surface_words(self.texts.get(key, "")))
        return self._words[key]

    def in_order(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return distinct keys in reading order, unknown keys last, by name."""
        return tuple(sorted(set(keys), key=lambda key: (self._places.get(key, _NOWHERE), key)))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self.texts)}


_NOWHERE = 1 << 60


Severity = Literal["contradiction", "suspicion", "note"]
"""``contradiction``: two statements of the label cannot both be true. ``suspicion``: the texts or
the explanation are evidence against the label. ``note``: worth knowing."""

WEIGHTS: dict[Severity, float] = {"contradiction": 0.5, "suspicion": 0.25, "note": 0.05}
"""Default weight of a check in the suspicion score, by severity."""


@dataclass(frozen=True, slots=True, repr=False)
class Found(Brief):
    """A problem that a check function yields.

    Attributes:
        message: the problem in one sentence for a person; may quote keys, never whole texts.
        keys: the sentences concerned, of documents, response or reference, in reading order.
        weight: evidence that the record is wrong, if not the check's, from 0 to 1.

    Example:
        >>> labeler.audit.Found("The response repeats itself.", ("a", "b")).keys
        ('a', 'b')
    """

    message: str
    keys: tuple[str, ...] = ()
    weight: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Finding(Brief):
    """A finding in one record.

    Attributes:
        check: the check's id.
        severity: the check's severity.
        message: the problem in one sentence.
        keys: the sentences concerned, in reading order.
        weight: its weight in the suspicion score, if not the check's.

    Example:
        >>> findings = labeler.audit.findings_of(labels["pilot-boat-half"])
        >>> findings[0].check, findings[0].severity
        ('verdict_hangs_on_one', 'note')
    """

    check: str
    severity: Severity
    message: str
    keys: tuple[str, ...] = ()
    weight: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the published form."""
        return {
            "check": self.check,
            "severity": self.severity,
            "message": self.message,
            "keys": list(self.keys),
        }


FindFunction = Callable[[Subject], Iterable[Found]]
AppliesFunction = Callable[[Subject], object]


def _always(_: Subject) -> bool:
    return True


@dataclass(frozen=True, repr=False)
class Check(Brief):
    """A named, versioned check of one record.

    Attributes:
        id: such as ``overall_against_sentences``.
        version: increased when its findings change for any label.
        severity: of all its findings.
        title: what it finds, in a few words.
        why: one sentence: why this is suspicious, and what to do about it.
        weight: evidence that a record with such a finding is wrong, between 0 and 1.
        find: yields what is wrong with a record, mostly nothing.
        applies: returns a true value for records that it can examine: the base of its rate.
    """

    id: str
    version: int
    severity: Severity
    title: str
    why: str
    weight: float
    find: FindFunction
    applies: AppliesFunction = _always

    def findings(self, subject: Subject) -> list[Finding]:
        """Return the findings in a record that the check applies to.

        Raises:
            UsageError: the function failed, or returned something else than :class:`Found` values.
        """
        where = f"record {subject.record.id!r:.80}"
        try:
            given: object = self.find(subject)  # a third party may have written it
            found = [*given] if isinstance(given, Iterable) else None
        except Exception as error:
            raise UsageError(
                f"check {self.id!r} failed on {where}: {type(error).__name__}: {error}"
            ) from error
        if found is None:
            raise UsageError(
                f"check {self.id!r} returned {type(given).__name__} for {where}: yield a "
                "labeler.audit.Found(message, keys) for each thing that it finds, or return a "
                "list of them, which may be empty"
            )
        return [self._finding(one, where) for one in found]

    def _finding(self, found: object, where: str) -> Finding:
        if not isinstance(found, Found):
            raise UsageError(
                f"check {self.id!r} gave {type(found).__name__} for {where}: each thing that it "
                "finds is a labeler.audit.Found(message, keys)"
            )
        if not isinstance(found.message, str) or not _are_keys(found.keys):
            raise UsageError(
                f"check {self.id!r} gave a Found for {where} with a message that is not text, or "
                "keys that are not a tuple of texts: write labeler.audit.Found('What is odd.', "
                "('0a', 'b'))"
            )
        return Finding(self.id, self.severity, found.message, tuple(found.keys), found.weight)


def _are_keys(keys: object) -> bool:
    """Return True for a sequence of strings; a single string would be read as its letters."""
    return isinstance(keys, (tuple, list)) and all(isinstance(key, str) for key in keys)


CHECKS: Catalog[Check] = Catalog("check", group="checks", of=Check, shown_by="labeler audit --list")


@named_keywords
def check(
    name: str,
    *,
    severity: Severity,
    version: int = 1,
    applies: AppliesFunction = _always,
    weight: float | None = None,
) -> Callable[[FindFunction], FindFunction]:
    '''Register the decorated function as a check.

    Its docstring begins with what it finds, in a few words; the rest says why this is suspicious,
    and what to do about it, in one sentence.

    Args:
        name: its id; must be free.
        severity: ``contradiction``, ``suspicion`` or ``note``.
        version: increased when its findings change for any label.
        applies: returns a true value for a :class:`Subject` that it can examine: the base of its
            rate.
        weight: evidence that a record with a finding is wrong, 0 to 1; by default as the severity.

    Returns:
        A decorator. The function takes a :class:`Subject` and yields :class:`Found`.

    Raises:
        UsageError: the name is taken, or the function has no docstring.

    Example:
        >>> @labeler.check("shouting", severity="note")
        ... def shouting(subject):
        ...     """Loud.
        ...
        ...     Capitals are rare.
        ...     """
        ...     for key, text in subject.texts.items():
        ...         if text.isupper():
        ...             yield labeler.audit.Found("All capitals.", (key,))
        >>> len(labeler.audit.audit_labels(labels, checks="shouting").ranked(1))
        0
    '''

    def register(find: FindFunction) -> FindFunction:
        known = find.__doc__ or (name if sys.flags.optimize > 1 else "")  # -OO strips docstrings
        title, _, why = cleandoc(known).partition("\n\n")
        if not title:
            raise UsageError(
                f"check {name!r}: give {find.__name__} a docstring: what it finds in a few words, "
                "an empty line, and why this is suspicious"
            )
        title, why = (" ".join(text.split()) for text in (title.removesuffix("."), why))
        strength = WEIGHTS[severity] if weight is None else weight
        CHECKS.add(name, Check(name, version, severity, title, why, strength, find, applies))
        return find

    return register


def name_some(names: Sequence[str]) -> str:
    """Return names as a list in a sentence, at most six of them."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


_NAMED = 6


def select_checks(ids: str | Iterable[str | Check] | None = None) -> tuple[Check, ...]:
    """Return the checks with the given ids, in order; by default all.

    Args:
        ids: names of the registry, ``package.module:name`` for a third party's check, or checks.
            One string may hold several ids, separated by commas.

    Raises:
        UnknownName: an id is not registered; the message names the nearest ones.
        UsageError: there is no id, or one is of another type.
    """
    if ids is None:
        return tuple(CHECKS.values())
    wanted = ids.split(",") if isinstance(ids, str) else ids
    listed = list(wanted) if isinstance(wanted, Iterable) else []
    if not listed or not all(isinstance(one, str | Check) for one in listed):
        raise UsageError(f"checks are ids such as 'citation_not_supporting', got {ids!r:.60}")
    return tuple(dict.fromkeys(map(_find, listed)))


def _find(wanted: str | Check) -> Check:
    if isinstance(wanted, Check):
        return wanted
    name = wanted.strip()
    try:
        found: object = CHECKS[name]
    except UnknownName as error:
        own = "a check of your own is named package.module:name, after the decorated function"
        raise UnknownName(f"{error}; {own}") from error
    # A third party's name may lead to any object; its decorator has registered the check.
    for known in CHECKS.values():
        if found in (known, known.find):
            return known
    raise UnknownName(f"{name!r} is not a check: decorate the function with @labeler.check(...)")


OPINION_WEIGHT = 0.4
"""Weight of an opinion that is certain of the contrary; it falls with the square of certainty."""


@named_keywords
def suspicion_score(findings: Iterable[Finding], disagreement: float = 0.0) -> float:
    """Return the suspicion score of a record, a number to rank by; it is not a probability.

    Each check with a finding counts once, as independent evidence with the check's weight:
    1 - (1 - w1)(1 - w2)... The order of findings does not matter, and another finding never lowers
    the score. A second opinion that disagrees adds evidence without a finding too.

    Args:
        findings: the findings in the record.
        disagreement: how much the second opinion disagrees, see :attr:`Subject.disagreement`.

    Returns:
        0 without findings, at most 1; rounded to 6 digits, since the last ones depend on the
        machine.
    """
    weights = {finding.check: _weight(finding) for finding in findings}
    strengths = sorted((*weights.values(), OPINION_WEIGHT * disagreement**2))
    rest = math.prod(1 - weight for weight in strengths)
    return round(1 - rest, _SCORE_DIGITS)


_SCORE_DIGITS = 6


def _weight(finding: Finding) -> float:
    if finding.weight is not None:
        return finding.weight
    # A stored finding may come from a third party's check that is not imported here.
    known = finding.check in CHECKS
    return CHECKS[finding.check].weight if known else WEIGHTS[finding.severity]
