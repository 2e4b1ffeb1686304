"""Scores records with deepeval; runs in deepeval's own environment, see ``running.py``.

By default deepeval ends at the first error that it cannot mend and returns nothing. ``--keep`` has
it use its own cache of the last run.
"""

# mypy: disable-error-code="import-not-found"
# deepeval is installed in an environment of its own only.

from __future__ import annotations

import argparse
import os
from typing import Any

import openai.resources  # noqa: F401 - so that it is imported before the clock starts

from peers.running import Clock, Row, main

JOB_SECONDS = 180
"""What deepeval gives a metric of a record where no time-out of requests is set."""


def lines_of(rows: list[Row], options: argparse.Namespace) -> list[Row]:
    """``deepeval.evaluate`` with its own way of handling errors."""
    os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(options.timeout)
    os.environ["DEEPEVAL_PER_TASK_TIMEOUT_SECONDS_OVERRIDE"] = str(JOB_SECONDS)
    from deepeval import evaluate, metrics  # noqa: PLC0415 - reads its settings when imported
    from deepeval.evaluate import (  # noqa: PLC0415
        AsyncConfig,
        CacheConfig,
        DisplayConfig,
        ErrorConfig,
    )
    from deepeval.models import OpenAIModel  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    kinds = {
        "faithfulness": metrics.FaithfulnessMetric,
        "answer-relevancy": metrics.AnswerRelevancyMetric,
        "context-precision": metrics.ContextualPrecisionMetric,
        "context-recall": metrics.ContextualRecallMetric,
        "context-relevancy": metrics.ContextualRelevancyMetric,
        "hallucination": metrics.HallucinationMetric,
    }
    model = OpenAIModel(model=options.model, base_url=options.url, api_key="none")
    cases = [
        LLMTestCase(
            name=row["id"],
            input=row["question"],
            actual_output=row["response"],
            retrieval_context=row["documents"],
            context=row["documents"],
            expected_output=row.get("reference"),
        )
        for row in rows
    ]
    asked = [kinds[name](model=model, threshold=options.threshold) for name in options.metrics]
    clock, results, ended_by = Clock(), [], None
    try:
        results = evaluate(
            cases,
            asked,
            async_config=AsyncConfig(max_concurrent=options.concurrency),
            display_config=DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
            cache_config=CacheConfig(write_cache=options.keep, use_cache=options.keep),
            error_config=ErrorConfig(ignore_errors=options.form == "ignore-errors"),
        ).test_results
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
        ended_by = type(error).__name__
    return [clock.taken(ended_by), *map(line_of, results)]


def line_of(result: Any) -> Row:  # noqa: ANN401 - deepeval's TestResult
    """What deepeval found of one record."""
    return {
        "id": result.name,
        "values": {one.name: one.score for one in result.metrics_data},
        "errors": {one.name: one.error for one in result.metrics_data if one.error},
    }


if __name__ == "__main__":
    main(
        dict.fromkeys(("default", "ignore-errors"), lines_of), ("faithfulness", "context-relevancy")
    )
