"""Serve canned answers in the form of OpenAI's API, to try labeler without a key or a bill.

    python scripts/serve_provider.py [--port PORT] [--faults 0.1] [--latency 0.2] …

Prints the command to try, and serves until Ctrl-C. No model is asked: the first document sentence
is called relevant and said to support everything, whatever the texts say. `--help` lists what can
go wrong on demand: failures, limits, delays. What keeps a client waiting for minutes or hours is no
fault here unless `--kinds` names it.
"""

from __future__ import annotations

import argparse
import sys
import threading
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from wire.behaviors import BEHAVIOURS
from wire.faults import FAULTS, faulty, spread
from wire.provider import Provider
from wire.rates import Rates

LONG = ("429-wait-long", "hang", "slow-loris")
"""Faults that take a first trial far too long: three hours, or as long as the client waits."""
KINDS = tuple(kind for kind in FAULTS if kind not in LONG)


def options(arguments: list[str]) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program."""
    parser = argparse.ArgumentParser(
        description="Serve canned answers until interrupted; GET /stats tells what was asked.",
        epilog=f"Faults are by default all kinds but {', '.join(LONG)}, which make a client wait "
        "for minutes or hours; --kinds names others.",
    )
    parser.add_argument(
        "script", nargs="*", help=f"behaviors, taken in turn, from: {' '.join(BEHAVIOURS)}"
    )
    parser.add_argument("--port", type=int, default=0, help="0 for any free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--spread", type=float, help="sigma of log-normal latencies round it")
    parser.add_argument("--requests-per-second", type=float, help="above it: 429")
    parser.add_argument("--burst", type=int, help="requests taken at once after a rest")
    parser.add_argument("--tokens-per-minute", type=float, help="above it: 429")
    parser.add_argument(
        "--retry-after", choices=["retry-after", "retry-after-ms", "none"], default="retry-after"
    )
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls, 0 to 1")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="behaviors that are faults")
    parser.add_argument("--seed", type=int, default=0)
    found = parser.parse_args(arguments)
    if unknown := sorted({*found.script, *found.kinds} - set(BEHAVIOURS)):
        parser.error(f"unknown behaviors {unknown}")
    return found


def made_of(asked: argparse.Namespace) -> Provider:
    """Make the server that options describe; it keeps no requests, since it may serve for long."""
    latency = asked.latency
    return Provider(
        asked.script or faulty(asked.faults, asked.seed, asked.kinds),
        port=asked.port,
        rates=Rates(
            asked.requests_per_second,
            asked.burst,
            asked.tokens_per_minute,
            retry_after=None if asked.retry_after == "none" else asked.retry_after,
        ),
        latency=spread(latency, asked.spread, asked.seed) if asked.spread else latency,
        count_tokens=True,
        record=False,
    )


def main(arguments: list[str]) -> None:
    """Serve, and say how to ask."""
    with made_of(options(arguments)) as provider:
        print(
            "labeler label examples/rows.jsonl --judge openai --model demo"
            f" --base-url {provider.url} --store canned-labels -o canned-labels.jsonl"
        )
        print(
            "The answers are canned: they measure nothing. The line above keeps them in a store of"
            " their own. Ctrl-C ends this server.",
            flush=True,
        )
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
