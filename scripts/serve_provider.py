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
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from wire.provider import FAULTS, made_of, options_from, parser, until_interrupted

LONG = ("429-wait-long", "hang", "slow-loris")
"""Faults that take a first trial far too long: three hours, or as long as the client waits."""
KINDS = tuple(kind for kind in FAULTS if kind not in LONG)


def options(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    helping = parser()
    helping.epilog = (
        f"Faults are by default all kinds but {', '.join(LONG)}, which make a client wait for "
        "minutes or hours; --kinds names others."
    )
    helping.parse_args(arguments)  # prints --help
    return options_from(["--kinds", *KINDS, "--count-tokens", *arguments])


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
        until_interrupted()


if __name__ == "__main__":
    main(sys.argv[1:])
