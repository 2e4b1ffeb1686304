"""Metrics of a record in one line of text, as tables of worked examples hold them."""

from __future__ import annotations

from fractions import Fraction

from labeler.calculators import METRICS, Ratio, tally
from labeler.labels.record import LabelRecord


def ratio(labeled: LabelRecord, metric: str) -> Ratio:
    """One metric of one record."""
    return METRICS[metric].compute(tally(labeled))


def written(found: Ratio) -> str:
    """A ratio as ``2/4``, a mean of ratios as a reduced fraction, else its convention or reason."""
    if found.undefined:
        return found.undefined
    if not found.denominator:
        return f"by-convention-{found.value:g}"
    if isinstance(found.numerator, Fraction):
        return str(found.exact)
    return f"{found.numerator}/{found.denominator}"


def figures(labeled: LabelRecord, expected: str) -> str:
    """The metrics that a text such as ``relevance 4/7, adherence 0/1`` names, as found."""
    names = [part.split()[0] for part in expected.split(", ")]
    return ", ".join(f"{name} {written(ratio(labeled, name))}" for name in names)
