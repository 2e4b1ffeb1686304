"""Limits of a server on questions and options: known before, or learned from its errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from labeler.judges.decisions.questions import Question
from labeler.judges.openai.error_rules import ObservedError, find_rule

_REFUSALS = frozenset({400, 413, 422})
_OPTIONS = re.compile(r"option|choice|criteria|candidate")
_COUNTS = re.compile(r"question|many|most|max|limit|exceed|too.?long|fewer|length")
_STATED = re.compile(
    r"(?:most|max\w*|limit\w*|up to|more than|between \d+ and|exceed\w*|than or equal to|[<≤]=?)"
    r"\D{0,20}(\d{1,4})\b"
)
_NUMBER = re.compile(r"\b\d{1,4}\b")
_FEWEST_OPTIONS, _FEWEST_QUESTIONS = 8, 8
"""A message may quote a record, so a smaller number is not believed."""


@dataclass
class Limits:
    """What a server takes in one request, as far as is known.

    Attributes:
        questions: questions at most.
        options: options of a choice at most.
    """

    questions: int
    options: int

    def learn(self, observed: ObservedError, asked: Sequence[Question]) -> bool:
        """Lower a limit that a rejected request was over; return False if none is named."""
        stated = f"{observed.code} {observed.param} {observed.message}".lower()
        if observed.kind != "status" or observed.status not in _REFUSALS:
            return False
        if find_rule(observed).reason == "context_length" or not _COUNTS.search(stated):
            return False
        longest = max(len(question.options) for question in asked)
        if _OPTIONS.search(stated) and longest > _FEWEST_OPTIONS:
            found = _below(longest, stated, _FEWEST_OPTIONS)
            if found or "question" not in stated or len(asked) <= _FEWEST_QUESTIONS:
                self.options = found or max(_FEWEST_OPTIONS, longest // 2)
                return True
        if len(asked) > _FEWEST_QUESTIONS and "question" in stated:
            found = _below(len(asked), stated, _FEWEST_QUESTIONS)
            self.questions = found or max(_FEWEST_QUESTIONS, len(asked) // 2)
            return True
        return False


def _below(count: int, stated: str, least: int) -> int:
    """Return the limit that a message states for a count; 0 if it states none."""
    for pattern in (_STATED, _NUMBER):
        numbers = map(int, pattern.findall(stated))
        fitting = [number for number in numbers if least <= number < count]
        if fitting:
            return max(fitting)
    return 0
