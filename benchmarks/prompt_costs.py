"""Tokens and cost of the prompts of every label profile.

    npm install --prefix FOLDER js-tiktoken
    python benchmarks/prompt_costs.py FOLDER [--every 10] [--write docs/judges.md]

Tokens are those of o200k_base, whose vocabulary js-tiktoken carries; nothing of it is in this
package. The rows are every tenth published RAGBench row with its published sentences; they have no
reference answer, so the profile `reference` shows the response in its place as well.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from os.path import commonprefix
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import labeler
from fault_figures import line
from judge_dialects import write_block
from labeler.judges.openai.spec import spec_of
from labeler.judges.pricing import Price, find_price
from labeler.judges.prompting import Prompt, load_prompt
from labeler.judges.tokens import MESSAGE_FRAME, REPLY_FRAME
from labeler.labeling.estimate import cache_rules
from labeler.labels.profiles import PROFILES, family_of
from labeler.labels.record import LabelRecord, Usage
from labeler.labels.schemas import load_schema
from labeler.sentences.example import KeyedExample, Piece, key_reference
from ragbench_data import ragbench_files

MODELS = ("gpt-5-mini", "gpt-5.6-luna")
"""One with the cache rules before GPT-5.6, one with those since."""
PAIRED = 600
"""Rows among which those of the same question and documents are paired."""
MILLION = 1_000_000
_COUNT = """
import { Tiktoken } from "js-tiktoken/lite";
import ranks from "js-tiktoken/ranks/o200k_base";
import fs from "fs";
const encoding = new Tiktoken(ranks);
const texts = JSON.parse(fs.readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.map((text) => encoding.encode(text, [], []).length)));
"""
_FENCE = re.compile(r"(?m)^(The marker is|BEGIN [A-Z]+|END [A-Z]+) ?[0-9a-f]{8,16}\n?")


def counts(folder: Path, texts: Sequence[str]) -> list[int]:
    """The tokens of each text.

    Args:
        folder: where js-tiktoken is installed.
        texts: any texts.
    """
    program = folder / "count.mjs"  # modules are looked up next to the program
    program.write_text(_COUNT, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - the program above
        ["node", str(program)],  # noqa: S607 - whichever is installed
        input=json.dumps(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: list[int] = json.loads(done.stdout)
    return found


def published(every: int) -> list[LabelRecord]:
    """Every so many published labels, with the response as a reference answer."""
    found: list[LabelRecord] = []
    for file in ragbench_files():
        records = [one for one in labeler.read_ragbench(file) if isinstance(one, LabelRecord)]
        for record in records[::every]:
            pieces = [Piece(s.text, s.start, s.end) for s in record.example.response]
            shown = record.example.model_copy(update={"reference": key_reference(pieces)})
            found.append(record.model_copy(update={"example": shown}))
    return found


@dataclass(frozen=True)
class Measured:
    """One prompt's tokens over the rows."""

    prompt: Prompt
    static: int
    """Tokens of schema and instructions."""
    records: tuple[int, ...]
    """Tokens of the rest of each request."""
    fences: float
    """Mean tokens of a record that markers and block names take."""

    @property
    def mean(self) -> float:
        """Mean tokens of a request."""
        return self.static + sum(self.records) / len(self.records)

    def cost(self, model: str, price: Price) -> tuple[float, Decimal]:
        """The cached share, and the dollars for the input of a million records, by model."""
        cached = cache_rules(spec_of(model, {})).cacheable(self.static)
        each = (Usage(prompt_tokens=self.static + n, cached_tokens=cached) for n in self.records)
        dollars = sum(map(price.cost, each), Decimal(0))
        return cached / self.mean, dollars * MILLION / len(self.records)


def measured(folder: Path, name: str, examples: Sequence[KeyedExample]) -> Measured:
    """Count one prompt."""
    prompt = load_prompt(name)
    schema = load_schema(PROFILES[family_of(name)].schema_of(name))
    users = [prompt.render(example)[1]["content"] for example in examples]
    bare = [_FENCE.sub("", user) for user in users]
    system, sent, *rest = counts(folder, [prompt.system, schema.compact, *users, *bare])
    own, unfenced = rest[: len(users)], rest[len(users) :]
    return Measured(
        prompt,
        system + sent + MESSAGE_FRAME + REPLY_FRAME,
        tuple(n + MESSAGE_FRAME for n in own),
        (sum(own) - sum(unfenced)) / len(users),
    )


def shared_starts(folder: Path, name: str, examples: Sequence[KeyedExample]) -> float:
    """Mean tokens that the data of two responses to one question and its documents share."""
    prompt = load_prompt(name)

    def asked(example: KeyedExample) -> tuple[object, ...]:
        return example.question, [[s.text for s in d] for d in example.documents]

    groups = (list(group) for _, group in groupby(sorted(examples, key=repr_of), key=asked))
    pairs = [
        (group[0], group[-1])
        for group in groups
        if [s.text for s in group[0].response] != [s.text for s in group[-1].response]
    ]
    starts = [
        commonprefix([prompt.render(example)[1]["content"] for example in pair])  # noqa: RUF071 - of texts
        for pair in pairs
    ]
    return sum(counts(folder, starts)) / len(starts) if starts else 0.0


def repr_of(example: KeyedExample) -> str:
    """Sorts examples of the same question and documents next to each other."""
    return repr((example.question, [[s.text for s in d] for d in example.documents]))


def table(folder: Path, every: int) -> Iterator[str]:
    """One line for each profile."""
    examples, pairs = (
        [record.example for record in records]
        for records in (published(every), published(1)[:PAIRED])
    )
    yield line(
        ("prompt", "static", "a record", "of it fences", "shared by two responses",
         *(f"{model}: cached, $ a million" for model in MODELS))
    )  # fmt: skip
    yield line(["---", *["--:"] * 6])
    for profile in PROFILES:
        name = f"{profile}/v1"
        one = measured(folder, name, examples)
        costs = []
        for model in MODELS:
            price = find_price(model)
            assert price is not None, model  # noqa: S101 - the pinned table has both
            share, dollars = one.cost(model, price)
            costs.append(f"{share:.0%}, {dollars:,.0f}")
        shared = shared_starts(folder, name, pairs)
        yield line(
            (f"`{name}`", f"{one.static:,}", f"{one.mean - one.static:,.0f}",
             f"{one.fences:.0f}", f"{shared:,.0f}", *costs)
        )  # fmt: skip


def main() -> None:
    """Print the table, or write it into a page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="where js-tiktoken is installed")
    options.add_argument("--every", type=int, default=10)
    options.add_argument("--write", type=Path, help="page whose table is replaced")
    given = options.parse_args()
    lines = list(table(given.folder, given.every))
    sys.stdout.write("\n".join(lines) + "\n")
    if given.write:
        write_block(given.write, "prompt costs", lines)


if __name__ == "__main__":
    main()
