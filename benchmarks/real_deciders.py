"""Judge with probabilities through LiteLLM's real proxy, and hold the requests against libraries.

    scripts/check_elsewhere deciders [--only NAME] [--write docs/measured]

Everything is on this machine: the oracle of `tests/wire/decider.py` answers from published labels,
behind LiteLLM's proxy or before openai's own client; `jevcompat mock` breaks one requirement of the
systemone form at a time; DeepEval asks a server that counts. Tokens are those of `o200k_base`, from
the vocabulary that LiteLLM brings. Exits with 1 where a label is wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import labeler
from decisions import known_labels
from harness import free_port, publish, table, until_it_listens, with_environments
from labeler.judges.judge import JUDGES
from labeler.labels.record import LabelFailure, LabelRecord, Outcome
from peers.environments import quiet, version
from peers.records import made_up
from prompt_costs import tokens, words
from real_litellm import PROXY_KEY, proxy
from wire.calls import Json
from wire.decider import KEY, Decider, oracle
from wire.test_decision_judge import given

ROWS = 200
_MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "luna": ("oracle", {"model": "openai/gpt-6-luna"}),
    "jev": ("jev", {"model": "typesafe/jev-latest"}),
}
"""Models of the proxy, which translates between both APIs."""


def some_labels(count: int) -> dict[str, LabelRecord]:
    """The first published labels that keep the contract, by the text of their request."""
    return dict(islice(known_labels(1).items(), count))


def verdicts(record: Outcome) -> object:
    """What a label says: relevant and utilized keys, and the support of each sentence."""
    if isinstance(record, LabelFailure):
        return record.reason
    label = record.label
    return (
        set(label.all_relevant_sentence_keys),
        set(label.all_utilized_sentence_keys),
        {
            one.response_sentence_key: (one.fully_supported, set(one.supporting_sentence_keys))
            for one in label.sentence_support_information
        },
    )


def through_proxy(python: str) -> Iterator[tuple[str, bool]]:
    """Label with each judge in front of each kind of model."""
    known = some_labels(ROWS)
    with Decider(oracle(known)) as server:
        servers = {"oracle": server.url, "jev": server.url.removesuffix("/v1")}
        with proxy(python, servers, _MODELS) as url:
            for judge in ("decisions", "systemone"):
                for model in _MODELS:
                    before, rejected = len(server.requests), server.rejected
                    made = labels_at(judge, model, url, [*map(given, known.values())], PROXY_KEY)
                    right = sum(
                        _without_notes(verdicts(a)) == _without_notes(verdicts(b))
                        for a, b in zip(known.values(), made, strict=True)
                    )
                    sent = len(server.requests) - before
                    text = (
                        f"LiteLLM {version('deciders', 'litellm')}, `{judge}` before `{model}`: "
                        f"{right} of {ROWS} labels as published, {sent} requests at the server, "
                        f"{server.rejected - rejected} rejected there"
                    )
                    yield text, right == ROWS


def _without_notes(found: object) -> object:
    """Leave out supporting keys that no choice can name, such as ``supported_without_sentence``."""
    if not isinstance(found, tuple):
        return found
    relevant, utilized, support = found
    kept = {
        key: (full, {one for one in by if one[0].isdigit()} if full else set())
        for key, (full, by) in support.items()
    }
    return relevant, utilized, kept


def labels_at(
    judge: str, model: str, url: str, rows: Sequence[Json], key: str = KEY
) -> list[Outcome]:
    """Label rows with published sentences."""
    made = JUDGES[judge](model, api_key=key, base_url=url, max_attempts=2)
    store = labeler.MemoryStore()
    return list(labeler.iter_labels(rows, judge=made, store=store, splitter="given"))


_OPENAI = """
import json, sys
import httpx2, openai
from pydantic import TypeAdapter
from openai.types import Decision
url, key, bodies = json.load(sys.stdin)
client = openai.OpenAI(base_url=url, api_key=key)
for body in bodies:
    parsed = client.decisions.create(**body)
    again = TypeAdapter(Decision).validate_json(parsed.model_dump_json(), strict=True)
    print(json.dumps([one.model_dump() for one in again.answers]))
"""


def with_openai(python: str) -> Iterator[tuple[str, bool]]:
    """Send our bodies by openai's own client, and read the answers into its types, strictly."""
    known = some_labels(50)
    with Decider(oracle(known)) as server:
        labels_at("decisions", "gpt-6-luna", server.url, [*map(given, known.values())])
        bodies = [{k: v for k, v in one.items() if k != "path"} for one in server.requests]
        found = subprocess.run(
            [python, "-c", _OPENAI],
            input=json.dumps([server.url, KEY, bodies]),
            capture_output=True,
            text=True,
            check=False,
        )
        again = server.requests[len(bodies) :]
    if found.returncode:
        print(found.stderr[-2000:], file=sys.stderr)
    answered = [json.loads(one) for one in found.stdout.splitlines()]
    whole = sum(len(a) == len(b["questions"]) for a, b in zip(answered, bodies, strict=False))
    same = sum({**a, "path": ""} == {**b, "path": ""} for a, b in zip(again, bodies, strict=False))
    text = (
        f"openai {version('deciders', 'openai')}: {whole} of {len(bodies)} answers of the tests' "
        f"server read into its types, strictly; {same} requests of its client equal ours"
    )
    yield text, whole == same == len(bodies)


@contextmanager
def mock(python: str, *faults: str) -> Iterator[str]:
    """Run ``jevcompat mock`` with faults; its address."""
    port = free_port()
    command = [str(Path(python).with_name("jevcompat")), "mock", "--port", str(port)]
    command += [part for fault in faults for part in ("--fault", fault)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


UNSEEN = ("id-leaks", "batch-leaks", "order-leaks")
"""Faults that no answer shows: the label is another, and nothing tells."""


def faults(python: str) -> list[tuple[str, str, bool]]:
    """Label two rows at a mock with each fault: name, outcome, and whether that is right."""
    tool = str(Path(python).with_name("jevcompat"))
    listed = subprocess.run([tool, "mock", "--list-faults"], capture_output=True, text=True)  # noqa: PLW1510
    names = [one.split()[0] for one in listed.stdout.splitlines() if one.strip()]
    long = " ".join(f"Item {n} costs {n} euros." for n in range(70))
    rows = [*made_up(1, 1), {**made_up(1, 2)[0], "id": "long", "documents": [long]}]

    def at(*broken: str) -> list[Outcome]:
        with mock(python, *broken) as url:
            made = JUDGES["systemone"]("jev-latest", api_key=KEY, base_url=url, max_attempts=1)
            return list(labeler.iter_labels(rows, judge=made, store=labeler.MemoryStore()))

    clean = at()
    assert all(isinstance(one, LabelRecord) for one in clean), clean  # noqa: S101
    found = []
    for name in names:
        try:
            outcomes = at(name)
        except labeler.LabelerError as error:
            found.append((name, f"the run stops: {_brief(str(error))}", True))
            continue
        reasons = Counter(one.reason for one in outcomes if isinstance(one, LabelFailure))
        pairs = [(verdicts(a), verdicts(b)) for a, b in zip(outcomes, clean, strict=True)]
        if reasons:
            words = ", ".join(f"{reason} {count}" for reason, count in reasons.items())
            found.append((name, f"failed: {words}", reasons.total() == len(rows)))
        elif all(a == b for a, b in pairs):
            found.append((name, "the right labels", True))
        elif name == "cap-64":  # the mock answers at random to each step
            right = all(_flags(a) == _flags(b) for a, b in pairs)
            found.append((name, "verdicts only: right; choices of 71 in two steps", right))
        else:
            found.append((name, "other labels; no answer shows it", name in UNSEEN))
    return found


def _flags(found: Any) -> object:  # noqa: ANN401 - of verdicts
    """Return verdicts without supporting keys."""
    relevant, utilized, support = found
    return relevant, utilized, {key: full for key, (full, _) in support.items()}


def _brief(text: str) -> str:
    text = re.sub(r" at 127\.0\.0\.1:\d+", "", text)  # another port in each run
    return text.partition(": ")[2].partition(";")[0].partition(" (")[0] or text[:60]


_DEEPEVAL = """
import json, sys
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig
from deepeval.metrics import (
    AnswerRelevancyMetric, ContextualPrecisionMetric, ContextualRecallMetric,
    ContextualRelevancyMetric, FaithfulnessMetric, HallucinationMetric,
)
from deepeval.models.system_one.typesafe_model import TypeSafeModel
from deepeval.test_case import LLMTestCase
url, key, rows, merged = json.load(sys.stdin)
model = TypeSafeModel(api_key=key, base_url=url)
metrics = [
    kind(eval_mode="system_one", system_one_model=model, async_mode=False)
    for kind in (
        AnswerRelevancyMetric, ContextualPrecisionMetric, ContextualRecallMetric,
        ContextualRelevancyMetric, FaithfulnessMetric, HallucinationMetric,
    )
]
cases = [
    LLMTestCase(
        input=row["question"], actual_output=row["response"], expected_output=row["reference"],
        retrieval_context=row["documents"], context=row["documents"],
    )
    for row in rows
]
if merged:
    quiet = DisplayConfig(print_results=False, show_indicator=False)
    evaluate(cases, metrics, async_config=AsyncConfig(run_async=False), display_config=quiet)
else:
    for case in cases:
        for metric in metrics:
            metric.measure(case, _show_indicator=False)
"""


class _Anything(Decider):
    """Answers any question of the systemone form, and keeps the requests."""

    def respond(self, path: str, body: Json) -> tuple[int, bytes]:
        """Return an answer to each question."""
        self.requests.append({**body, "path": path})
        answers = {name: self._any(one) for name, one in body["questions"].items()}
        usage = {"input_tokens": 1, "output_tokens": 0}
        return 200, json.dumps({"model": "jev-1.13.0", "answers": answers, "usage": usage}).encode()

    @staticmethod
    def _any(question: Json) -> Json:
        kind, criteria = question["type"], question.get("criteria") or {}
        if kind == "noul":
            return {"type": "noul", "noul": 0.9}
        names = [str(n) for n in range(len(criteria))] if kind == "score" else [*criteria]
        likely = dict.fromkeys(names, 1 / len(names))
        answer = {"type": kind, "probabilities": likely, "confidence": 0.0}
        if kind == "choice":
            return answer | {"choice": names[0]}
        legend = dict(zip(names, criteria, strict=True))
        return answer | {"score": (len(names) - 1) / 2, "legend": legend}


def deepeval_requests(python: str, rows: Sequence[Json], *, merged: bool) -> list[Json]:
    """Measure six metrics of DeepEval, each alone or by ``evaluate``; the requests it sends."""
    with tempfile.TemporaryDirectory() as home, _Anything(lambda _: 0.9) as server:
        done = subprocess.run(
            [python, "-c", _DEEPEVAL],
            input=json.dumps([server.url.removesuffix("/v1"), KEY, rows, merged]),
            capture_output=True, text=True, check=False, cwd=home,
            env={**quiet(Path(home)), "TYPESAFE_API_KEY": KEY},
        )  # fmt: skip
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    return server.requests


def next_to_deepeval(python: str, count: int = 4) -> Iterator[str]:
    """Count requests and tokens of one label, and of DeepEval's six metrics."""
    rows = [
        {**row, "reference": ". ".join(row["response"].split(". ")[:2]).rstrip(".") + "."}
        for row in made_up(count, 1)
    ]
    with _Anything(lambda _: 0.9) as ours:
        judge = JUDGES["systemone"]("jev-latest", api_key=KEY, base_url=ours.url)
        store = labeler.MemoryStore()
        made = list(labeler.iter_labels(rows, judge=judge, store=store, profile="reference"))
    assert all(isinstance(one, LabelRecord) for one in made), made[:1]  # noqa: S101
    sent = [ours.requests, *(deepeval_requests(python, rows, merged=one) for one in (True, False))]
    asked = [sum(len(body["questions"]) for body in each) for each in sent]
    spent = [sum(tokens(python, [words(body) for body in each])) for each in sent]
    six = "deepeval, `system_one`, six metrics"
    tools = ("labeler, `systemone`, `reference`", f"{six}, `evaluate()`", f"{six}, each alone")
    lines = [
        ("requests", *(f"{len(each) / count:g}" for each in sent)),
        ("questions", *(f"{number / count:g}" for number in asked)),
        ("input tokens, without JSON syntax", *(f"{number / count:,.0f}" for number in spent)),
        ("verdicts on single sentences", "yes, by key", *["no: a score a metric"] * 2),
    ]
    return table(("a record", *tools), lines)


def main() -> int:
    """Print the findings, or write the tables into the pages."""
    parser = with_environments(__doc__)
    parser.add_argument("--only", choices=("proxy", "openai", "faults", "deepeval"))
    given = parser.parse_args()
    (_, python), met = given.pythons[0], True
    os.environ.pop("OPENAI_BASE_URL", None)
    for name, check in {"proxy": through_proxy, "openai": with_openai}.items():
        if given.only in {None, name}:
            for text, holds in check(python):
                met = met and holds
                print(f"{'yes' if holds else 'NO '} {text}", flush=True)
    pages = given.write  # the folder of both pages
    if given.only in {None, "faults"}:
        found = faults(python)
        met = met and all(right for *_, right in found)
        lines = table(
            ["fault", "two rows"], ((f"`{name}`", said) for name, said, _ in found), left=2
        )
        publish(pages and pages / "reliability.md", "jevcompat", lines)
        print(*(f"NO {name}" for name, _, right in found if not right), sep="\n")
    if given.only in {None, "deepeval"}:
        publish(pages and pages / "judges.md", "deciders", next_to_deepeval(python))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
