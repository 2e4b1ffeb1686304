"""Responses without content, which get no support from any judge.

Model judges can reward a lone colon, or the opening words of an answer that never comes. Such a
response is judged like any other, because relevance does not depend on it. Then the judge's support
and utilization are overruled and counted; the answer as given stays in the record. Without a label,
a system that answers ``:`` would be left out of the mean.

The rule is narrow, because answers can be short: ``42``, ``No.``, ``A``, ``π``, ``=`` and ``✓`` are
answers. It applies only if every sentence of the response consists of punctuation, space and
invisible characters, or is exactly one of the openers below. Its one known cost is a question whose
correct answer is the bare word "solution".
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.contract import CLAIMS, SUPPORT, USE
from labeler.sentences.characters import normalized
from labeler.sentences.example import Frozen, KeyedExample
from labeler.sentences.words import read_table

_WORDS = read_table(__file__, "non_answers")
OPENERS: frozenset[str] = frozenset(_WORDS["openers"])
"""Openings of an answer, in lower case without outer punctuation; alone they are not an answer."""
HEADINGS: frozenset[str] = frozenset(_WORDS["headings"])
"""Words that can be an answer, but with a colon only announce one."""

_NO_CONTENT = frozenset({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk", "Zs", "Zl", "Zp", "Cc"})
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\ufffd")
"""Fillers that Unicode calls letters, the blank Braille cell, and the replacement character."""


def overrule(
    label: GPTLabelingOutput, example: KeyedExample
) -> tuple[GPTLabelingOutput, dict[str, int]]:
    """Remove support and utilization from the label of a response without content.

    Returns:
        The label, and the number of overruled verdicts by kind; empty if none was overruled.
    """
    if not is_without_content(example):
        return label, {}
    judged = label.sentence_support_information
    neutral = _neutral_claims(label)
    counts = Counter(
        {
            SUPPORT: sum(entry.fully_supported for entry in judged) + label.overall_supported,
            USE: len(label.all_utilized_sentence_keys),
            CLAIMS: sum(
                before != after
                for name, claims in neutral.items()
                for before, after in zip(getattr(label, name), claims, strict=True)
            ),
        }
    )
    nothing = {"fully_supported": False, "supporting_sentence_keys": ()}
    changes = {
        "overall_supported": False,
        "sentence_support_information": tuple(e.model_copy(update=nothing) for e in judged),
        "all_utilized_sentence_keys": (),
        **neutral,
    }
    return label.model_copy(update=changes), dict(+counts)


_NEUTRAL: dict[str, dict[str, object]] = {
    "response_claims": {
        "verdict": "neutral",
        "supporting_sentence_keys": (),
        "contradicting_sentence_keys": (),
        "relevant_to_question": False,
        "reference_verdict": "neutral",
    },
    "reference_claims": {"response_verdict": "neutral"},
}
"""Fields of claims that a response without content makes."""


def _neutral_claims(label: GPTLabelingOutput) -> dict[str, tuple[Frozen, ...]]:
    """Return the claims of a label, made neutral."""
    return {
        name: tuple(
            claim.model_copy(update={key: nothing[key] for key in nothing if hasattr(claim, key)})
            for claim in getattr(label, name)
        )
        for name, nothing in _NEUTRAL.items()
        if hasattr(label, name)
    }


def is_without_content(example: KeyedExample) -> bool:
    """Return True if no sentence of the response has content that could be supported."""
    return all(_is_empty(sentence.text) for sentence in example.response)


def _is_empty(text: str) -> bool:
    seen = text if text.isascii() else _normalized(text)
    empty = "".join(filter(_is_contentless, set(seen)))
    core = seen.strip(empty)
    # An accent or a vowel sign has content only with its letter.
    if all(unicodedata.category(char)[0] == "M" for char in core if char not in empty):
        return True
    words = " ".join(core.replace("\u2019", "'").casefold().split())
    announced = ":" in seen[seen.rfind(core) + len(core) :]
    return words in OPENERS or (announced and words in HEADINGS)


def _normalized(text: str) -> str:
    return "".join(c for c in normalized("NFKC", text) if not _is_invisible(c))


@lru_cache(4096)
def _is_contentless(char: str) -> bool:
    return unicodedata.category(char) in _NO_CONTENT or char in "|~"


def _is_invisible(char: str) -> bool:
    # Unassigned characters are visible: they may be next year's emoji.
    return char in _INVISIBLE or unicodedata.category(char) in {"Cf", "Cs"}
