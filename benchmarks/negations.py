"""Insert negations into sentences that the embedded judge passes, and count those it then fails.

    python benchmarks/negations.py [--split test|development] [--show N] [--write docs/embedded_judge.md]

A passing sentence is one that the published label and the judge both call supported. Each that has a
verb or noun to negate gets one negation of each kind that fits it; the rest of the record stays.
*Caught* is a sentence that the judge then calls unsupported. The price is paid by sentences as they
are: *false alarms* are those that the published label calls supported and the judge does not, *by the
negation* those that it would pass without the rule. Rules were chosen on development rows.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from judge_dialects import write_block
from judges import line, shown, true_labels
from labeler.judges.embedded.features import SUPPORT, describe
from labeler.judges.embedded.weights import load_weights
from labeler.labels.record import LabelRecord
from labeler.sentences.example import KeyedExample
from ragbench_data import ragbench_files, ragbench_folder

_AUXILIARY = r"(is|are|was|were|can|could|will|would|should|must|may|has been|have been)"
_VERBS = {
    "is": "is",
    "press": "press",
}
Negate = Callable[[str], str | None]


def _replaced(pattern: str, by: str) -> Negate:
    compiled = re.compile(pattern)

    def negate(text: str) -> str | None:
        negated = compiled.sub(by, text, count=1)
        return negated if negated != text else None

    return negate


KINDS: dict[str, Negate] = {
    "not": _replaced(rf"\b{_AUXILIARY} (?!not\b)(?=[a-z])", r"\1 not "),
    "n't": _replaced(r"\b(is|are|was|were|could|would|should|has|have) (?!not\b)(?=[a-z])", r"\1n't "),
    "never": _replaced(rf"\b{_AUXILIARY} (?!never\b)(?=[a-z])", r"\1 never "),
    "no": _replaced(r"\b(?:has|have|contains?|includes?|provides?|requires?|causes?) (?:an? |the )?(?=[a-z])", "_no_"),
    "do not": _replaced(
        r"(^|[:.] |\d\. |- )(Press|Select|Use|Turn|Set|Touch|Check|Connect|Open|Remove|Add|Place|Make|Keep|Ensure)\b",
        r"\1Do not \2",
    ),
    "without": _replaced(r"\bwith (?=[a-z])", "without "),
    "dropped": _replaced(r"\b(?:not|never) |(?<=[a-z])n't\b", ""),
}
