"""Scores records with trulens' feedback functions; in its own environment, see ``running.py``.

Groundedness, answer relevance and context relevance are asked
for, with reasons. Feedback functions wait for their calls, so that records go to threads. For every
record trulens would look for the sentence model of nltk on another machine; here it is given
sentences that end with a full stop.
"""

# mypy: disable-error-code="import-not-found"
# trulens is installed in an environment of its own only.

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai.resources  # noqa: F401 - so that it is imported before the clock starts

from peers.running import Clock, Row, main

Score = Callable[[Row], Any]
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


def score_rows(rows: list[Row], options: argparse.Namespace) -> list[Row]:
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
    wanted = {name: scores(provider)[name] for name in options.metrics}
    results = [{"id": row["id"], "values": dict.fromkeys(wanted), "errors": {}} for row in rows]

    def fill(place: int, name: str) -> None:
        try:
            results[place]["values"][name] = wanted[name](rows[place])
        except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
            results[place]["errors"][name] = type(error).__name__

    clock = Clock()
    with ThreadPoolExecutor(options.concurrency) as pool:
        jobs = [pool.submit(fill, place, name) for place in range(len(rows)) for name in wanted]
        for job in jobs:
            job.result()
    return [clock.taken(), *results]


if __name__ == "__main__":
    main({"feedback": score_rows}, ("faithfulness", "answer-relevancy", "context-relevancy"))
