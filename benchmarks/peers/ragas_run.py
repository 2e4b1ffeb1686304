"""Scores records with ragas against a given server; runs in ragas' own environment.

    python ragas_run.py --url URL --records RECORDS --out OUT --form evaluate|collections

The first line of OUT is a JSON object with the ``seconds`` that scoring took, imports aside, and
what it was ``ended_by``. Each other line is one record: ``id``, ``values`` by metric (``null``
where there is no number) and ``errors`` by metric. Faithfulness, context relevance and context
utilization are asked for.
"""

# mypy: disable-error-code="import-not-found, import-untyped"
# ragas is installed in an environment of its own only.

from __future__ import annotations

import argparse
import asyncio
import json
import math
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

Row = dict[str, Any]
Result = dict[str, Any]
Scored = tuple[list[Result], float]
"""Results, and seconds."""

MODEL = "gpt-4o-mini"
"""A name that ragas knows; the server does not care."""
JOB_SECONDS = 180
"""What ragas gives a metric of a record by default."""


def evaluate_rows(rows: list[Row], url: str, timeout: float, concurrency: int) -> Scored:
    """``ragas.evaluate``: what fails becomes NaN."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - only this form needs it
    from ragas import EvaluationDataset, evaluate  # noqa: PLC0415
    from ragas.metrics import (  # noqa: PLC0415
        ContextRelevance,
        Faithfulness,
        LLMContextPrecisionWithoutReference,
    )
    from ragas.run_config import RunConfig  # noqa: PLC0415

    samples = [
        {
            "user_input": row["question"],
            "retrieved_contexts": row["documents"],
            "response": row["response"],
        }
        for row in rows
    ]
    began = time.perf_counter()
    found = evaluate(
        EvaluationDataset.from_list(samples),
        metrics=[Faithfulness(), ContextRelevance(), LLMContextPrecisionWithoutReference()],
        llm=ChatOpenAI(model=MODEL, base_url=url, api_key="none", timeout=timeout),
        run_config=RunConfig(timeout=JOB_SECONDS, max_workers=concurrency),
        show_progress=False,
    )
    seconds = time.perf_counter() - began
    results = [
        {"id": row["id"], "values": {k: number(v) for k, v in scores.items()}, "errors": {}}
        for row, scores in zip(rows, found.scores, strict=True)
    ]
    return results, seconds


def score_rows(rows: list[Row], url: str, timeout: float, concurrency: int) -> Scored:
    """``ragas.metrics.collections``: what fails raises, and is caught here, metric by metric."""
    from ragas.llms import llm_factory  # noqa: PLC0415 - only this form needs it
    from ragas.metrics.collections import (  # noqa: PLC0415
        ContextRelevance,
        ContextUtilization,
        Faithfulness,
    )

    async def score_all() -> list[Result]:
        client = AsyncOpenAI(base_url=url, api_key="none", timeout=timeout)
        llm = llm_factory(MODEL, client=client)
        faithful, relevant, used = Faithfulness(llm), ContextRelevance(llm), ContextUtilization(llm)
        gate = asyncio.Semaphore(concurrency)

        async def score(row: Row) -> Result:
            asked = {"user_input": row["question"], "retrieved_contexts": row["documents"]}
            answered = {**asked, "response": row["response"]}
            result: Result = {"id": row["id"], "values": {}, "errors": {}}
            for metric, inputs in ((faithful, answered), (relevant, asked), (used, answered)):
                async with gate:
                    await note(result, metric.name, metric.ascore, inputs)
            return result

        return await asyncio.gather(*map(score, rows))

    began = time.perf_counter()
    return asyncio.run(score_all()), time.perf_counter() - began


async def note(
    result: Result, name: str, score: Callable[..., Awaitable[Any]], inputs: Row
) -> None:
    """Write down a metric's value, or the error that it ended with."""
    result["values"][name] = None
    try:
        result["values"][name] = number((await score(**inputs)).value)
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
        result["errors"][name] = type(error).__name__


def number(value: Any) -> float | None:  # noqa: ANN401 - whatever the framework gives
    """A finite number, or ``None``."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def main() -> None:
    """Read, score, write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["evaluate", "collections"], required=True)
    parser.add_argument("--timeout", type=float, default=10.0)
    parser.add_argument("--concurrency", type=int, default=16)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    act = evaluate_rows if options.form == "evaluate" else score_rows
    results, seconds = act(rows, options.url, options.timeout, options.concurrency)
    lines = [{"seconds": seconds, "ended_by": None}, *results]
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
