"""Coverage of scipy's BCa on the data sets of ``interval_coverage.py``; run by it, where scipy is.

Its arguments are the data sets a line, resamples, and sizes. Records count as independent, as
scipy takes them. An interval with an end that is not a number counts as a miss.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
from scipy import stats  # type: ignore[import-untyped]  # not installed here

from interval_populations import DIFFERENCES, POPULATIONS, REPEATED, Floats, Population, Rng

_CELLS = 1 << 22
"""Numbers in memory at once, for the jackknife of a portion of the data sets: 32 MB."""


def measure(sets: Sequence[Floats], truth: float, resamples: int) -> list[str]:
    """Return coverage, mean width and the share of undefined intervals as cells."""
    lows, highs = np.concatenate(list(_ends(sets, resamples)), axis=1)
    inside = (lows <= truth) & (truth <= highs)
    defined = np.isfinite(lows) & np.isfinite(highs)
    width = float((highs - lows)[defined].mean()) if defined.any() else 0.0
    return [f"{inside.mean():.1%}", f"{width:.4f}", f"{1 - defined.mean():.0%}"]


def _ends(sets: Sequence[Floats], resamples: int) -> Iterator[Floats]:
    """Yield both ends of each data set; data sets of one length are resampled together."""
    by_length: dict[int, list[Floats]] = {}
    for values in sets:
        by_length.setdefault(len(values), []).append(values)
    for length, alike in by_length.items():
        portion = max(1, _CELLS // length**2)
        for start in range(0, len(alike), portion):
            found = stats.bootstrap(
                (np.stack(alike[start : start + portion]),),
                np.mean,
                axis=1,
                n_resamples=resamples,
                batch=max(1, _CELLS // (portion * length)),
                method="BCa",
                rng=start,
            ).confidence_interval
            yield np.stack([found.low, found.high])


def _values(population: Population) -> Callable[[Rng, int], Floats]:
    return lambda rng, size: population.draw(rng, size)[0]


def main() -> None:
    """Print the cells by population and size as JSON."""
    draws, resamples, *sizes = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    populations = [(one.name, _values(one), one.truth()) for one in (*POPULATIONS, *REPEATED)]
    populations += [(one.name, one.draw, one.mean) for one in DIFFERENCES if not one.sizes]
    found = {}
    for size, (name, draw, truth) in product(sizes, populations):
        rng = np.random.default_rng(size)
        found[f"{name} {size}"] = measure([draw(rng, size) for _ in range(draws)], truth, resamples)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
