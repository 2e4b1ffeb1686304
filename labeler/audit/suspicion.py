"""How doubtful a record is, from what was found in it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from labeler.audit.definition import CHECKS, WEIGHTS, Finding

DIGITS = 6
"""Digits behind the point that doubt is rounded to: the last ones depend on the machine."""


def doubt_of(findings: Iterable[Finding]) -> float:
    """How doubtful a record is: a number to rank by, no probability that its label is wrong.

    Each check that found something is taken as a reason to doubt that is independent of the others,
    and as strong as its weight: the doubt is 1 - (1 - w1)(1 - w2)... A check counts once however
    often it found something, and the order of the findings does not matter. One finding more never
    lowers it.

    Returns:
        From 0, where nothing was found, to 1.
    """
    weights = {finding.check: _weight(finding) for finding in findings}
    left = math.prod(1 - weight for weight in sorted(weights.values()))
    return round(1 - left, DIGITS)


def _weight(finding: Finding) -> float:
    # A finding may be read back where the third party's check that made it was not imported.
    known = finding.check in CHECKS
    return CHECKS[finding.check].weight if known else WEIGHTS[finding.severity]
