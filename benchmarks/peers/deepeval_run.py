"""Scores records with deepeval against a given server; runs in deepeval's own environment.

    python deepeval_run.py --url URL --records RECORDS --out OUT --form default|ignore-errors

The first line of OUT is a JSON object with the ``seconds`` that scoring took, imports aside, and
what it was ``ended_by``. Each other line is one record: ``id``, ``values`` by metric (``null``
where there is no number) and ``errors`` by metric. Faithfulness and contextual relevancy are asked
for. By default deepeval ends at the first error that it cannot mend and returns nothing.
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

MODEL = "gpt-4o-mini"
"""A name that deepeval knows; the server does not care."""
JOB_SECONDS = 180
"""What deepeval gives a metric of a record where no time-out of requests is set."""


def lines_of(
    rows: list[dict[str, Any]], url: str, *, concurrency: int, ignore_errors: bool
) -> list[dict[str, Any]]:
    """``deepeval.evaluate`` with its own way of handling errors."""
    from deepeval import evaluate  # noqa: PLC0415 - reads its settings when it is imported
    from deepeval.evaluate import (  # noqa: PLC0415
        AsyncConfig,
        CacheConfig,
        DisplayConfig,
        ErrorConfig,
    )
    from deepeval.metrics import ContextualRelevancyMetric, FaithfulnessMetric  # noqa: PLC0415
    from deepeval.models import OpenAIModel  # noqa: PLC0415
    from deepeval.test_case import LLMTestCase  # noqa: PLC0415

    model = OpenAIModel(model=MODEL, base_url=url, api_key="none")
    cases = [
        LLMTestCase(
            name=row["id"],
            input=row["question"],
            actual_output=row["response"],
            retrieval_context=row["documents"],
        )
        for row in rows
    ]
    began, results, ended_by = time.perf_counter(), [], None
    try:
        results = evaluate(
            cases,
            [FaithfulnessMetric(model=model), ContextualRelevancyMetric(model=model)],
            async_config=AsyncConfig(max_concurrent=concurrency),
            display_config=DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
            cache_config=CacheConfig(write_cache=False),
            error_config=ErrorConfig(ignore_errors=ignore_errors),
        ).test_results
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
        ended_by = type(error).__name__
    seconds = time.perf_counter() - began
    return [{"seconds": seconds, "ended_by": ended_by}, *map(line_of, results)]


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
    options = parser.parse_args()
    os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(options.timeout)
    os.environ["DEEPEVAL_PER_TASK_TIMEOUT_SECONDS_OVERRIDE"] = str(JOB_SECONDS)
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    ignore = options.form == "ignore-errors"
    lines = lines_of(rows, options.url, concurrency=options.concurrency, ignore_errors=ignore)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
