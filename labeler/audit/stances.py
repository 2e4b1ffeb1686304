"""Recognition of an explanation's stance: does it call something supported or not?

English only, and explicit statements only. Quotations and concessions ("although X is not spelled
out, ...") are ignored; if clauses differ, the last one counts. "Not supported" also occurs in
feature lists of manuals, so it counts only in the context of a sentence or a document.
"""

from __future__ import annotations

import re
from typing import Literal

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
