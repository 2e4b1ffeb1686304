"""Missing values: the shares of rows without a value with which a gate is passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from labeler.calculators import METRICS, Metric
from labeler.calculators.ratio import counts_in_gates
from labeler.errors import UsageError

IN_BASE = "_in_base"
"""Ends the reason of a row without a value in the base alone."""


@dataclass(frozen=True)
class Allowed:
    """The largest shares of rows without a value with which a gate is passed.

    Attributes:
        failed: share of failed rows, from 0 to 1.
        undefined: share of rows that are undefined for a reason that counts, from 0 to 1; see
            :data:`labeler.calculators.ratio.UNDEFINED_REASONS`.

    Raises:
        UsageError: a share is out of range.
    """

    failed: float = 0.05
    undefined: float = 0.05

    def __post_init__(self) -> None:
        for name, share in (("failed", self.failed), ("undefined", self.undefined)):
            if not 0 <= share <= 1:
                raise UsageError(f"--max-{name} {share:g}: give a share of rows from 0 to 1")

    def exceeded(
        self,
        metric: Metric,
        rows: int,
        undefined: Mapping[str, int],
        failed: Mapping[str, int],
    ) -> Iterator[str]:
        """Yield each share that is exceeded, in words.

        Args:
            metric: the metric.
            rows: number of defined, undefined and failed rows.
            undefined: undefined rows by reason.
            failed: failed rows by reason.
        """
        counting = {r: n for r, n in undefined.items() if counts_in_gates(r.removesuffix(IN_BASE))}
        for name, counts, most in (
            ("failed", failed, self.failed),
            ("undefined", counting, self.undefined),
        ):
            # Compared as the decimals that were written.
            if (count := sum(counts.values())) > rows * Fraction(str(float(most))):
                why = f"{count} of {rows} rows {name}, more than {most:.15g} of them"
                others = definitions_with_values(metric, counts)
                yield "; ".join((f"{why}: {listed(counts)}", f"--max-{name} allows more", *others))


DEFAULT_ALLOWED = Allowed()


def definitions_with_values(metric: Metric, reasons: Iterable[str]) -> Iterator[str]:
    """Name a definition of the metric for each reason for which it prescribes a value."""
    for reason in dict.fromkeys(reason.removesuffix(IN_BASE) for reason in reasons):
        for other in METRICS.values():
            value = dict(other.conventions).get(reason)
            if other.name == metric.name and value is not None:
                yield f"{other.id} counts {reason} as {value:g}"
                break


def listed(reasons: Mapping[str, int]) -> str:
    """Return reasons with their numbers of rows: ``3 refusal, 1 timeout``."""
    found = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    return found or "there are no records"
