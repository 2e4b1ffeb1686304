"""Checks of a judge's explanations against its verdicts.

Explanations are untrusted: the model that wrote them read third parties' texts. They are compared
with the label, never followed. Stances are recognized in English only; see
:mod:`labeler.audit.stances`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from labeler.audit.registry import Found, check, name_some
from labeler.audit.stances import LONGEST, affirms, calls_wrong, denies
from labeler.audit.subject import Subject
from labeler.labels.answers import SentenceSupport
from labeler.sentences.keys import index_of, letters
from labeler.sentences.statements import negations

FEWEST_COPIES = 3
"""Sentences with equal explanations from which they count as copied."""


def _explained(entries: Iterable[SentenceSupport]) -> list[SentenceSupport]:
    """Return verdicts with an explanation; judges that answer in probabilities write none."""
    return [entry for entry in entries if entry.explanation.strip()]


def _denies_itself(subject: Subject, entry: SentenceSupport) -> bool:
    """Return True if a response sentence itself denies; its explanation may then deny too."""
    claim = subject.claims.get(entry.response_sentence_key)
    return claim is None or claim.is_meta or bool(negations(claim.sequence))


@check(
    "explanation_denies",
    severity="contradiction",
    title="Called supported, explained as not supported",
    why=(
        "The flag is true where every claim is supported, and the explanation ends by saying that "
        "something is not, or only in part; the explanation is mostly the better witness."
    ),
    applies=lambda subject: bool(_explained(subject.supported)),
)
def explanation_denies(subject: Subject) -> Iterator[Found]:
    """Find explanations of supported sentences that deny support."""
    for entry in subject.supported:
        if _denies_itself(subject, entry):
            continue
        # Explanations of special strings rightly say that no document supports the sentence.
        denied = (
            denies(entry.explanation) if subject.named(entry) else calls_wrong(entry.explanation)
        )
        if denied:
            yield Found(
                "Called fully supported, but the explanation says that it is not, or not wholly.",
                (entry.response_sentence_key, *subject.named(entry)),
            )


@check(
    "explanation_affirms",
    severity="contradiction",
    title="Called not supported, explained as supported",
    why=(
        "The flag is false, and the explanation says without reserve that documents support the "
        "sentence: one of the two is a slip."
    ),
    applies=lambda subject: bool(_explained(subject.unsupported)),
)
def explanation_affirms(subject: Subject) -> Iterator[Found]:
    """Find explanations of unsupported sentences that affirm support."""
    for entry in subject.unsupported:
        if affirms(entry.explanation):
            yield Found(
                "Called not supported, but the explanation says that it is.",
                (entry.response_sentence_key,),
            )


@check(
    "overall_explanation_against_verdict",
    severity="suspicion",
    title="Overall explanation against the overall verdict",
    why=(
        "The words on the whole response come to another end than the flag; longer texts weigh one "
        "sentence against another, so read them."
    ),
    applies=lambda subject: bool(subject.label.overall_supported_explanation.strip()),
)
def overall_explanation_against_verdict(subject: Subject) -> Iterator[Found]:
    """Compare both; skip responses about what the documents do not say."""
    label = subject.label
    said = label.overall_supported_explanation
    silent = any(claim.is_meta for claim in subject.claims.values())
    if label.overall_supported and not silent and denies(said):
        yield Found("Called supported as a whole, but the explanation says that part of it is not.")
    if not label.overall_supported and affirms(said):
        yield Found("Called unsupported as a whole, but the explanation says that it is supported.")


def _explained_keys(subject: Subject, entry: SentenceSupport) -> set[str]:
    """Return the sentences in the explanation of a sentence whose support names sentences."""
    if not entry.fully_supported or not subject.named(entry):
        return set()
    sentence = subject.texts.get(entry.response_sentence_key, "")
    return named_keys(entry.explanation[:LONGEST], subject.evidence, sentence)


def _explains_by_keys(subject: Subject) -> bool:
    return any(_explained_keys(subject, entry) for entry in subject.judged)


@check(
    "explanation_names_other_keys",
    severity="suspicion",
    title="Explanation names none of the listed sentences",
    why=(
        "The explanation rests on other document sentences than the list next to it; metrics count "
        "the list."
    ),
    applies=_explains_by_keys,
)
def explanation_names_other_keys(subject: Subject) -> Iterator[Found]:
    """Find explanations that name none of the listed sentences."""
    for entry in subject.judged:
        said = _explained_keys(subject, entry)
        if said and said.isdisjoint(subject.named(entry)):
            keys = subject.in_order(said)
            yield Found(
                f"The explanation names {name_some(keys)} and none of the sentences listed as "
                "support.",
                (entry.response_sentence_key, *subject.in_order((*said, *subject.named(entry)))),
            )


@check(
    "explanation_names_more_keys",
    severity="note",
    title="Explanation names sentences that are not listed",
    why=(
        "Besides some that are listed, the explanation names others: the list may be short, and "
        "utilization with it."
    ),
    applies=_explains_by_keys,
)
def explanation_names_more_keys(subject: Subject) -> Iterator[Found]:
    """Find explanations that name listed sentences and others."""
    for entry in subject.judged:
        said = _explained_keys(subject, entry)
        more = subject.in_order(said.difference(subject.named(entry)))
        if more and not said.isdisjoint(subject.named(entry)):
            yield Found(
                f"The explanation names {name_some(more)} too, which the list does not.",
                (entry.response_sentence_key, *more),
            )


@check(
    "explanation_names_unknown_key",
    severity="suspicion",
    title="Explanation names a sentence that does not exist",
    why="A key that was never shown means that the judge lost track of the sentences.",
    applies=lambda subject: bool(_explained(subject.judged)),
)
def explanation_names_unknown_key(subject: Subject) -> Iterator[Found]:
    """Find keys without a sentence."""
    for entry in subject.judged:
        strange = unknown_keys(entry.explanation[:LONGEST], subject.texts)
        if strange:
            yield Found(
                f"The explanation names {name_some(tuple(strange))}, which is no sentence here.",
                (entry.response_sentence_key,),
            )


@check(
    "explanation_copied",
    severity="suspicion",
    title="One explanation for several sentences",
    why=(
        "The same words for three or more sentences with different support were not "
        "written by looking at each."
    ),
    applies=lambda subject: len(_explained(subject.judged)) >= FEWEST_COPIES,
    weight=0.1,
)
def explanation_copied(subject: Subject) -> Iterator[Found]:
    """Find equal explanations of sentences with different support."""
    for entries in _by_words(subject).values():
        lists = {frozenset(subject.named(entry)) for entry in entries if subject.named(entry)}
        if len(entries) >= FEWEST_COPIES and len(lists) > 1:
            yield Found(
                f"{len(entries)} sentences with different support have the same explanation.",
                tuple(entry.response_sentence_key for entry in entries),
            )


@check(
    "explanation_for_both_verdicts",
    severity="contradiction",
    title="One explanation for yes and no",
    why="The same words explain a supported sentence and an unsupported one.",
    applies=lambda subject: bool(_explained(subject.supported) and _explained(subject.unsupported)),
    weight=0.3,
)
def explanation_for_both_verdicts(subject: Subject) -> Iterator[Found]:
    """Find equal explanations of different verdicts."""
    for entries in _by_words(subject).values():
        if len({entry.fully_supported for entry in entries}) > 1:
            yield Found(
                "A supported and an unsupported sentence have the same explanation.",
                tuple(entry.response_sentence_key for entry in entries),
            )


def _by_words(subject: Subject) -> dict[str, list[SentenceSupport]]:
    """Group the verdicts by the words of their explanation; skip empty ones."""
    found: defaultdict[str, list[SentenceSupport]] = defaultdict(list)
    for entry in _explained(subject.judged):
        found[" ".join(entry.explanation.casefold().split())].append(entry)
    return found


# Sentence keys that an explanation names.

_KEY = r"(?P<{0}>\d{{1,4}}[a-z]{{1,3}})"
_RANGE = re.compile(
    rf"(?<![\w.])['\"\[(]?{_KEY.format('first')}['\"\])]?\s?(?:-|\u2013|\u2014|to|through|until)\s?"
    rf"['\"\[(]?{_KEY.format('last')}\b",
    re.IGNORECASE,
)
_MENTION = re.compile(
    r"(?<![\w.,$\u20ac\u00a3-])(?P<key>[ht]?\d{1,4}[a-z]{1,3})(?![\w%])", re.IGNORECASE
)
_APART = re.compile(
    r"\bdoc(?:ument)?\s(?P<document>\d{1,4})\W{1,3}(?:in\s)?sentences?\s['\"(\[]?"
    r"(?P<letters>[a-z]{1,2})(?=['\")\],.;:])",
    re.IGNORECASE,
)
# Keys by their context, known or not.
_SURELY = re.compile(
    r"(?:\bsentences?\s['\"(\[]?|[\[])(?P<key>\d{1,4}[a-z]{1,3})(?=['\")\],.;: ]|$)", re.IGNORECASE
)
_NO_KEY = re.compile(
    r"\d+(?:st|nd|rd|th|mm|cm|km|kg|mg|ml|oz|lb|lbs|ft|gb|mb|tb|hz|am|pm|yrs?)", re.IGNORECASE
)


_AROUND = ".,;:!?()[]{}'\""


def named_keys(explanation: str, known: Collection[str], sentence: str = "") -> set[str]:
    """Return the sentences that an explanation names, as ``0a``, ``[1B]``, ``0b-0e``, ``h0a``.

    Args:
        explanation: the judge's text.
        known: keys of the existing sentences, unlike "4k" and "2nd".
        sentence: the explained sentence; its words are no keys: "the 3a protein".
    """
    found = {m["key"].lower() for m in _MENTION.finditer(explanation)}
    found.update(
        f"{int(m['document'])}{m['letters'].lower()}" for m in _APART.finditer(explanation)
    )
    for match in _RANGE.finditer(explanation):
        found.update(_between(match["first"].lower(), match["last"].lower()))
    words = {word.strip(_AROUND) for word in sentence.lower().split()} if found else set()
    return found.intersection(known) - words


def unknown_keys(explanation: str, known: Collection[str]) -> list[str]:
    """Return keys, recognized by their context, that name no sentence; in order."""
    named = dict.fromkeys(m["key"].lower() for m in _SURELY.finditer(explanation))
    return [key for key in named if key not in known and not _NO_KEY.fullmatch(key)]


def _between(first: str, last: str) -> Iterator[str]:
    """Yield the keys of a range within one document."""
    start, end = _parts(first), _parts(last)
    if start[0] == end[0]:
        for sentence in range(start[1], min(end[1], start[1] + LONGEST_RANGE) + 1):
            yield f"{start[0]}{letters(sentence)}"


LONGEST_RANGE = 200
"""Maximum number of sentences in a range."""


def _parts(key: str) -> tuple[int, int]:
    digits = key.rstrip("abcdefghijklmnopqrstuvwxyz")
    return int(digits), index_of(key[len(digits) :])
