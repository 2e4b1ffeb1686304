"""Count label changes by injected text, by category, in our rendering and in a naive one.

Run it as ``python benchmarks/injection_table.py``. The judge is the scripted one of
``tests/injection``, which obeys what it can mistake for being addressed to it. The table tests the
rendering; it does not measure how often a real model obeys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from injection.attacks import (
    ATTACKS,
    BENIGN,
    POSITIONS,
    SMUGGLED,
    TOKEN_TEXTS,
)
from injection.trials import (
    PARTS,
    Render,
    Trial,
    by,
    harms,
    lost,
    naive,
    plant,
)


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
    print("| text | tried | changed a verdict: ours | naive | text lost: ours | naive |")
    print("|---|--:|--:|--:|--:|--:|")
    renderings = (by("trace/v1"), naive)
    for name, trials in tables.items():
        counts = [_count(found, trials, how) for found in (harms, lost) for how in renderings]
        print(f"| {name} | {len(trials)} | {' | '.join(map(str, counts))} |")


def _everywhere(texts: Iterable[tuple[str, ...]]) -> list[Trial]:
    """Plant what is written for each position there, in every part."""
    placed = zip(POSITIONS, texts, strict=True)
    return [plant(written, part, position) for position, written in placed for part in PARTS]


def _everywhere_alike(texts: Iterable[str]) -> list[Trial]:
    return [trial for text in texts for trial in _everywhere([(text,)] * len(POSITIONS))]


def _count(found: Callable[[Trial, Render], list[str]], trials: list[Trial], render: Render) -> int:
    return sum(bool(found(trial, render)) for trial in trials)


if __name__ == "__main__":
    main()
