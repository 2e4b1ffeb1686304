"""Checks of a judge's explanations against its verdicts.

Explanations are untrusted: the model that wrote them read third parties' texts. They are compared
with the label, never followed. Stances are recognized in English only; see
:mod:`labeler.audit.explanations`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Literal

from labeler.audit.registry import Found, Subject, check, name_some
from labeler.labels.answers import SentenceSupport
from labeler.sentences.keys import index_of, letters
from labeler.sentences.statements import negations

Stance = Literal["denies", "affirms"]

LONGEST = 20_000
"""Maximum characters of an explanation that are read."""

FARTHEST = 160
"""Characters before a statement in which a negation may reverse it."""

_QUOTED = re.compile(
    r"\"[^\"]{0,400}\"|\u201c[^\u201d]{0,400}\u201d|\u00ab[^\u00bb]{0,400}\u00bb"
    r"|(?<![\w'])'(?=\w)[^'\n]{0,200}(?:'(?=\w)[^'\n]{0,200}){0,3}'(?!\w)"
)
_CONCEDED = re.compile(
    r"\b(?:although|though|while|whilst|even if|despite|albeit)\b[^,;.]{0,300}(?:,(?!\s+and\b)|$)",
    re.MULTILINE,
)
_JOINT = re.compile(
    r"[.;!?](?:\s|$)|\b(?:but|however|nevertheless|nonetheless|yet|whereas|hence|thus|therefore)\b"
)

_PART = (
    r"(?:sentences?|claims?|statements?|steps?|details?|parts?|assertions?|responses?|answers?"
    r"|recommendations?|advice|instructions?|suggestions?|conclusions?|it|this|that|which|they)"
)
_SOURCE = (
    r"(?:(?:any|the|a|an|either|these|those|this|our|all)\s+)?"
    r"(?:(?:other|specific|given|provided|available|particular|retrieved|source|of|the)\s+){0,3}"
    r"(?:documents?|sentences?|contexts?|passages?|texts?|sources?|evidence|information)"
)
_ABOUT = r"(?:about|of|on|regarding|concerning|for|in)\s+(?:[\w'-]+\s+){1,6}?"
_BE = r"(?:is|are|was|were|be|been|being|seems?|appears?|remains?|stays?)"
_NOT = (
    r"(?:(?:not|never)(?!\s+(?:only|just|merely|simply|un))|(?:is|are|was|were|do|does|did|has)n't)"
)
_FULLY = (
    r"(?:fully|entirely|wholly|completely|actually|really|clearly|well|adequately|sufficiently"
    r"|at\s+all|itself|further|independently|otherwise|be|been)"
)
_BACKED = r"(?:supported|backed(?:\s+up)?|corroborated|substantiated|grounded|borne\s+out|verified)"
_SAYS = r"(?:supports?|confirms?|states?|mentions?|verif(?:y|ies)|corroborates?)"
_WRONG = (
    r"(?:inaccurate|incorrect|wrong|erroneous|false|untrue|misleading|fabricated|hallucinated"
    r"|unfounded|unsubstantiated|unverified|unsupported|a\s+hallucination)"
)
_WRONGLY = r"(?:inaccurately|incorrectly|wrongly|erroneously|falsely|mistakenly|misleadingly)"
_CLAIMS = r"(?:stat|claim|suggest|impl|describ|assert|report|attribut|mention|list|giv|says?|said)"

_CONTRADICTS = re.compile(
    rf"\bcontradict(?:s|ed\s+by|ory\s+to)\s+{_SOURCE}"
    rf"|\b{_PART}\s+(?:directly\s+|clearly\s+)?contradicts\b"
    rf"|\b(?:is|are|was|were)\s+(?:\w+ly\s+)?contradicted\b"
    rf"|\b(?:conflicts?|at\s+odds|inconsistent)\s+with\s+{_SOURCE}"
    rf"|\b{_PART}\s+(?:\w+\s+){{0,2}}?(?:is|are|was|were)\s+(?:\w+ly\s+)?{_WRONG}\b"
    rf"|^\W*{_WRONG}\b(?=\s*[,:.]|\s*$|\s+as\b|\s+because\b|\s+since\b)"
    rf"|\b{_WRONGLY}\s+{_CLAIMS}",
)
_DENIES = re.compile(
    rf"^\W*(?:{_NOT}\s+)(?:{_FULLY}\s+)?{_BACKED}\b"
    rf"|\b{_NOT}\s+(?:{_FULLY}\s+){{0,2}}{_BACKED}\s+(?:by|in|with|from)\s+{_SOURCE}\b"
    rf"|\b{_PART}\s+(?:{_ABOUT}|\w+\s+)?(?:{_BE}\s+{_NOT}|(?:is|are|was|were)n't|cannot\s+be|can't\s+be"
    rf"|can\s+not\s+be)\s+(?:{_FULLY}\s+){{0,2}}{_BACKED}\b"
    rf"|^\W*unsupported\b(?!\s+\w+s?\s+(?:is|are)\b)|\b{_PART}\s+(?:{_ABOUT}|\w+\s+)?{_BE}\s+"
    rf"(?:(?!not\b)\w+\s+)?unsupported\b|\bunsupported\s+(?:by\s+{_SOURCE}|claims?|statements?|assertions?)"
    rf"|\b(?:none\s+of\s+{_SOURCE}|no(?:ne|thing)?\s+(?:in\s+)?(?:other\s+)?{_SOURCE})"
    rf"(?:\s+\w+ly)?\s+(?:{_SAYS})\b"
    rf"|\b(?:documents?|sentences?|contexts?|passages?|sources?)(?:\s+\d+\w{{0,2}})?\s+(?:do|does|did)"
    rf"(?:\s+not|n't)\s+(?:actually\s+)?(?:support|confirm|corroborate|verify|substantiate)\b"
    rf"|\b(?:lacks?|lacking|without|has\s+no|have\s+no|there\s+is\s+no|finds?\s+no)\s+(?:any\s+)?"
    rf"(?:support|evidence|basis|substantiation)\b"
    rf"|\b(?:cannot|can't|could\s+not|couldn't)\s+be\s+(?:verified|confirmed|supported|found\s+in)\b",
)
_PARTLY = re.compile(
    r"(?<!\band )\b(?:partially|partly|only\s+\w+ly|in\s+part|not\s+(?:\w+ly\s+)?(?:fully|entirely"
    r"|wholly|completely))\s+(?:un)?(?:supported|accurate|correct|backed|grounded)\b"
    r"|(?<!\d )(?<!and )(?<!provides )(?<!offers )\bpartial(?:ly)?\s+support(?:s|ed)?\b"
    r"|\bsupport(?:s|ed)\s+(?:only\s+)?(?:partially|partly|in\s+part)\b",
)
_AFFIRMS = re.compile(
    r"^\W*(?:(?:fully|directly|well|clearly|strongly|explicitly|correctly|accurately|also)[\s-]+)?"
    r"(?:supported|corroborated|confirmed|accurate|correct)\b"
    r"|\b(?:is|are|was|were)\s+(?:(?:also|all|both|\w+ly|well)[\s-]+){0,2}"
    r"(?:supported|corroborated|confirmed|backed|substantiated|stated|mentioned|found)\s+"
    r"(?:up\s+)?(?:by|in|across)\b"
    r"|\b(?:directly|fully|clearly|well)[\s-]supported\b"
    r"|\b(?:documents?|sentences?|contexts?|passages?)\b[^.;]{0,40}?\b(?:supports?|confirms?"
    r"|corroborates?)\s+(?:this|the\s+(?:claim|sentence|statement)|it)\b",
)
_CUES = (
    *("not ", "n't", "never", "no ", "none", "nothing", "without", "lack", "cannot"),
    *("unsupported", "partial", "partly", "in part", "only ", "contradict", "conflict", "at odds"),
    *("inconsistent", "inaccura", "incorrect", "wrong", "erroneous", "false", "untrue", "mislead"),
    *("fabricat", "hallucinat", "unfounded", "unsubstantiated", "unverified", "mistaken"),
)
"""Every denial contains one of these."""
_UNDONE = re.compile(
    r"(?:\b(?:no|not|never|neither|nor|nothing|none|without|cannot|hardly|isn't|doesn't|don't"
    r"|didn't|aren't|wasn't)|n't)\s+(?:\w+\s+){0,3}$"
    r"|\b(?:no|nothing|none|without|(?:not|n't)\s+(?:\w+\s+)?any)\s+(?:[\w,/-]+\s+){0,8}$"
)
"""Negations that reverse the following words: "nothing contradicts the documents"."""
_HEDGED = re.compile(
    r"\b(?:partial|partly|mostly|largely|indirect|implicit|impli|general|loose|broad|somewhat"
    r"|not|no|nor|none|cannot|lack|without|except|only|unclear|assum|infer|neither|never|however"
    r"|but|although|though|while|irrelevant|erroneous|inaccura|incorrect|contradict|unsupported"
    r"|missing|omit|fail|beyond|instead|rather|different|misle|specul|too)\w*|n't",
)


def denies(explanation: str) -> bool:
    """Return True if an explanation concludes that something is not, or not fully, supported."""
    lower = _lower(explanation)
    if not any(cue in lower for cue in _CUES):  # most texts; the patterns below are slow
        return False
    text = _plain(lower)
    if _claims(_PARTLY, text):
        return True
    return _stances(text)[-1:] == ["denies"]


def affirms(explanation: str) -> bool:
    """Return True if an explanation calls something supported without hedging."""
    text = _plain(_lower(explanation))
    return not _HEDGED.search(text) and _stances(text)[-1:] == ["affirms"]


def calls_wrong(explanation: str) -> bool:
    """Return True if an explanation calls something false or contrary to the documents."""
    lower = _lower(explanation)
    if not any(cue in lower for cue in _CUES):
        return False
    return any(_claims(_CONTRADICTS, clause.strip()) for clause in _JOINT.split(_plain(lower)))


def _stances(text: str) -> list[Stance]:
    """Return the stances of the clauses, in order."""
    stances = (_clause_stance(clause.strip()) for clause in _JOINT.split(text))
    return [stance for stance in stances if stance]


def _lower(explanation: str) -> str:
    """Return the start of an explanation in lower case, on one line, with plain apostrophes."""
    text = explanation[:LONGEST].lower().replace("\u2019", "'").replace("\u2018", "'")
    return " ".join(text.split())


def _plain(lower: str) -> str:
    """Remove quotations and concessions."""
    return _CONCEDED.sub(" ", _QUOTED.sub(" it ", lower))


def _clause_stance(clause: str) -> Stance | None:
    if _claims(_CONTRADICTS, clause) or _claims(_DENIES, clause):
        return "denies"
    return "affirms" if _claims(_AFFIRMS, clause) else None


def _claims(pattern: re.Pattern[str], clause: str) -> bool:
    """Return True if a pattern matches without a negation before it."""
    before = (clause[max(0, m.start() - FARTHEST) : m.start()] for m in pattern.finditer(clause))
    return any(not _UNDONE.search(words) for words in before)


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
            yield Found(
                f"The explanation names {name_some(tuple(strange))}, which is not a sentence here.",
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
        sentence: the explained sentence; its words are not keys: "the 3a protein".
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
