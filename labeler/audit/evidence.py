"""Checks of a label against the texts and a second opinion.

Checks of texts compare words, numbers and negations, not meanings, with English stemming. They skip
sentences about what the documents do not say, introductions to lists, and sentences without content
words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from labeler.audit.registry import Found, Subject, check, name_some
from labeler.labels.answers import GENERAL, SPECIAL_SUPPORT, SentenceSupport
from labeler.sentences.display import plural
from labeler.sentences.example import Sentence, position
from labeler.sentences.numbers import claimed_figures, is_known
from labeler.sentences.statements import Claim, negations, read_claim
from labeler.sentences.words import SCAFFOLD, STOP_WORDS

SAME = 0.8
"""Share of common words, in both directions, from which two sentences say the same."""
STATED = 0.95
"""Share of a sentence's words from which a document sentence states it."""
FEWEST_SHARED = 2
"""Words below which a sentence need not share any."""
FEWEST_WORDS = 4
"""Words below which sentences are too short for shares of words."""
QUOTED = 5
CONTRARY = 0.75
"""Certainty of the contrary from which an opinion disagrees."""


def _has_figures(subject: Subject) -> bool:
    return any(claimed_figures(claim.text) for _, claim in subject.checkable)


@check(
    "support_shares_no_word",
    severity="suspicion",
    applies=lambda subject: subject.checkable and _one_language(subject),
)
def support_shares_no_word(subject: Subject) -> Iterator[Found]:
    """No word in common with its support.

    A sentence and what supports it mostly share a name, a number or a term; without one, the key
    may be off by a sentence or a document.
    """
    for entry, claim in subject.checkable:
        named = subject.named(entry)
        have = {word for key in named for word in subject.words(key)}
        if len(claim.words) >= FEWEST_SHARED and not _akin(claim.words, have):
            yield Found(
                "Shares no content word with the sentences that are named as its support.",
                (claim.key, *named),
            )


def _one_language(subject: Subject) -> bool:
    """Return False if the response shares no word with the documents: another language."""
    return any(claim.words & subject.everywhere for claim in subject.claims.values())


def _akin(words: Iterable[str], have: set[str]) -> bool:
    """Return True if a word, or its first letters ("activat", "activation"), is in the set."""
    begins = {word[:_BEGINNING] for word in have if len(word) >= _BEGINNING}
    return any(word in have or word[:_BEGINNING] in begins for word in words)


_BEGINNING = 4


@check("number_in_no_document", severity="suspicion", applies=_has_figures)
def number_in_no_document(subject: Subject) -> Iterator[Found]:
    """A number that no document has.

    A figure that stands in no document and not in the question was made up, worked out or misread;
    a calculation should say numerical_reasoning.
    """
    known = subject.figures(*subject.evidence) | subject.asked_figures
    for entry, claim in subject.checkable:
        strange = _missing(subject, entry, claim, known)
        if strange:
            yield Found(f"No document has {_quoted(strange)}.", (claim.key, *subject.named(entry)))


@check("number_not_in_support", severity="suspicion", applies=_has_figures, weight=0.15)
def number_not_in_support(subject: Subject) -> Iterator[Found]:
    """A number that its support does not have.

    The figure stands in some document, but not in the sentences that are named as support: a key is
    missing, or the figure belongs to something else.
    """
    everywhere = subject.figures(*subject.evidence)
    for entry, claim in subject.checkable:
        named = subject.named(entry)
        missing = _missing(subject, entry, claim, subject.figures(*named) | subject.asked_figures)
        elsewhere = [
            number
            for number in missing
            if number not in _missing(subject, entry, claim, everywhere)
        ]
        if elsewhere:
            yield Found(
                "Not in the sentences named as support, only in other document sentences: "
                f"{_quoted(elsewhere)}.",
                (claim.key, *named),
            )


def _missing(subject: Subject, entry: SentenceSupport, claim: Claim, known: set[str]) -> list[str]:
    """Return the unknown numbers of a sentence, as written; none if it was calculated."""
    if "numerical_reasoning" in entry.supporting_sentence_keys:
        return []
    figures = claimed_figures(claim.text, subject.decimal_marks)
    return [written for written, values in figures.items() if not is_known(values, known)]


def _quoted(numbers: list[str]) -> str:
    shown = ", ".join(number[:_DIGITS] for number in numbers[:QUOTED])
    return f"{shown}, …" if len(numbers) > QUOTED else shown


_DIGITS = 24


@check("negation_mismatch", severity="suspicion", applies=lambda subject: subject.checkable)
def negation_mismatch(subject: Subject) -> Iterator[Found]:
    """The same but for a negation.

    The only supporting sentence says nearly the same words, and what one of the two denies the
    other asserts: the answer may state the contrary of its source.
    """
    for entry, claim in subject.checkable:
        named = subject.named(entry)
        if len(named) > 1 or len(claim.words) < FEWEST_WORDS:
            continue
        sequence = subject.words(named[0])
        if _alike(claim.words, _content(sequence)) and _opposed(claim.sequence, sequence):
            yield Found(
                "Says nearly the same words as its support, and one of the two negates.",
                (claim.key, *named),
            )


def _opposed(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return True if one sentence negates what the other asserts, and neither is conditional."""
    if _denies(one) == _denies(other) or _CONDITIONS.intersection((*one, *other)):
        return False
    return bool(_denied(one).intersection(other) or _denied(other).intersection(one))


_CONDITIONS = frozenset(["if", "whether", "unless", "may", "might", "can", "until", "otherwise"])
_NEGATORS = frozenset(["not", "never", "cannot", "no"])


def _denied(sequence: Sequence[str]) -> set[str]:
    """Return the first content word after each negator, except for "no" as an answer."""
    found: set[str] = set()
    for place, word in enumerate(sequence):
        if not place and word == "no":
            continue
        if word in _NEGATORS or word.endswith("n't"):
            after = (w for w in sequence[place + 1 : place + _REACH] if w not in STOP_WORDS)
            found.update(islice(after, 1))
    return found


_REACH = 6


def _content(sequence: Iterable[str]) -> set[str]:
    return set(sequence) - STOP_WORDS - SCAFFOLD


def _alike(one: set[str], other: set[str]) -> bool:
    common = len(one & other)
    return common >= SAME * len(one) and common >= SAME * len(other)


def _denies(sequence: Sequence[str]) -> bool:
    return bool(negations(sequence))


@check("unsupported_but_stated", severity="suspicion", applies=lambda subject: subject.unsupported)
def unsupported_but_stated(subject: Subject) -> Iterator[Found]:
    """Not supported, though a document says it.

    A document sentence holds nearly every word of it: the judge may have overlooked that one.
    """
    for entry in subject.unsupported:
        claim = subject.claims.get(entry.response_sentence_key)
        if claim is None or len(claim.words) < FEWEST_WORDS or claim.is_meta or claim.introduces:
            continue
        stating = [key for key in subject.documents if _states(subject.words(key), claim)]
        if stating:
            yield Found(
                "Called not supported, but a document sentence has nearly every word of it.",
                (claim.key, *stating[:MOST_STATING]),
            )


MOST_STATING = 3
"""Maximum number of document sentences in a finding."""


def _states(sequence: list[str], claim: Claim) -> bool:
    if len(claim.words.intersection(sequence)) < STATED * len(claim.words):
        return False
    # A long sentence may contain the words of a short one by chance, but hardly in sequence.
    pairs = set(pairwise(claim.sequence))
    if 2 * len(pairs.intersection(pairwise(sequence))) < len(pairs):
        return False
    return _denies(sequence) == _denies(claim.sequence)


@check("wrong_citation", severity="note", applies=lambda subject: subject.cited)
def wrong_citation(subject: Subject) -> Iterator[Found]:
    """A citation of a document that does not hold the support.

    The sentence cites a document that the record lacks, or one without a sentence of its support:
    the response cites wrongly, or a key is missing.
    """
    support: dict[str, set[str]] = {}
    for entry in subject.judged:
        named = subject.document_set.intersection(subject.named(entry))
        support.setdefault(entry.response_sentence_key, set()).update(named)
    count = plural(len(subject.record.example.documents), "document")
    for key, cited in subject.cited.items():
        held = support.get(key, set())
        wrong = cited.documents - {position(one).document for one in held}
        if cited.missing:
            numbers = name_some([f"[{number}]" for number in sorted(cited.missing)])
            yield Found(f"Cites {numbers}, but the record has {count}.", (key,))
        if wrong:
            places = name_some([f"document {place}" for place in sorted(wrong)])
            lacking = "none of its support" if held else "no support: none is named"
            yield Found(f"Cites {places} with {lacking}.", (key, *subject.in_order(held)))


def _has_opinion(subject: Subject) -> bool:
    return subject.second_opinion is not None


@check("second_opinion_disagrees", severity="suspicion", applies=_has_opinion, weight=0.1)
def second_opinion_disagrees(subject: Subject) -> Iterator[Found]:
    """A second judge says the contrary.

    The embedded judge compares words and knows no paraphrase, but its errors are not a model's. The
    more it disagrees, the higher the suspicion, by up to 0.4 more.
    """
    opinion = subject.second_opinion
    supported = {entry.response_sentence_key for entry in subject.supported}
    for key, contrary in subject.disagreements.items():
        if opinion and contrary >= CONTRARY:
            verdict = "not supported" if key in supported else "supported"
            likely = opinion.support[key]
            yield Found(
                f"Probably {verdict}: the second opinion gives its support {likely:.2f}.", (key,)
            )


@check("general_makes_a_claim", severity="suspicion", applies=_has_opinion)
def general_makes_a_claim(subject: Subject) -> Iterator[Found]:
    """Called general, though it makes a claim.

    A general sentence needs no support because it claims nothing; this one has content that
    documents could support or contradict.
    """
    for entry in subject.supported:
        key = entry.response_sentence_key
        claim = subject.claims.get(key)
        if entry.supporting_sentence_keys != (GENERAL,) or claim is None:
            continue
        remark = claim.is_meta or claim.introduces or len(claim.words) < FEWEST_WORDS
        if not remark and subject.second_opinion and key not in subject.second_opinion.general:
            yield Found("Called general, but has content that documents could support.", (key,))


FEWEST_CLAIM_WORDS = 2
"""Words below which a claim is not compared with the response."""


@check(
    "claim_support_not_listed",
    severity="suspicion",
    applies=lambda subject: subject.response_claims,
    weight=0.1,
)
def claim_support_not_listed(subject: Subject) -> Iterator[Found]:
    """A claim's support is missing from its sentence.

    What supports a claim supports the sentence that makes it; the two lists were written apart, and
    one has a gap.
    """
    listed = {
        entry.response_sentence_key: set(entry.supporting_sentence_keys)
        for entry in subject.supported
    }
    missing: defaultdict[str, set[str]] = defaultdict(set)
    for claim in subject.response_claims:
        if claim.response_sentence_key in listed and claim.verdict == "entailment":
            named = set(claim.supporting_sentence_keys).difference(SPECIAL_SUPPORT)
            missing[claim.response_sentence_key] |= named - listed[claim.response_sentence_key]
    for key, keys in missing.items():
        if keys:
            yield Found(
                "Claims of the sentence are supported by sentences that its own list lacks.",
                (key, *subject.in_order(keys)),
            )


@check(
    "reference_claim_not_in_response",
    severity="suspicion",
    applies=lambda subject: subject.reference_claims,
)
def reference_claim_not_in_response(subject: Subject) -> Iterator[Found]:
    """A reference claim found where no word of it stands.

    The response is said to make this claim of the reference answer, and shares no content word with
    it; recall counts it as found.
    """
    said = {word for claim in subject.claims.values() for word in claim.content}
    for claim in subject.reference_claims:
        text = claim.claim
        words = read_claim(Sentence(key="", text=text, start=0, end=len(text))).words
        found = claim.response_verdict == "entailment"
        if found and len(words) >= FEWEST_CLAIM_WORDS and words.isdisjoint(said):
            yield Found(
                "The response is said to make a claim that it shares no content word with.",
                (claim.reference_sentence_key,),
            )
