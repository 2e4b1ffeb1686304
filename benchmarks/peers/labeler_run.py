"""Labels records with labeler; runs in labeler's own environment, see ``running.py``.

``bare`` sends the very same requests, made beforehand,
through the openai client alone, reads each answer's JSON and throws it away: what labeler adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import instructor  # noqa: F401 - so that it is imported before the clock starts
import openai
import openai.resources.chat

import labeler
from labeler.judges.openai.request import Request, request_body
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.sentences.example import Example
from peers.running import Clock, Row, main

PROFILE = "reference"
IDS = {
    "faithfulness": ("faithfulness:claim",),
    "answer-relevancy": ("answer_relevancy",),
    "context-precision": ("context_precision",),
    "context-recall": ("context_recall",),
    "context-relevancy": ("context_relevancy",),
    "noise-sensitivity": ("noise_sensitivity_relevant", "noise_sensitivity_irrelevant"),
    "hallucination": ("hallucination_contexts",),
}
Lines = list[Row]


def label_rows(rows: Lines, options: argparse.Namespace) -> Lines:
    """Label, store, and compute."""
    judge = labeler.OpenAIJudge(
        options.model, api_key="none", base_url=options.url, timeout=options.timeout
    )
    warm_up(rows[:1])
    ids = [one for name in options.metrics for one in IDS[name]]
    clock = Clock()
    outcomes = labeler.label(
        rows, judge=judge, store="labels", profile=PROFILE, concurrency=options.concurrency
    )
    found = labeler.metrics(outcomes, ids)
    taken = clock.taken()
    lines = [
        {
            "id": row.id,
            "values": {name: ratio.value for name, ratio in row.metrics.items()},
            "errors": {},
        }
        for row in found
    ]
    return [taken, *lines]


def warm_up(rows: Lines) -> None:
    """Have everything imported that labeling imports when it needs it; nothing is sent."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = labeler.label(rows, judge="embedded", store=folder, profile=PROFILE)
        labeler.metrics(outcomes)
    asyncio.run(knock())


def bare_client(url: str, timeout: float = 180.0) -> openai.AsyncOpenAI:
    """The openai client with its own aiohttp transport, which takes less time than its default."""
    http = openai.DefaultAioHttpClient(timeout=timeout, trust_env=False)
    return openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http)


async def knock() -> None:
    """Have everything imported that a connection takes: nobody listens at that address."""
    client = bare_client("http://127.0.0.1:1/v1", 1.0)
    async with client:
        with suppress(openai.APIConnectionError):
            await client.chat.completions.create(model="none", messages=[])


def sender(
    rows: Sequence[Example], url: str, model: str, concurrency: int, profile: str = "trace"
) -> Callable[[], None]:
    """Return what sends the requests that labeler would send, and nothing else."""
    judge = labeler.OpenAIJudge(model, api_key="none", base_url=url)
    how = label_tasks(judge, LabelOptions(profile=profile))
    bodies = [request_body(Request(judge.spec, how.task(row))) for row in rows]

    async def ask_all() -> None:
        places = asyncio.Semaphore(concurrency)
        client = bare_client(url)

        async def ask(body: dict[str, Any]) -> None:
            async with places:
                completion = await client.chat.completions.create(**body)
                json.loads(completion.choices[0].message.content)

        async with client:
            await asyncio.gather(*map(ask, bodies))

    asyncio.run(knock())
    return lambda: asyncio.run(ask_all())


def send_rows(rows: Lines, options: argparse.Namespace) -> Lines:
    """Send what labeler would send, and nothing else."""
    examples = [Example.model_validate(row) for row in rows]
    send = sender(examples, options.url, options.model, options.concurrency, PROFILE)
    clock = Clock()
    send()
    return [clock.taken()]


if __name__ == "__main__":
    main({"labeler": label_rows, "bare": send_rows}, IDS)
