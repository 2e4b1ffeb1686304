"""Labels records with labeler against a given server; runs in labeler's own environment.

    python labeler_run.py --url URL --records RECORDS --out OUT --form labeler|bare

It writes what the peers' runs write. ``bare`` sends the very same requests, made beforehand,
through the openai client alone, reads each answer's JSON and throws it away: what labeler adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import instructor  # noqa: F401 - so that it is imported before the clock starts
import openai
import openai.resources.chat

import labeler
from labeler.judges.openai.request import Request, request_body
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.sentences.example import Example

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
Lines = list[dict[str, Any]]


def label_rows(rows: Lines, options: argparse.Namespace) -> Lines:
    """Label, store, and compute."""
    judge = labeler.OpenAIJudge(
        options.model, api_key="none", base_url=options.url, timeout=options.timeout
    )
    warm_up(rows[:1])
    ids = [one for name in options.metrics.split(",") for one in IDS[name]]
    began, cpu = time.perf_counter(), time.process_time()
    outcomes = labeler.label(
        rows, judge=judge, store="labels", profile=PROFILE, concurrency=options.concurrency
    )
    found = labeler.metrics(outcomes, ids)
    whole = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    lines = [
        {
            "id": row.id,
            "values": {name: ratio.value for name, ratio in row.metrics.items()},
            "errors": {},
        }
        for row in found
    ]
    return [{**whole, "ended_by": None}, *lines]


def warm_up(rows: Lines) -> None:
    """Have everything imported that labeling imports when it needs it; nothing is sent."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = labeler.label(rows, judge="embedded", store=folder, profile=PROFILE)
        labeler.metrics(outcomes)
    asyncio.run(knock())


def bare_client(url: str, timeout: float) -> openai.AsyncOpenAI:
    """The openai client with its own aiohttp transport, which takes less time than its default."""
    http = openai.DefaultAioHttpClient(timeout=timeout, trust_env=False)
    return openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http)


async def knock() -> None:
    """Have everything imported that a connection takes: nobody listens at that address."""
    client = bare_client("http://127.0.0.1:1/v1", 1.0)
    async with client:
        with suppress(openai.APIConnectionError):
            await client.models.retrieve("none")


def send_rows(rows: Lines, options: argparse.Namespace) -> Lines:
    """Send what labeler would send, and nothing else."""
    judge = labeler.OpenAIJudge(options.model, api_key="none", base_url=options.url)
    how = label_tasks(judge, LabelOptions(profile=PROFILE))
    bodies = [
        request_body(Request(judge.spec, how.task(Example.model_validate(row)))) for row in rows
    ]

    async def ask_all() -> None:
        places = asyncio.Semaphore(options.concurrency)
        client = bare_client(options.url, options.timeout)

        async def ask(body: dict[str, Any]) -> None:
            async with places:
                completion = await client.chat.completions.create(**body)
                json.loads(completion.choices[0].message.content)

        async with client:
            await asyncio.gather(*map(ask, bodies))

    asyncio.run(knock())
    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(ask_all())
    whole = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    return [{**whole, "ended_by": None}]


def main() -> None:
    """Read, label, write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["labeler", "bare"], required=True)
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--metrics", default=",".join(IDS))
    parser.add_argument("--model", default="gpt-4o-mini")
    parser.add_argument("--threshold", type=float, help="nothing: it is no part of labels")
    parser.add_argument("--keep", action="store_true", help="nothing: labels are always kept")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    lines = (label_rows if options.form == "labeler" else send_rows)(rows, options)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
