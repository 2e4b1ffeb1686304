"""Coverage of scipy's BCa on the data sets of ``interval_coverage.py``; run by it, where scipy is.

It takes records for independent, as scipy does. An end that is not a number counts as a miss.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import stats  # type: ignore[import-untyped]  # not installed here

from interval_populations import DIFFERENCES, POPULATIONS, Floats, Population, Rng

SIZES = (5, 10, 30, 100, 1_000)


def measure(draw: Callable[[], Floats], truth: float, draws: int, resamples: int) -> str:
    """Return coverage, mean width and the share of undefined intervals as cells."""
    inside = width = defined = 0.0
    for seed in range(draws):
        found = stats.bootstrap(
            (draw(),), np.mean, n_resamples=resamples, method="BCa", rng=seed, vectorized=True
        ).confidence_interval
        if np.isfinite([found.low, found.high]).all():
            defined += 1
            inside += found.low <= truth <= found.high
            width += found.high - found.low
    return f"{inside / draws:.1%} | {width / max(1, defined):.4f} | {1 - defined / draws:.0%}"


def _values(population: Population) -> Callable[[Rng, int], Floats]:
    return lambda rng, size: population.draw(rng, size)[0]


def main() -> None:
    """Print the cells by population and size as JSON."""
    draws, resamples = map(int, sys.argv[1:3])
    found = {}
    warnings.simplefilter("ignore")
    populations = [(one.name, _values(one), one.truth()) for one in POPULATIONS]
    populations += [(one.name, one.draw, one.mean) for one in DIFFERENCES]
    for size in SIZES:
        for name, draw, truth in populations:
            rng = np.random.default_rng(size)
            found[f"{name} {size}"] = measure(partial(draw, rng, size), truth, draws, resamples)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
