"""Label 20 rows at a stand-in of each dialect of chat completions, and tell what a user meets.

    python benchmarks/judge_dialects.py [--only NAME] [--write docs/measured/judges.md]

The servers are made up (`tests/wire/dialects.py`, which names its sources) and on this machine; the
command is `labeler label` as people type it. Where a dialect does not get all labels, the exit code
is 1.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness import options, publish, table
from labeler.cli import run
from wire.dialects import DIALECTS, KEY, LONG, Dialect, Stand
from wire.runs import row_file, rows

COUNT = 20


@dataclass(frozen=True)
class Ended:
    """One command."""

    code: int
    outcomes: Sequence[Mapping[str, Any]]
    said: str

    @property
    def labels(self) -> list[Mapping[str, Any]]:
        """The labels."""
        return [one for one in self.outcomes if one["kind"] == "label"]

    @property
    def mode(self) -> str:
        """In which output mode they were made."""
        modes = {one["signature"]["sampling"].get("output_mode", "strict") for one in self.labels}
        return ", ".join(sorted(modes)) or "none"

    @property
    def reported(self) -> str:
        """What the run says of the server, in few words."""
        modes = re.findall(r"does not accept output mode (\w+)", self.said)
        repairs = re.search(r"kept as stored \((.*?)\)", self.said)
        read = ["no fields for prompt caching"] if "fields for prompt caching" in self.said else []
        read += [f"no {', '.join(modes)}"] if modes else []
        read += ["repairs: " + re.sub(r" \d+", "", repairs[1])] if repairs else []
        return "; ".join(read)


def label(dialect: Dialect, given: list[dict[str, Any]], *more: str, key: str = KEY) -> Ended:
    """Label rows at a stand-in.

    Args:
        dialect: what the server speaks.
        given: the rows.
        more: further options of the command.
        key: the API key.
    """
    with Stand(dialect) as server:
        options = [*dialect.options, *more]
        return label_at(server.url, given, *options, key=key, extra=dialect.body)


def label_at(
    url: str,
    given: list[dict[str, Any]],
    *more: str,
    model: str = "m",
    key: str | None = KEY,
    extra: Mapping[str, Any] = MappingProxyType({}),
) -> Ended:
    """Label rows at an address, in a folder that is forgotten.

    Args:
        url: base URL of the server.
        given: the rows.
        more: further options of the command.
        model: which model is asked for.
        key: the API key; ``None`` if the environment has none.
        extra: what stands in the folder's ``extra.json``.
    """
    with tempfile.TemporaryDirectory(prefix="dialects-") as name:
        folder, said = Path(name), io.StringIO()
        (folder / "extra.json").write_text(json.dumps({**extra}), encoding="utf-8")
        asking = ["label", row_file(folder, given).name, "-o", "labels.jsonl", "--model", model]
        arguments = [*asking, "--base-url", url, *more]
        unread = redirect_stdout(io.StringIO())
        with chdir(folder), _as_typed(arguments, key), unread, redirect_stderr(said):
            code = run()
        written = folder / "labels.jsonl"
        lines = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
        return Ended(code, [json.loads(one) for one in lines], said.getvalue())


@contextmanager
def _as_typed(arguments: Sequence[str], key: str | None) -> Iterator[None]:
    """This process as a command line with a key, and nothing else of the user's settings."""
    kept, environment = sys.argv, dict(os.environ)
    clean = {k: v for k, v in environment.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    try:
        sys.argv = ["labeler", *arguments]
        os.environ.clear()
        os.environ.update(clean | ({"OPENAI_API_KEY": key} if key else {}))
        yield
    finally:
        sys.argv = kept
        os.environ.clear()
        os.environ.update(environment)


LONG_ROW = {**rows(1)[0], "id": "long", "documents": ["Some more words. " * (LONG // 16)]}
"""A row that is longer than the context of every model here."""


def row_of(dialect: Dialect) -> tuple[str, ...]:
    """The line of a dialect in the table."""
    return (dialect.name, *cells(label(dialect, [*rows(COUNT), LONG_ROW])))


def cells(ended: Ended) -> tuple[str, ...]:
    """The table's cells for rows of which the last is too long: labels, mode, reports, reason."""
    failed = [str(one["reason"]) for one in ended.outcomes if one["kind"] == "failure"]
    return (
        f"{len(ended.labels)} of {COUNT}",
        ended.mode,
        ended.reported,
        ", ".join(f"`{reason}`" for reason in failed),
    )


def main() -> int:
    """Publish the table."""
    parser = options(__doc__)
    parser.add_argument("--only", default="", help="a part of a dialect's name")
    given = parser.parse_args()
    found = [row_of(one) for one in DIALECTS if given.only in one.name]
    heads = ["dialect", "labels", "output mode", "the run reports", "one row too long"]
    publish(given.write, "dialects", table(heads, found, left=5))
    return 0 if all(row[1] == f"{COUNT} of {COUNT}" for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
