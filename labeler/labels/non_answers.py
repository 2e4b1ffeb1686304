"""Responses that say nothing, which earn no support whichever judge is asked.

Model judges have been seen to reward a lone colon, or the opening words of an answer that never
comes. Such a response is judged like any other, for what is relevant does not depend on it; then
what the judge said of its support and use is overruled, counted, and kept beside the label as it
was given. A row without a label would be worse: who answers ``:`` would be left out of the mean.

The rule is narrow, because answers are short: ``42``, ``No.``, ``A``, ``π``, ``=`` and ``✓`` are
answers. It counts only where every sentence of the response is made of nothing but punctuation,
space and invisible characters, or is exactly one of the openers below. Its one known cost is the
question whose right answer is the bare word "solution".
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import NamedTuple

from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ReferenceLabelingOutput
from labeler.sentences.example import Frozen, KeyedExample

SUPPORT = "degenerate_support"
"""Counts the verdicts of support that were overruled: sentences, and the one on the whole."""
USE = "degenerate_use"
"""Counts the document sentences that were said to be used."""
CLAIMS = "degenerate_claims"
"""Counts the claims, of the response and of a reference answer, of which something was said."""
OVERRULED = frozenset({SUPPORT, USE, CLAIMS})

OPENERS = frozenset(
    {
        *("thought process", "my thought process", "chain of thought"),
        *("let's solve this problem step by step", "let us solve this problem step by step"),
        *("let's think step by step", "let's think about this step by step"),
        *("let's work through this step by step", "let me think step by step"),
        *("solution", "the solution", "the answer", "the answer is", "final answer"),
        *("here is the answer", "here is the solution", "here is my answer"),
        *("lösung", "antwort", "réponse", "respuesta", "solución", "risposta", "soluzione"),
        *("resposta", "solução", "решение", "ответ", "الحل", "الإجابة", "उत्तर", "समाधान"),
        *(
            "解",
            "解答",
            "解説",
            "解说",
            "解析",
            "答案",
            "かいせつ",
            "かいとう",
            "풀이",
            "해설",
            "정답",
        ),
    }
)
"""What opens an answer, in lower case without outer punctuation; as a whole response it is none."""
HEADINGS = frozenset(
    {
        *("answer", "response", "reasoning", "explanation", "analysis", "result", "output"),
        *("conclusion", "summary", "step 1", "step one", "thinking", "final result"),
    }
)
"""Words that may well be an answer, but with a colon announce one."""

_NO_CONTENT = frozenset({"Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sk", "Zs", "Zl", "Zp", "Cc"})
_INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\ufffd")
"""Fillers that Unicode calls letters, a blank Braille cell, and the mark of a lost character."""


class Overruled(NamedTuple):
    """A label after the rule.

    Attributes:
        label: the label; unchanged where the response says something.
        counts: how many verdicts were overruled, by kind; empty where none was.
    """

    label: GPTLabelingOutput
    counts: dict[str, int]


def overrule(label: GPTLabelingOutput, example: KeyedExample) -> Overruled:
    """Take support and use from the label of a response that says nothing."""
    if not says_nothing(example):
        return Overruled(label, {})
    judged = label.sentence_support_information
    denied = _claims_denied(label)
    counts = Counter(
        {
            SUPPORT: sum(entry.fully_supported for entry in judged) + label.overall_supported,
            USE: len(label.all_utilized_sentence_keys),
            CLAIMS: sum(
                before != after
                for name, claims in denied.items()
                for before, after in zip(getattr(label, name), claims, strict=True)
            ),
        }
    )
    nothing = {"fully_supported": False, "supporting_sentence_keys": ()}
    changes = {
        "overall_supported": False,
        "sentence_support_information": tuple(e.model_copy(update=nothing) for e in judged),
        "all_utilized_sentence_keys": (),
        **denied,
    }
    return Overruled(label.model_copy(update=changes), dict(+counts))


def _claims_denied(label: GPTLabelingOutput) -> dict[str, tuple[Frozen, ...]]:
    """What nothing is said of: its claims, if a judge found any, are neither true nor false."""
    changes: dict[str, tuple[Frozen, ...]] = {}
    if isinstance(label, ClaimsLabelingOutput):
        nothing: dict[str, object] = {
            "verdict": "neutral",
            "supporting_sentence_keys": (),
            "contradicting_sentence_keys": (),
            "relevant_to_question": False,
        }
        if isinstance(label, ReferenceLabelingOutput):
            nothing["reference_verdict"] = "neutral"
            unanswered = {"response_verdict": "neutral"}
            changes["reference_claims"] = tuple(
                claim.model_copy(update=unanswered) for claim in label.reference_claims
            )
        changes["response_claims"] = tuple(
            claim.model_copy(update=nothing) for claim in label.response_claims
        )
    return changes


def says_nothing(example: KeyedExample) -> bool:
    """Whether no sentence of the response holds anything that could be supported."""
    return all(_is_empty(sentence.text) for sentence in example.response)


def _is_empty(text: str) -> bool:
    seen = "".join(c for c in unicodedata.normalize("NFKC", text) if not _is_invisible(c))
    if all(_is_contentless(char) or _is_mark(char) for char in seen):
        return True
    core = _trimmed(seen)
    words = " ".join(core.replace("\u2019", "'").casefold().split())
    announced = ":" in seen[seen.rfind(core) + len(core) :]
    return words in OPENERS or (announced and words in HEADINGS)


def _trimmed(text: str) -> str:
    """The text without what has no content at either end."""
    start, end = 0, len(text)
    while start < end and _is_contentless(text[start]):
        start += 1
    while start < end and _is_contentless(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_contentless(char: str) -> bool:
    return unicodedata.category(char) in _NO_CONTENT or char in "|~"


def _is_mark(char: str) -> bool:
    # An accent or a vowel sign says something only with the letter that it belongs to.
    return unicodedata.category(char).startswith("M")


def _is_invisible(char: str) -> bool:
    # Not here: what Unicode does not know yet, which may be next year's emoji.
    return char in _INVISIBLE or unicodedata.category(char) in {"Cf", "Cs"}
