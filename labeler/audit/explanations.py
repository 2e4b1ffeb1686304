"""Checks of a judge's explanations against its verdicts.

Explanations are untrusted: the model that wrote them read third parties' texts. They are compared
with the label, never followed. Stances are recognized in English only; see
:mod:`labeler.audit.stances`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from labeler.audit.mentions import named_keys, unknown_keys
from labeler.audit.registry import Found, check, name_some
from labeler.audit.stances import LONGEST, affirms, calls_wrong, denies
from labeler.audit.subject import Subject
from labeler.labels.answers import SentenceSupport
from labeler.sentences.characters import visible
from labeler.sentences.statements import negations
from labeler.sentences.words import surface_words

FEWEST_COPIES = 3
"""Sentences with equal explanations from which they count as copied."""


def _has_verdicts(subject: Subject) -> bool:
    return bool(subject.judged)


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
    applies=lambda subject: bool(subject.supported),
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
    applies=lambda subject: bool(subject.unsupported),
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
    applies=_has_verdicts,
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
    applies=lambda subject: len(subject.judged) >= FEWEST_COPIES,
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
    applies=lambda subject: bool(subject.supported and subject.unsupported),
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
    for entry in subject.judged:
        words = " ".join(entry.explanation.casefold().split())
        if words:
            found[words].append(entry)
    return found


@check(
    "explanation_repeats_sentence",
    severity="suspicion",
    title="Explanation merely repeats the sentence",
    why="Who repeats what was said has not held it against the documents.",
    applies=_has_verdicts,
    weight=0.1,
)
def explanation_repeats_sentence(subject: Subject) -> Iterator[Found]:
    """Find explanations with the words of the sentence alone."""
    for entry in subject.judged:
        words = surface_words(entry.explanation[:LONGEST])
        text = subject.texts.get(entry.response_sentence_key, "")
        if words and words == surface_words(text):
            yield Found(
                "The explanation repeats the sentence and says nothing of its support.",
                (entry.response_sentence_key,),
            )


@check(
    "explanation_empty",
    severity="note",
    title="No explanation",
    why="Nobody can see why the judge decided as it did, and a judge that reasons decides better.",
    applies=lambda subject: _has_verdicts(subject) and not subject.record.lacks_explanations,
)
def explanation_empty(subject: Subject) -> Iterator[Found]:
    """Find explanations without a letter or digit."""
    empty = [
        entry.response_sentence_key
        for entry in subject.judged
        if not any(char.isalnum() for char in entry.explanation)
    ]
    if empty:
        yield Found("There is no explanation.", tuple(empty))


_ADDRESSES = re.compile(
    r"\b(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget)\s+(?:\w+\s+){0,2}?"
    r"(?:previous|prior|earlier|above|preceding|your|system)\s+(?:\w+\s+)?"
    r"(?:instructions?|prompts?|rules?|messages?|orders?)"
    r"|\b(?:my|your|the|a)\s+system\s+prompt\b"
    r"|\bas\s+(?:instructed|ordered|told|commanded|requested)\s+by\s+(?:the\s+)?(?:document|text"
    r"|context|response|passage|note|user)s?\b(?!\s\d)"
    r"|\bi\s+(?:am|was|have\s+been)\s+(?:instructed|ordered|told|commanded|asked)\b"
    r"|\b(?:document|text|context|response|passage|note|sentence)(?:\s\w+)?\s+"
    r"(?:instructs|orders|tells|commands|asks)\s+(?:me|the\s+(?:judge|evaluator|grader|annotator"
    r"|model|assistant|reader\s+to\s+(?:rate|mark|label|score)))\b"
    r"|\bas\s+an?\s+(?:ai|large)\s+(?:language\s+)?model\b"
    r"|\b(?:dear|attention|note\s+to(?:\s+the)?)\s+(?:judge|evaluator|grader|annotator|assistant)\b",
    re.IGNORECASE,
)
_CUES = (
    *("ignor", "disregard", "forget", "system", "instruct", "order", "told", "tells", "command"),
    *("request", "asks", "asked", "as a", "dear", "attention", "note to"),
)
_MARKS = ("<", "](", "[", "javascript", "```")
"""Every match of the patterns contains one of these; most texts contain none."""
_MARKUP = re.compile(
    r"<\s?/?\s?(?:script|img|iframe|a\s|div|span|svg|style|html|body|object|form|input|system|user"
    r"|assistant|instructions?)\b|<\|[^|>]{1,40}\|>|\[/?(?:INST|SYS)\]|!\[[^\]]{0,200}\]\("
    r"|\]\(\s?https?:|javascript:|```",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'()\[\]]{3,200}", re.IGNORECASE)


@check(
    "explanation_obeys",
    severity="suspicion",
    title="Explanation speaks of instructions, or holds mark-up or an address",
    why=(
        "A judge that repeats orders, mark-up or links may have followed what a document or an "
        "answer ordered: read the texts before trusting the label."
    ),
    weight=0.4,
)
def explanation_obeys(subject: Subject) -> Iterator[Found]:
    """Examine every explanation; addresses that the texts contain are allowed."""
    for key, text in _explanations(subject):
        lower = text.lower()
        if any(cue in lower for cue in _CUES) and _ADDRESSES.search(lower):
            yield Found("The explanation speaks of instructions to the judge.", key)
        elif any(mark in lower for mark in _MARKS) and _MARKUP.search(lower):
            yield Found("The explanation holds mark-up.", key)
        elif "://" in lower and any(
            found not in _all_text(subject) for found in _ADDRESS.findall(text)
        ):
            yield Found("The explanation holds an address that no text holds.", key)


@check(
    "explanation_unsafe_characters",
    severity="suspicion",
    title="Explanation with control, direction or invisible characters",
    why=(
        "No judge writes such characters by itself: they come from a text that it read, or hide "
        "something from readers of the explanation."
    ),
)
def explanation_unsafe_characters(subject: Subject) -> Iterator[Found]:
    """Examine every explanation."""
    for key, text in _explanations(subject):
        if text.isprintable() and text.isascii():
            continue
        plain = text.replace("\r", "")
        if visible(plain) != plain:
            yield Found("The explanation holds characters that cannot be seen.", key)


def _explanations(subject: Subject) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield every explanation with the key of its response sentence, if any."""
    label = subject.label
    yield (), label.relevance_explanation[:LONGEST]
    yield (), label.overall_supported_explanation[:LONGEST]
    for entry in subject.judged:
        yield (entry.response_sentence_key,), entry.explanation[:LONGEST]


def _all_text(subject: Subject) -> str:
    return "\n".join((subject.record.example.question, *subject.texts.values()))
