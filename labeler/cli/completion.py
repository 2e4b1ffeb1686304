"""Names that a shell completes as values of options."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable


def completing(place: str) -> Callable[[str], list[str]]:
    """Return a completion of names that may be listed with commas.

    Args:
        place: ``package.module:name`` of a catalog, or of a function that returns the names;
            imported when a shell asks.
    """

    def complete(incomplete: str) -> list[str]:
        found = pkgutil.resolve_name(place)
        begin, comma, last = incomplete.rpartition(",")
        names = found() if callable(found) else found
        return [f"{begin}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def judge_names() -> Iterable[str]:
    """Return judges, and providers with the colon that a model follows."""
    from labeler.judges.judge import JUDGES
    from labeler.judges.providers import PROVIDERS

    return sorted({*JUDGES} - {*PROVIDERS} | {f"{name}:" for name in PROVIDERS})


_JUDGES = completing(f"{__name__}:judge_names")
BY_FIELD = {
    "judge": _JUDGES,
    "judges": _JUDGES,
    "preset": completing("labeler.data.presets:PRESETS"),
}
"""Completions of options classes, by field."""
METRICS = completing("labeler.calculators:METRICS")
