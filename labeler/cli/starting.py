"""The ``quickstart`` command: five rows and a configuration file to begin with."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from labeler.cli.config import CONFIG_FILE
from labeler.errors import UsageError

ROWS_FILE = "rows.jsonl"

_CONFIG = """\
# Defaults of labeler's options in this folder; the command line and LABELER_* variables win.
# All settings and their origins: labeler label --show-config

[rows]
# preset = "ragas"                     # columns of another tool; or map = ["documents=contexts"]

[judge]
judge = "embedded"                     # compares words: no key and no network, and a low floor
# judge = "openai:gpt-5-mini"          # a real judge; its key is read from OPENAI_API_KEY
# judge = "ollama:qwen3:8b"            # a model on this machine

[run]
# concurrency = 16                     # requests in flight
# budget = 5                           # US dollars; never overspent; for hosted judges only

[gates]                                # for: labeler check labels.jsonl
min = ["adherence_fraction=0.5"]       # the lowest mean that passes
"""

_ROWS = (
    (
        "opening-hours",
        "When is the library open on Saturdays?",
        ["Opening hours. Monday to Friday: 9 to 18. Saturday: 10 to 14. Closed on Sundays."],
        "On Saturdays the library is open from 10 to 14.",
    ),
    (
        "refund",
        "How long does a refund take?",
        [
            "Refunds reach your account within five working days. Shipping costs are not refunded.",
            "Our shop sells garden tools and seeds.",
        ],
        "A refund takes five working days. You also get a voucher of ten euros.",
    ),
    (
        "battery",
        "Can I replace the battery of the lamp myself?",
        ["The lamp has a built-in battery. Only a service partner may replace the battery."],
        "No, only a service partner may replace the battery.",
    ),
    (
        "altitude",
        "How high is the hut?",
        ["The hut sleeps forty guests. Meals are served from noon.", "Dogs are welcome."],
        "The hut lies at 2,100 meters.",
    ),
    (
        "parking",
        "Is parking free?",
        ["Parking is free for guests of the hotel. Other visitors pay two euros an hour."],
        "Parking is free for hotel guests. Other visitors pay two euros an hour.",
    ),
)
"""Id, question, documents and response."""


def quickstart(
    folder: Annotated[str, typer.Argument(metavar="[DIR]", help="Folder to write to.")] = ".",
) -> None:
    """Write five rows and a commented configuration to begin with."""
    target = Path(folder)
    names = ("id", "question", "documents", "response")
    rows = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in _ROWS]
    files = {target / CONFIG_FILE: _CONFIG, target / ROWS_FILE: "".join(rows)}
    if there := [str(path) for path in files if path.exists()]:
        raise UsageError(f"{' and '.join(there)}: never overwritten; name another DIR")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from error
    go = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    typer.echo(f"wrote {' and '.join(map(str, files))}; next:\n")
    typer.echo(f"  {go}labeler label {ROWS_FILE} -o labels.jsonl && labeler metrics labels.jsonl")
