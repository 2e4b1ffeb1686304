"""Scores records with trulens' feedback functions against a given server; in its own environment.

    python trulens_run.py --url URL --records RECORDS --out OUT --form feedback

It writes what the other runs write. Groundedness, answer relevance and context relevance are asked
for, with reasons. Feedback functions wait for their calls, so that records go to threads. For every
record trulens would look for the sentence model of nltk on another machine; here it is given
sentences that end with a full stop.
"""

# mypy: disable-error-code="import-not-found"
# trulens is installed in an environment of its own only.

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai.resources  # noqa: F401 - so that it is imported before the clock starts

Row = dict[str, Any]
Score = Callable[[Row], Any]

MODEL = "gpt-4o-mini"
"""A name that trulens knows; the server does not care."""
_UNPACED = 100_000
"""Requests a minute, more than any tool here makes."""


def scores(provider: Any) -> dict[str, Score]:  # noqa: ANN401 - trulens' provider
    """Each metric as a function of a record."""

    def relevant(row: Row) -> Any:  # noqa: ANN401 - a number, if all is well
        ask = provider.context_relevance_with_cot_reasons
        return statistics.mean(ask(row["question"], text)[0] for text in row["documents"])

    return {
        "faithfulness": lambda row: provider.groundedness_measure_with_cot_reasons(
            "\n".join(row["documents"]), row["response"]
        )[0],
        "answer-relevancy": lambda row: provider.relevance_with_cot_reasons(
            row["question"], row["response"]
        )[0],
        "context-relevancy": relevant,
    }


def score_rows(rows: list[Row], options: argparse.Namespace) -> list[dict[str, Any]]:
    """The whole table, in threads."""
    import nltk  # noqa: PLC0415 - imported before the clock starts, not before the options are read
    from trulens.feedback import llm_provider  # noqa: PLC0415
    from trulens.providers.openai import OpenAI  # noqa: PLC0415

    nltk.download = lambda *_, **__: True
    llm_provider.sent_tokenize = lambda text: [f"{one}." for one in text.rstrip(".").split(". ")]
    # Left alone it asks 60 times a minute, which would be all that its times say.
    provider = OpenAI(
        model_engine=options.model, base_url=options.url, api_key="none", rpm=_UNPACED
    )
    wanted = {name: scores(provider)[name] for name in options.metrics.split(",")}
    results = [{"id": row["id"], "values": dict.fromkeys(wanted), "errors": {}} for row in rows]

    def fill(place: int, name: str) -> None:
        try:
            results[place]["values"][name] = wanted[name](rows[place])
        except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
            results[place]["errors"][name] = type(error).__name__

    began, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(options.concurrency) as pool:
        jobs = [pool.submit(fill, place, name) for place in range(len(rows)) for name in wanted]
        for job in jobs:
            job.result()
    whole = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    return [{**whole, "ended_by": None}, *results]


def main() -> None:
    """Read, score, write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["feedback"], required=True)
    parser.add_argument("--timeout", type=float, help="nothing: it has no such setting")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--metrics", default="faithfulness,answer-relevancy,context-relevancy")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--threshold", type=float, help="nothing: these functions have none")
    parser.add_argument("--keep", action="store_true", help="nothing: they keep no answers")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    lines = score_rows(rows, options)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
