"""Ask for a label of each row once, with labeler or with the bare client, and time it.

    python benchmarks/reliability_client.py labeler URL ROWS CONCURRENCY FOLDER

A process of its own, so that its CPU time is that of the client alone; the clocks start when
everything is imported. The bare client sends the very same bodies, made beforehand, through the
openai client with the same settings; it reads each answer's JSON and throws it away.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import labeler
from labeler.calculators.index import store_index  # noqa: F401 - else imported on demand
from labeler.judges.openai.client import WIRE_ERRORS, server_of
from labeler.judges.openai.request import request_body
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.sentences.example import Example
from reliability_serving import MODEL


def with_labeler(url: str, rows: Path, concurrency: int, folder: Path) -> Callable[[], None]:
    """Label: split, ask, check, store, write."""
    judge = labeler.OpenAIJudge(MODEL, api_key="none", base_url=url)

    def run() -> None:
        outcomes = labeler.iter_labels(
            rows, judge=judge, store=folder / "store", concurrency=concurrency
        )
        labeler.write_labels(outcomes, folder / "labels.jsonl")

    return run


def with_bare_client(url: str, rows: Path, concurrency: int, _: Path) -> Callable[[], None]:
    """Send what labeler would send, and nothing else."""
    judge = labeler.OpenAIJudge(MODEL, api_key="none", base_url=url)
    how = label_tasks(judge, LabelOptions())
    examples = [Example.model_validate_json(line) for line in rows.read_text().splitlines()]
    bodies = [request_body(judge.spec, how.task(example)) for example in examples]

    async def ask_all() -> None:
        places = asyncio.Semaphore(concurrency)
        client = server_of(judge.spec, "none").open(judge.spec.timeout)

        async def ask(body: dict[str, Any]) -> None:
            async with places:
                completion = await client.chat.completions.create(**body)
                json.loads(completion.choices[0].message.content)

        async with client:
            await asyncio.gather(*map(ask, bodies))

    return lambda: asyncio.run(ask_all())


def warm_up(rows: Path) -> None:
    """Have everything imported that either client imports on demand: nobody listens there."""
    judge = labeler.OpenAIJudge(MODEL, api_key="none", base_url="http://127.0.0.1:1/v1")

    async def knock() -> None:
        async with server_of(judge.spec, "none").open(1.0) as client:
            with suppress(*WIRE_ERRORS):
                await client.chat.completions.create(model=MODEL, messages=[])

    asyncio.run(knock())
    with tempfile.TemporaryDirectory() as folder, rows.open(encoding="utf-8") as file:
        labeler.label([json.loads(file.readline())], judge="embedded", store=folder)


CLIENTS = {"labeler": with_labeler, "bare": with_bare_client}


def main() -> None:
    """Run one client and print its seconds on the clock and on the CPU."""
    name, url, rows, concurrency, folder = sys.argv[1:]
    warm_up(Path(rows))
    run = CLIENTS[name](url, Path(rows), int(concurrency), Path(folder))
    began, cpu = time.perf_counter(), time.process_time()
    run()
    taken = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
