"""Count planted texts that leave their data block, by category.

Run it as ``python benchmarks/injection_table.py``. The table tests the rendering; it does not
measure how often a real model obeys.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness import table
from injection.attacks import ATTACKS, BENIGN, POSITIONS, SMUGGLED, TOKEN_TEXTS
from injection.trials import PARTS, by, escaped, plant
from labeler.sentences.example import KeyedExample


def main() -> None:
    """Print one table line a category, then the sums."""
    tables = {str(attack): _everywhere(attack.write(p) for p in POSITIONS) for attack in ATTACKS}
    attacks = [trial for trials in tables.values() for trial in trials]
    tables |= {
        "**29 categories**": attacks,
        "each control token": _everywhere_alike(TOKEN_TEXTS),
        "variation selectors": _everywhere_alike([SMUGGLED]),
        "**benign twins**": _everywhere_alike(BENIGN),
    }
    lines = (
        [name, len(trials), sum(bool(escaped(trial, by("trace/v1"))) for trial in trials)]
        for name, trials in tables.items()
    )
    print(*table(["text", "tried", "left its block, or was changed"], lines), sep="\n")


def _everywhere(texts: Iterable[tuple[str, ...]]) -> list[KeyedExample]:
    """Plant what is written for each position there, in every part."""
    placed = zip(POSITIONS, texts, strict=True)
    return [plant(written, part, position) for position, written in placed for part in PARTS]


def _everywhere_alike(texts: Iterable[str]) -> list[KeyedExample]:
    return [trial for text in texts for trial in _everywhere([(text,)] * len(POSITIONS))]


if __name__ == "__main__":
    main()
