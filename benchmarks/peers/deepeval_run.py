"""Scores records with deepeval against a given server; runs in deepeval's own environment.

    python deepeval_run.py --url URL --records RECORDS --out OUT --form default|ignore-errors

The first line of OUT is a JSON object with the ``seconds`` that scoring took, imports aside, its
``cpu`` seconds, and what it was ``ended_by``. Each other line is one record: ``id``, ``values`` by
metric (``null`` where there is no number) and ``errors`` by metric. Unless others are named,
faithfulness and contextual relevancy are asked for. By default deepeval ends at the first error
that it cannot mend and returns nothing. ``--keep`` has it use its own cache of the last run.
"""

# mypy: disable-error-code="import-not-found"
# deepeval is installed in an environment of its own only.

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import openai.resources  # noqa: F401 - so that it is imported before the clock starts

MODEL = "gpt-4o-mini"
"""A name that deepeval knows; the server does not care."""
METRICS = "faithfulness,context-relevancy"
JOB_SECONDS = 180
"""What deepeval gives a metric of a record where no time-out of requests is set."""


def lines_of(rows: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """``deepeval.evaluate`` with its own way of handling errors."""
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
    names = options.metrics.split(",")
    asked = [kinds[name](model=model, threshold=options.threshold) for name in names]
    began, cpu, results, ended_by = time.perf_counter(), time.process_time(), [], None
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
    whole = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    return [{**whole, "ended_by": ended_by}, *map(line_of, results)]


def line_of(result: Any) -> dict[str, Any]:  # noqa: ANN401 - deepeval's TestResult
    """What deepeval found of one record."""
    return {
        "id": result.name,
        "values": {one.name: one.score for one in result.metrics_data},
        "errors": {one.name: one.error for one in result.metrics_data if one.error},
    }


def main() -> None:
    """Read, score, write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["default", "ignore-errors"], required=True)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--threshold", type=float, default=0.5, help="of every metric")
    parser.add_argument("--keep", action="store_true", help="results, for the next run")
    options = parser.parse_args()
    os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(options.timeout)
    os.environ["DEEPEVAL_PER_TASK_TIMEOUT_SECONDS_OVERRIDE"] = str(JOB_SECONDS)
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    lines = lines_of(rows, options)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
