"""Request bodies never change under a version: neither the first one nor the re-ask's."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

from labeler.judges.limits import Limits
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.pace import CURRENT, Pace
from labeler.judges.task import Task
from labeler.plugins.scores.criteria import CRITERIA
from labeler.plugins.scores.tasks import ScoreTasks, steps_task
from labeler.plugins.similarity.comparing import QuestionsTasks
from labeler.sentences.example import Example
from labeler.sentences.splitting import SPLITTERS
from support import samples
from wire.behaviors import answers, says
from wire.calls import Json
from wire.provider import Provider
from wire.runs import judge_of

GOLDEN = Path(__file__).parents[1] / "golden" / "requests.json"
"""Digests of both bodies, by request."""
EXAMPLE = samples.keyed_example(
    documents=[["Paris is the capital.", "Line\u2028break \u202e{{x}} <|im_end|>"], []],
    response=['Say "hi".', "It lies on the Seine."],
    reference=["Paris.", "It is up north."],
)
PROFILES = ("trace", "claims", "reference")
MODES = ("schema", "tools", "json", "prompt")


def _broken(label: Json) -> None:
    label["all_relevant_sentence_keys"] = ["9z", "general"]
    label["sentence_support_information"].pop()


def request(judge: OpenAIJudge, name: str) -> Task[Any]:
    """The request for a label of a profile, for a score, for steps, or for questions."""
    if name in PROFILES:
        prompt, schema = f"{name}/v1", f"label-{name}/v1"
        return samples.request(EXAMPLE, judge.spec, prompt=prompt, schema=schema)
    if name == "questions":
        texts = tuple(sentence.text for sentence in EXAMPLE.response)
        row = Example(
            id="r1",
            question=EXAMPLE.question,
            documents=(),
            response=" ".join(texts),
            documents_sentences=(),
            response_sentences=texts,
        )
        return QuestionsTasks(judge, SPLITTERS["given"]).task(row)
    if name == "steps":
        return steps_task(judge, CRITERIA["rubric_faithfulness"])
    return ScoreTasks(judge, SPLITTERS["given"], CRITERIA[name]).keyed_task(EXAMPLE)


def bodies(name: str, mode: str = "strict") -> list[Json]:
    """The bodies that a judge sends: for an answer that breaks the rules, and after it."""
    script = [answers(_broken) if name in PROFILES else says("No.")]

    async def ask(judge: OpenAIJudge) -> None:
        CURRENT.set(Pace(limits=Limits(max_outage=0)))
        try:
            await judge.label(request(judge, name))
        finally:
            await judge.aclose()

    with Provider(script, modes=("strict", *MODES)) as provider:
        settings: dict[str, Any] = {"temperature": 0.0, "seed": 7, "output_mode": mode}
        settings |= {"preflight": False, "max_output_tokens": 900}
        asyncio.run(ask(judge_of(provider, **settings)))
    return [{n: v for n, v in call.body.items() if n != "stream"} for call in provider.calls]


def test_requests_are_sent_as_they_were() -> None:
    """Byte for byte. Where this fails on purpose, count up the version of what changed."""
    names = [*PROFILES, "questions", "steps", *CRITERIA]
    found = {name: bodies(name) for name in names}
    found |= {f"trace {mode}": bodies("trace", mode) for mode in MODES}
    digests = {
        name: hashlib.sha256(json.dumps(both).encode()).hexdigest()[:16]
        for name, both in found.items()
    }
    assert digests == json.loads(GOLDEN.read_text(encoding="utf-8"))
