"""Ask for a label of each row once, with labeler or with the bare client, and time it.

    python benchmarks/reliability_client.py labeler URL ROWS CONCURRENCY FOLDER

A process of its own, so that its CPU time is that of the client alone; the clocks start when
everything is imported. The bare client sends the very same bodies, made beforehand, through the
openai client over its own aiohttp transport; it reads each answer's JSON and throws it away.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai

import labeler.__main__
from labeler.judges.openai.request import Request, request_body
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.sentences.example import Example
from reliability_serving import MODEL, Labeling


def bare_client(url: str) -> openai.AsyncOpenAI:
    """The openai client with its own aiohttp transport, which takes less time than its default."""
    http = openai.DefaultAioHttpClient(timeout=180.0, trust_env=False)
    return openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, http_client=http)


def with_labeler(url: str, rows: Path, concurrency: int, folder: Path) -> Callable[[], None]:
    """Run the command: split, ask, check, store, index, write."""
    command = Labeling(url, rows, folder / "store", folder / "labels.jsonl", concurrency)
    return lambda: labeler_command(command.arguments())


def labeler_command(arguments: list[str]) -> None:
    """Run ``labeler`` in this process, as it is started."""
    sys.argv[1:] = arguments
    try:
        labeler.__main__.main()
    except SystemExit as end:
        if end.code:
            raise


def with_bare_client(url: str, rows: Path, concurrency: int, _: Path) -> Callable[[], None]:
    """Send what labeler would send, and nothing else."""
    judge = labeler.OpenAIJudge(MODEL, api_key="none", base_url=url)
    how = label_tasks(judge, LabelOptions())
    examples = [Example.model_validate_json(line) for line in rows.read_text().splitlines()]
    bodies = [request_body(Request(judge.spec, how.task(example))) for example in examples]

    async def ask_all() -> None:
        places = asyncio.Semaphore(concurrency)
        client = bare_client(url)

        async def ask(body: dict[str, Any]) -> None:
            async with places:
                completion = await client.chat.completions.create(**body)
                json.loads(completion.choices[0].message.content)

        async with client:
            await asyncio.gather(*map(ask, bodies))

    return lambda: asyncio.run(ask_all())


def warm_up(rows: Path) -> None:
    """Have everything imported that either client imports on demand: nobody listens there."""
    url = "http://127.0.0.1:1/v1"
    labeler.OpenAIJudge(MODEL, api_key="none", base_url=url)
    collections = gc.get_threshold()

    async def knock() -> None:
        async with bare_client(url) as client:
            with suppress(openai.APIConnectionError):
                await client.chat.completions.create(model=MODEL, messages=[])

    asyncio.run(knock())
    with tempfile.TemporaryDirectory() as folder, rows.open(encoding="utf-8") as file:
        few = Path(folder) / "rows.jsonl"
        few.write_text(file.readline(), encoding="utf-8")
        out = str(few.with_name("labels.jsonl"))
        labeler_command(
            ["label", str(few), "--judge", "embedded", "--store", f"{folder}/store", "-o", out]
        )
    gc.unfreeze()
    gc.set_threshold(*collections)  # the command chooses its own


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
