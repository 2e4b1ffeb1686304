"""Serve canned answers in the form of OpenAI's API, to try labeler without a key or a bill.

    python scripts/serve_provider.py [--port PORT] [--faults 0.1] [--latency 0.2] …

Prints the command to try, and serves until Ctrl-C. No model is asked: the first document sentence
is called relevant and said to support everything, whatever the texts say. `--help` lists what can
go wrong on demand: failures, limits, delays.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from wire.provider import made_of, options_from, until_interrupted


def main(arguments: list[str]) -> None:
    """Serve, and say how to ask."""
    options = options_from(["--count-tokens", *arguments])
    with made_of(options) as provider:
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
