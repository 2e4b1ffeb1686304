"""Names that a shell completes as values of options."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def completing(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completion of names that may be listed with commas.

    Args:
        names: returns all names; called when a shell asks.
    """

    def complete(incomplete: str) -> list[str]:
        begin, comma, last = incomplete.rpartition(",")
        return [f"{begin}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def metric_names() -> Iterable[str]:
    """Return the ids of all metrics."""
    from labeler.calculators import METRICS

    return METRICS


def judge_names() -> Iterable[str]:
    """Return judges, and providers with the colon that a model follows."""
    from labeler.judges.judge import JUDGES
    from labeler.judges.providers import PROVIDERS

    return sorted({*(name for name in JUDGES if name not in PROVIDERS), *map(_named, PROVIDERS)})


def _named(provider: str) -> str:
    return f"{provider}:"


def preset_names() -> Iterable[str]:
    """Return the presets of columns."""
    from labeler.data.presets import PRESETS

    return PRESETS


BY_FIELD = {
    "judge": completing(judge_names),
    "judges": completing(judge_names),
    "preset": completing(preset_names),
}
"""Completions of options classes, by field."""
METRICS = completing(metric_names)
