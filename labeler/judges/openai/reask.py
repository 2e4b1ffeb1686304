"""Re-asks: messages that report the rules that an answer broke, and the allowed keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from labeler.labels.answers import SPECIAL_SUPPORT, GPTLabelingOutput
from labeler.labels.contract import Violation
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import position

ReaskVersion = Literal["reask/1"]
REASK_VERSION: ReaskVersion = "reask/1"
"""Version of every text in this module. It is part of label keys, because another wording may
change labels: increment it, here and above, whenever a text changes."""

NOT_A_LABEL = (
    "That was not a JSON object of the required schema. Write the whole label again, as JSON alone."
)
"""The re-ask after an unreadable label."""

NO_ANSWER = (
    "That was not a JSON object of the required schema. "
    "Write the whole answer again, as JSON alone."
)
"""The re-ask after another unreadable answer."""

_MOST_LISTED = 20


def rules_again(violations: Sequence[Violation], rules: str) -> str:
    """Name the rules that an answer other than a label broke, then all its rules."""
    return (
        f"That answer broke the rules: {brief(violations)}. {rules} "
        "Write the whole answer again, as JSON alone."
    )


def complaint(
    violations: Sequence[Violation],
    example: KeyedExample,
    output: type[GPTLabelingOutput] = GPTLabelingOutput,
) -> str:
    """Name every broken rule with its keys, then the existing keys.

    Args:
        violations: the broken rules.
        example: the record.
        output: the class of the requested label; one with claims adds rules about claims.
    """
    return (
        f"That label broke the rules: {brief(violations)}. "
        f"Document sentence keys are {key_ranges(example.document_keys()) or 'none'}. "
        f"{_conversation_keys(example)}"
        f"Response sentence keys, each judged exactly once, are "
        f"{key_ranges(example.response_keys())}. Only supporting_sentence_keys may also hold "
        f"{', '.join(SPECIAL_SUPPORT)}; a decision has it exactly when fully_supported is true. "
        f"{_CLAIMS if 'response_claims' in output.model_fields else ''}"
        f"{_reference_rules(example) if 'reference_claims' in output.model_fields else ''}"
        "Write the whole label again, as JSON alone."
    )


def _conversation_keys(example: KeyedExample) -> str:
    keys = key_ranges(sentence.key for sentence in example.conversation_sentences())
    return f"Sentences that may be named as support only are {keys}. " if keys else ""


_CLAIMS = (
    "Each response sentence has at least one entry in response_claims or stands in "
    "response_sentences_without_claims, never both. Among response_claims, entailment needs "
    "supporting_sentence_keys, and contradiction needs contradicting_sentence_keys. A sentence is "
    "fully_supported exactly when all its claims are entailment. "
)


def _reference_rules(example: KeyedExample) -> str:
    keys = (sentence.key for sentence in example.reference or ())
    return (
        f"Reference sentence keys are {key_ranges(keys)}: each has at least one entry in "
        "reference_claims or stands in reference_sentences_without_claims, never both. "
        "In reference_claims, supporting_sentence_keys holds document sentence keys alone. "
    )


def brief(violations: Sequence[Violation]) -> str:
    """Summarize violations; an answer may break any number of rules with any number of keys."""
    return _listed((f"{v.kind} in {v.field}: {_keys(v)}" for v in violations), "; ")


def key_ranges(keys: Iterable[str]) -> str:
    """Write keys compactly: ``0a, 0b, 0c, 1a`` becomes ``0a-0c, 1a``."""
    runs: list[list[str]] = []
    for key in sorted(set(keys), key=position):
        if runs and _follows(runs[-1][-1], key):
            runs[-1].append(key)
        else:
            runs.append([key])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _follows(earlier: str, later: str) -> bool:
    one, other = position(earlier), position(later)
    return one[:2] == other[:2] and one.sentence + 1 == other.sentence


def _keys(violation: Violation) -> str:
    # A judge may give a document sentence as a key; it is not repeated.
    shown = (repr(key) if _KEY_LIKE.fullmatch(key) else "a text" for key in violation.keys)
    return _listed(shown, ", ")


def _listed(texts: Iterable[str], separator: str) -> str:
    listed = list(texts)
    more = [f"and {len(listed) - _MOST_LISTED} more"] if len(listed) > _MOST_LISTED else []
    return separator.join(listed[:_MOST_LISTED] + more)


_KEY_LIKE = re.compile(r"[A-Za-z0-9_.\[\]-]{1,32}", re.ASCII)
