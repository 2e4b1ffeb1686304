"""Scores records with ragas; runs in ragas' own environment, see ``running.py``.

``--keep`` gives it its own disk cache. Its metrics have no threshold.
"""

# mypy: disable-error-code="import-not-found, import-untyped"
# ragas is installed in an environment of its own only.

from __future__ import annotations

import argparse
import asyncio
import math
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import openai.resources  # noqa: F401 - so that it is imported before the clock starts
from openai import AsyncOpenAI

from peers.running import Clock, Row, main

EMBEDDER = "text-embedding-3-small"
"""A name that ragas knows; the server does not care."""
CACHE = "cache"
"""Where ragas keeps answers where it is asked to, in the working directory."""
METRICS = ("faithfulness", "context-relevancy", "context-utilization")
NAMES = {
    "q": ("question", "user_input"),
    "d": ("documents", "retrieved_contexts"),
    "r": ("response", "response"),
    "t": ("reference", "reference"),
}
"""What a metric needs: a record's field, and what ragas calls it."""
JOB_SECONDS = 180
"""What ragas gives a metric of a record by default."""


def evaluate_rows(rows: list[Row], options: argparse.Namespace) -> list[Row]:
    """``ragas.evaluate``: what fails becomes NaN."""
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: PLC0415 - only this form
    from ragas import EvaluationDataset, evaluate, metrics  # noqa: PLC0415
    from ragas.cache import DiskCacheBackend  # noqa: PLC0415
    from ragas.embeddings import LangchainEmbeddingsWrapper  # noqa: PLC0415
    from ragas.llms import LangchainLLMWrapper  # noqa: PLC0415
    from ragas.run_config import RunConfig  # noqa: PLC0415

    kinds: dict[str, Callable[[], Any]] = {
        "faithfulness": metrics.Faithfulness,
        "answer-relevancy": metrics.ResponseRelevancy,
        "context-precision": metrics.LLMContextPrecisionWithReference,
        "context-utilization": metrics.LLMContextPrecisionWithoutReference,
        "context-recall": metrics.LLMContextRecall,
        "context-relevancy": metrics.ContextRelevance,
        "noise-sensitivity": metrics.NoiseSensitivity,
    }
    samples = [
        {
            "user_input": row["question"],
            "retrieved_contexts": row["documents"],
            "response": row["response"],
            **({"reference": row["reference"]} if "reference" in row else {}),
        }
        for row in rows
    ]
    address = {"base_url": options.url, "api_key": "none", "timeout": options.timeout}
    llm = ChatOpenAI(model=options.model, **address)
    # Where it may count tokens it fetches a vocabulary from elsewhere.
    embeddings = OpenAIEmbeddings(model=EMBEDDER, check_embedding_ctx_length=False, **address)
    if options.keep:
        cache = DiskCacheBackend(CACHE)
        llm = LangchainLLMWrapper(llm, cache=cache)
        embeddings = LangchainEmbeddingsWrapper(embeddings, cache=cache)
    clock = Clock()
    found = evaluate(
        EvaluationDataset.from_list(samples),
        metrics=[kinds[name]() for name in options.metrics],
        llm=llm,
        embeddings=embeddings,
        run_config=RunConfig(timeout=JOB_SECONDS, max_workers=options.concurrency),
        show_progress=False,
    )
    taken = clock.taken()
    results = [
        {"id": row["id"], "values": {k: number(v) for k, v in scores.items()}, "errors": {}}
        for row, scores in zip(rows, found.scores, strict=True)
    ]
    return [taken, *results]


def score_rows(rows: list[Row], options: argparse.Namespace) -> list[Row]:
    """``ragas.metrics.collections``: what fails raises, and is caught here, metric by metric."""
    from ragas.cache import DiskCacheBackend  # noqa: PLC0415 - only this form needs these
    from ragas.embeddings import OpenAIEmbeddings  # noqa: PLC0415
    from ragas.llms import llm_factory  # noqa: PLC0415
    from ragas.metrics import collections as kinds  # noqa: PLC0415

    async def score_all() -> list[Row]:
        client = AsyncOpenAI(base_url=options.url, api_key="none", timeout=options.timeout)
        cache = DiskCacheBackend(CACHE) if options.keep else None
        llm = llm_factory(options.model, client=client, cache=cache)
        embeddings = OpenAIEmbeddings(client, EMBEDDER, cache)
        make: dict[str, tuple[Callable[[], Any], str]] = {
            "faithfulness": (lambda: kinds.Faithfulness(llm), "qdr"),
            "answer-relevancy": (lambda: kinds.AnswerRelevancy(llm, embeddings), "qr"),
            "context-precision": (lambda: kinds.ContextPrecision(llm), "qdt"),
            "context-utilization": (lambda: kinds.ContextUtilization(llm), "qdr"),
            "context-recall": (lambda: kinds.ContextRecall(llm), "qdt"),
            "context-relevancy": (lambda: kinds.ContextRelevance(llm), "qd"),
            "noise-sensitivity": (lambda: kinds.NoiseSensitivity(llm), "qdrt"),
        }
        metrics = [(make[name][0](), make[name][1]) for name in options.metrics]
        gate = asyncio.Semaphore(options.concurrency)

        async def score(row: Row) -> Row:
            result: Row = {"id": row["id"], "values": {}, "errors": {}}
            for metric, needed in metrics:
                inputs = {NAMES[one][1]: row[NAMES[one][0]] for one in needed}
                async with gate:
                    await note(result, metric.name, metric.ascore, inputs)
            return result

        return await asyncio.gather(*map(score, rows))

    clock = Clock()
    results = asyncio.run(score_all())
    return [clock.taken(), *results]


async def note(result: Row, name: str, score: Callable[..., Awaitable[Any]], inputs: Row) -> None:
    """Write down a metric's value, or the error that it ended with."""
    result["values"][name] = None
    try:
        result["values"][name] = number((await score(**inputs)).value)
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
        result["errors"][name] = type(error).__name__


def number(value: Any) -> float | None:  # noqa: ANN401 - whatever the framework gives
    """A finite number, or ``None``."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main({"evaluate": evaluate_rows, "collections": score_rows}, METRICS)
