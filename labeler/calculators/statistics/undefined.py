"""A result that there is none of, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Undefined:
    """Stands where a figure would, so that nothing has to be NaN.

    Attributes:
        reason: machine-readable code, such as ``no_differences``.
    """

    reason: str
