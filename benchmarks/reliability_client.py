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
from collections.abc import Callable
from pathlib import Path

import labeler.__main__
from labeler.sentences.example import Example
from peers.labeler_run import knock, sender
from peers.running import Clock
from reliability_serving import MODEL, Labeling


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
    examples = [Example.model_validate_json(line) for line in rows.read_text().splitlines()]
    return sender(examples, url, MODEL, concurrency)


def warm_up(rows: Path) -> None:
    """Have everything imported that either client imports on demand: nobody listens there."""
    labeler.OpenAIJudge(MODEL, api_key="none", base_url="http://127.0.0.1:1/v1")
    collections = gc.get_threshold()
    asyncio.run(knock())
    with tempfile.TemporaryDirectory() as folder, rows.open(encoding="utf-8") as file:
        few = Path(folder) / "rows.jsonl"
        few.write_text(file.readline(), encoding="utf-8")
        places = ("--store", f"{folder}/store", "-o", str(few.with_name("labels.jsonl")))
        labeler_command(["label", str(few), "--judge", "embedded", *places])
    gc.unfreeze()
    gc.set_threshold(*collections)  # the command chooses its own


CLIENTS = {"labeler": with_labeler, "bare": with_bare_client}


def main() -> None:
    """Run one client and print its seconds on the clock and on the CPU."""
    name, url, rows, concurrency, folder = sys.argv[1:]
    warm_up(Path(rows))
    run = CLIENTS[name](url, Path(rows), int(concurrency), Path(folder))
    clock = Clock()
    run()
    taken = clock.taken()
    print(json.dumps({name: taken[name] for name in ("seconds", "cpu")}))


if __name__ == "__main__":
    main()
