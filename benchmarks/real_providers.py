"""Label 100 rows with the real libraries of providers, in front of made-up servers on this machine.

    scripts/check_elsewhere providers [--write docs/judges.md]

The libraries are the pinned packages; the servers take and send the providers' own forms
(`tests/wire/native.py`), so that no request leaves the machine. The command is `labeler label` as
people type it. Exits with 1 where a line is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import labeler
from fault_figures import line
from judge_dialects import write_block
from labeler.judges.providers import PROVIDERS
from wire.clients import comes_true
from wire.native import FORMS, KEY, NativeProvider
from wire.provider import faulty
from wire.relays import Relay, authority
from wire.runs import row_file, rows, settings

ROOT = Path(__file__).parents[1]
COUNT, SECONDS = 100, 300
MOST_UNDER_WAY = 16
"""Rows that may be asked when a command is killed."""
PRICE, BUDGET = (100, 400), Decimal(6)
LIBRARIES = ("anthropic", "google-genai", "botocore")
VARIABLES = {name: PROVIDERS[name].key_variables[0] for name in FORMS}
BOTOCORE = """
import json, sys
from botocore.session import get_session
url, ca, body = json.load(sys.stdin)
client = get_session().create_client("bedrock-runtime", "eu-central-1", endpoint_url=url, verify=ca)
print(json.dumps(client.converse(modelId="m:0", **body)["output"]["message"]["content"]))
"""
"""Sends a body of ours by Amazon's own client, which checks it first, and prints the answer."""
KINDS = (
    *("429", "500", "503", "reset", "close", "short", "html", "bad-json", "truncated", "refusal"),
    *("malformed", "unknown-key", "missing-sentence", "twice-name", "no-choices", "no-usage"),
)


class Case(NamedTuple):
    """A run."""

    name: str
    script: Any = ()
    options: Sequence[str] = ()
    kill_after: int | None = None
    """Labels that are paid when the command is killed; it is run again then."""


CASES = (
    Case("all well"),
    Case("40 % of answers are faults of 16 kinds", faulty(0.4, 3, KINDS)),
    Case(f"a budget of ${BUDGET}", options=(
        "--budget", str(BUDGET), "--price", ",".join(map(str, PRICE)), "--max-output-tokens", "400",
    )),
    Case("killed after 30 labels, then run again", kill_after=30),
)  # fmt: skip


class Ended(NamedTuple):
    """What a case led to."""

    labels: int
    failed: Counter[str]
    requests: int
    twice: int
    """Rows that the server charged more than once for."""
    dollars: Decimal

    def is_right(self, case: Case) -> bool:
        """Whether it is as it should be."""
        if case.options:
            return 0 < self.dollars <= BUDGET and set(self.failed) == {"budget"} and self.labels > 0
        whole = self.labels + self.failed.total() == COUNT
        return whole and (
            bool(case.script) or (self.labels == COUNT and self.twice <= MOST_UNDER_WAY)
        )


def run(python: str, name: str, case: Case) -> Ended:
    """Run one case.

    Args:
        python: the interpreter that has the libraries.
        name: the provider.
        case: what is done.
    """
    environment = {**settings(), VARIABLES[name]: KEY, "PYTHONPATH": str(ROOT)}
    with (
        tempfile.TemporaryDirectory(prefix="providers-") as folder,
        NativeProvider(FORMS[name], case.script, count_tokens=True) as server,
    ):
        given = row_file(Path(folder), rows(COUNT))
        asking = ["--judge", f"{name}:m", "--base-url", server.url, *case.options]
        command = [python, "-m", "labeler", "label", given.name, "-o", "labels.jsonl", *asking]
        if case.kill_after is not None:
            with subprocess.Popen(  # noqa: S603 - our own command
                command, cwd=folder, env=environment, stderr=subprocess.DEVNULL
            ) as first:
                comes_true(lambda: server.paid.total() >= (case.kill_after or 0), SECONDS)
                first.send_signal(signal.SIGKILL)
        done = subprocess.run(  # noqa: S603 - as above
            command, cwd=folder, env=environment, capture_output=True, text=True,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        print(f"{name}, {case.name}", *done.stderr.splitlines(), sep="\n  ", file=sys.stderr)
        written = (Path(folder) / "labels.jsonl").read_text(encoding="utf-8").splitlines()
        outcomes = [json.loads(one) for one in written]
        failed = Counter(str(one["reason"]) for one in outcomes if one["kind"] == "failure")
        tokens = zip(server.tokens, PRICE, strict=True)
        return Ended(
            labels=len(outcomes) - failed.total(),
            failed=failed,
            requests=len(server.calls),
            twice=sum(times > 1 for times in server.paid.values()),
            dollars=sum((Decimal(count * price) for count, price in tokens), Decimal(0)) / 10**6,
        )


def cells(name: str, case: Case, ended: Ended) -> Iterator[object]:
    """A line of the table."""
    failed = ", ".join(f"{count} `{reason}`" for reason, count in sorted(ended.failed.items()))
    yield from (f"`{name}`", case.name, ended.labels, failed, ended.requests, ended.twice)
    yield f"{ended.dollars:.2f}" if case.options else ""


def versions(python: str) -> str:
    """The versions of the libraries."""
    asked = f"import importlib.metadata as m; print(*map(m.version, {LIBRARIES!r}))"
    found = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True)  # noqa: S603
    return ", ".join(f"{a} {b}" for a, b in zip(LIBRARIES, found.stdout.split(), strict=True))


def is_as_botocore_asks(python: str) -> bool:
    """Whether Amazon's client sends what ours does for a row, and reads an answer from the server.

    Args:
        python: the interpreter that has it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="providers-") as folder,
        NativeProvider(FORMS["bedrock"]) as server,
    ):
        trusted = authority(Path(folder), "localhost")  # it sends its key by https only
        judge = labeler.BedrockJudge("m:0", api_key=KEY, base_url=server.url, max_output_tokens=9)
        labeler.label(rows(1), judge=judge, store=labeler.MemoryStore())
        [ours] = server.native
        with Relay(server.port, trusted.context) as relay:
            given = (f"https://localhost:{relay.port}", str(trusted.ca_file), ours.body)
            done = subprocess.run(  # noqa: S603 - our own command
                [python, "-c", BOTOCORE], input=json.dumps(given),
                env={**settings(), VARIABLES["bedrock"]: KEY},
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        print("botocore", done.stdout, done.stderr, sep="\n  ", file=sys.stderr)
    sent = [(unquote(one.path), one.headers["authorization"], one.body) for one in server.native]
    return sent == sent[:1] * 2 and '"toolUse"' in done.stdout


def main() -> int:
    """Print the table, or write it into a page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("environment", help="providers=PYTHON")
    options.add_argument("--write", type=Path, help="the page to write the table into")
    given = options.parse_args()
    python = given.environment.partition("=")[2]
    found = [(name, case, run(python, name, case)) for name in FORMS for case in CASES]
    heading = ("judge", "run", "labels", "failed", "requests", "rows charged twice", "dollars")
    when = f"Measured on {datetime.now(UTC):%Y-%m-%d} with {versions(python)}:"
    lines = [when, "", line(heading), line(["---"] * 7), *(line(cells(*one)) for one in found)]
    same = is_as_botocore_asks(python)
    verdict = "the same" if same else "another"
    lines += ["", f"For a row of `bedrock`, botocore sends {verdict} path, key and body."]
    print("\n".join(lines))
    if given.write is not None:
        write_block(given.write, "providers", lines)
    return 0 if same and all(end.is_right(case) for _, case, end in found) else 1


if __name__ == "__main__":
    sys.exit(main())
