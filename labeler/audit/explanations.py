"""Checks of a judge's explanations against its verdicts.

Explanations are untrusted: the model that wrote them read third parties' texts. They are compared
with the label, never followed. Stances are recognized in English only, see ``explanations.toml``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from labeler.audit.registry import Found, Subject, check, name_some
from labeler.labels.answers import SentenceSupport
from labeler.sentences.example import index_of, letters
from labeler.sentences.statements import negations
from labeler.sentences.words import read_patterns

Stance = Literal["denies", "affirms"]

LONGEST = 20_000
"""Maximum characters of an explanation that are read."""

FARTHEST = 160
"""Characters before a statement in which a negation may reverse it."""
_WORDING = read_patterns(__file__, "explanations")


def denies(explanation: str) -> bool:
    """Return True if an explanation concludes that something is not, or not fully, supported."""
    lower = _lower(explanation)
    if not _WORDING["cues"].search(lower):  # most texts; the other patterns are slow
        return False
    text = _plain(lower)
    if _claims(_WORDING["partly"], text):
        return True
    return _stances(text)[-1:] == ["denies"]


def affirms(explanation: str) -> bool:
    """Return True if an explanation calls something supported without hedging."""
    text = _plain(_lower(explanation))
    return not _WORDING["hedged"].search(text) and _stances(text)[-1:] == ["affirms"]


def calls_wrong(explanation: str) -> bool:
    """Return True if an explanation calls something false or contrary to the documents."""
    lower = _lower(explanation)
    if not _WORDING["cues"].search(lower):
        return False
    return any(
        _claims(_WORDING["contradicts"], clause.strip())
        for clause in _WORDING["joint"].split(_plain(lower))
    )


def _stances(text: str) -> list[Stance]:
    """Return the stances of the clauses, in order."""
    stances = (_clause_stance(clause.strip()) for clause in _WORDING["joint"].split(text))
    return [stance for stance in stances if stance]


def _lower(explanation: str) -> str:
    """Return the start of an explanation in lower case, on one line, with plain apostrophes."""
    text = explanation[:LONGEST].lower().replace("\u2019", "'").replace("\u2018", "'")
    return " ".join(text.split())


def _plain(lower: str) -> str:
    """Remove quotations and concessions."""
    return _WORDING["conceded"].sub(" ", _WORDING["quoted"].sub(" it ", lower))


def _clause_stance(clause: str) -> Stance | None:
    if _claims(_WORDING["contradicts"], clause) or _claims(_WORDING["denies"], clause):
        return "denies"
    return "affirms" if _claims(_WORDING["affirms"], clause) else None


def _claims(pattern: re.Pattern[str], clause: str) -> bool:
    """Return True if a pattern matches without a negation before it."""
    before = (clause[max(0, m.start() - FARTHEST) : m.start()] for m in pattern.finditer(clause))
    return any(not _WORDING["undone"].search(words) for words in before)


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
    applies=lambda subject: bool(_explained(subject.supported)),
)
def explanation_denies(subject: Subject) -> Iterator[Found]:
    """Called supported, explained as not supported.

    The flag is true where every claim is supported, and the explanation ends by saying that
    something is not, or only in part; the explanation is mostly the better witness.
    """
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
    applies=lambda subject: bool(_explained(subject.unsupported)),
)
def explanation_affirms(subject: Subject) -> Iterator[Found]:
    """Called not supported, explained as supported.

    The flag is false, and the explanation says without reserve that documents support the sentence:
    one of the two is a slip.
    """
    for entry in subject.unsupported:
        if affirms(entry.explanation):
            yield Found(
                "Called not supported, but the explanation says that it is.",
                (entry.response_sentence_key,),
            )


@check(
    "overall_explanation_against_verdict",
    severity="suspicion",
    applies=lambda subject: bool(subject.label.overall_supported_explanation.strip()),
)
def overall_explanation_against_verdict(subject: Subject) -> Iterator[Found]:
    """Overall explanation against the overall verdict.

    The words on the whole response come to another end than the flag; longer texts weigh one
    sentence against another, so read them.
    """
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


@check("explanation_names_other_keys", severity="suspicion", applies=_explains_by_keys)
def explanation_names_other_keys(subject: Subject) -> Iterator[Found]:
    """Explanation names none of the listed sentences.

    The explanation rests on other document sentences than the list next to it; metrics count the
    list.
    """
    for entry in subject.judged:
        said = _explained_keys(subject, entry)
        if said and said.isdisjoint(subject.named(entry)):
            keys = subject.in_order(said)
            yield Found(
                f"The explanation names {name_some(keys)} and none of the sentences listed as "
                "support.",
                (entry.response_sentence_key, *subject.in_order((*said, *subject.named(entry)))),
            )


@check("explanation_names_more_keys", severity="note", applies=_explains_by_keys)
def explanation_names_more_keys(subject: Subject) -> Iterator[Found]:
    """Explanation names sentences that are not listed.

    Besides some that are listed, the explanation names others: the list may be short, and
    utilization with it.
    """
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
    applies=lambda subject: bool(_explained(subject.judged)),
)
def explanation_names_unknown_key(subject: Subject) -> Iterator[Found]:
    """Explanation names a sentence that does not exist.

    A key that was never shown means that the judge lost track of the sentences.
    """
    for entry in subject.judged:
        strange = unknown_keys(entry.explanation[:LONGEST], subject.texts)
        if strange:
            are = "is not a sentence" if len(strange) == 1 else "are not sentences"
            yield Found(
                f"The explanation names {name_some(strange)}, which {are} here.",
                (entry.response_sentence_key,),
            )


@check(
    "explanation_copied",
    severity="suspicion",
    applies=lambda subject: len(_explained(subject.judged)) >= FEWEST_COPIES,
    weight=0.1,
)
def explanation_copied(subject: Subject) -> Iterator[Found]:
    """One explanation for several sentences.

    The same words for three or more sentences with different support were not written by looking at
    each.
    """
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
    applies=lambda subject: bool(_explained(subject.supported) and _explained(subject.unsupported)),
    weight=0.3,
)
def explanation_for_both_verdicts(subject: Subject) -> Iterator[Found]:
    """One explanation for yes and no.

    The same words explain a supported sentence and an unsupported one.
    """
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


_AROUND = ".,;:!?()[]{}'\""


def named_keys(explanation: str, known: Collection[str], sentence: str = "") -> set[str]:
    """Return the sentences that an explanation names, as ``0a``, ``[1B]``, ``0b-0e``, ``h0a``.

    Args:
        explanation: the judge's text.
        known: keys of the existing sentences, unlike "4k" and "2nd".
        sentence: the explained sentence; its words are not keys: "the 3a protein".
    """
    found = {m["key"].lower() for m in _WORDING["mention"].finditer(explanation)}
    found.update(
        f"{int(m['document'])}{m['letters'].lower()}"
        for m in _WORDING["apart"].finditer(explanation)
    )
    for match in _WORDING["range"].finditer(explanation):
        found.update(_between(match["first"].lower(), match["last"].lower()))
    words = {word.strip(_AROUND) for word in sentence.lower().split()} if found else set()
    return found.intersection(known) - words


def unknown_keys(explanation: str, known: Collection[str]) -> list[str]:
    """Return keys, recognized by their context, that name no sentence; in order."""
    named = dict.fromkeys(m["key"].lower() for m in _WORDING["surely"].finditer(explanation))
    return [key for key in named if key not in known and not _WORDING["no_key"].fullmatch(key)]


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
