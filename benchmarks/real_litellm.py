"""Label 20 rows through LiteLLM's real proxy, in front of a made-up server, all on this machine.

    scripts/check_elsewhere litellm [--write docs/measured/judges.md]

The proxy is the pinned package, started as its users start it; the server behind it is that of
`tests/wire/dialects.py`, so that no request leaves the machine. The command is `labeler label` as
people type it. Exits with 1 where a line has another number of labels than it should.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from harness import free_port, publish, table, today, until_it_listens, with_environments
from judge_dialects import COUNT, LONG_ROW, Ended, cells, label_at
from peers.environments import quiet, version
from wire.behaviors import error
from wire.dialects import DIALECTS, KEY, Stand
from wire.runs import rows

PROXY_KEY = "sk-proxy-SENTINEL-0123456789"
_BUSY = error(429, "rate_limit_exceeded", headers={"retry-after": "2"})
_PLAIN = DIALECTS[0]
SERVERS = {"plain": _PLAIN, "limiting": replace(_PLAIN, stumbles=dict.fromkeys(range(3, 9), _BUSY))}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "judge": ("plain", {"model": "openai/m"}),
    "glm": ("plain", {"model": "zai/glm-4.5"}),
    "glm-dropping": ("plain", {"model": "zai/glm-4.5", "drop_params": True}),
    "limited": ("limiting", {"model": "openai/m", "num_retries": 0}),
}
"""Models of the proxy: the server behind each, and its parameters in LiteLLM."""


class Case(NamedTuple):
    """A way to use the proxy."""

    name: str
    model: str = "judge"
    key: str | None = PROXY_KEY
    options: Sequence[str] = ()
    labels: int = COUNT


CASES = (
    Case("the proxy's key as API key"),
    Case("the key in a header of the proxy's", key=None,
         options=("--header", "x-litellm-api-key=@PROXY_KEY")),
    Case("a model to which LiteLLM passes no `response_format`", "glm"),
    Case("the same, `drop_params: true`", "glm-dropping"),
    Case("the server answers 429 six times; `num_retries: 0`", "limited"),
    Case("a wrong key", key="sk-wrong-0123456789", labels=0),
    Case("a wrong model", "nothing", labels=0),
)  # fmt: skip


@contextmanager
def proxy(
    python: str,
    servers: dict[str, str],
    served: Mapping[str, tuple[str, dict[str, Any]]] = MappingProxyType(MODELS),
) -> Iterator[str]:
    """Run the proxy; its base URL.

    Args:
        python: the interpreter that has LiteLLM.
        servers: base URLs of the servers behind it, by name.
        served: models, as in :data:`MODELS`.
    """
    models = [
        {
            "model_name": name,
            "litellm_params": {**parameters, "api_base": servers[at], "api_key": KEY},
        }
        for name, (at, parameters) in served.items()
    ]
    config = {"model_list": models, "general_settings": {"master_key": PROXY_KEY}}
    with tempfile.TemporaryDirectory(prefix="litellm-") as name:
        home, port = Path(name), free_port()
        (home / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
        command = [str(Path(python).with_name("litellm")), "--config", "config.yaml"]
        command += ["--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
        environment = {**quiet(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with (home / "log").open("w", encoding="utf-8") as log:
            process = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
            try:
                until_it_listens(process, port)
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                process.terminate()
                process.wait(30)


def reported(ended: Ended) -> str:
    """What the user reads: of the server, and why the run ended."""
    stopped = re.search(r"^labeler: .*?, (after \d+ requests?: .*?);", ended.said, re.MULTILINE)
    return "; ".join(filter(None, (ended.reported, stopped[1] if stopped else "")))


def cases(python: str) -> Iterator[tuple[Case, Ended, tuple[str, ...]]]:
    """Each case, how it ended, and its line."""
    with (
        Stand(SERVERS["plain"]) as plain,
        Stand(SERVERS["limiting"]) as limiting,
        proxy(python, {"plain": plain.url, "limiting": limiting.url}) as url,
    ):
        for case in CASES:
            at = limiting if case.model == "limited" else plain
            before = len(at.calls)
            given = [*rows(COUNT), LONG_ROW]
            ended = label_at(url, given, *case.options, model=case.model, key=case.key)
            labels, mode, _, long = cells(ended)
            print(case.name, *ended.said.splitlines(), sep="\n  ", file=sys.stderr)
            calls = at.calls[before:]
            got = f"{len(calls)}: {', '.join(sorted({call.mode for call in calls}))}"
            yield case, ended, (case.name, labels, mode, got.strip(": "), reported(ended), long)


def main() -> int:
    """Publish the table."""
    given = with_environments(__doc__).parse_args()
    os.environ["PROXY_KEY"] = PROXY_KEY
    found = list(cases(given.pythons[0][1]))
    heads = ["use", "labels", "output mode", "requests at the server", "the run reports"]
    when = f"Measured on {today()} with LiteLLM {version('litellm')}:"
    rows_ = table([*heads, "one row too long"], (row for _, _, row in found), left=6)
    publish(given.write, "litellm", [when, "", *rows_])
    return 0 if all(len(ended.labels) == case.labels for case, ended, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
