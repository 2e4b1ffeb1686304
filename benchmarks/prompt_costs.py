"""Tokens and cost of the prompts of every label profile, and of questions to a model that decides.

    scripts/check_elsewhere prompt-costs [--every 10] [--write docs/measured/judges.md]

Tokens are those of o200k_base, by the vocabulary that LiteLLM brings; nothing of it is in this
package. The rows are every tenth published RAGBench row with its published
sentences; they have no reference answer, so the profile `reference` shows the response in its
place as well. Questions are counted in the requests that a server on this machine gets.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from os.path import commonprefix
from statistics import fmean

import labeler
from harness import publish, table, with_environments
from labeler.judges.judge import JUDGES
from labeler.judges.openai.request import spec_of
from labeler.judges.pricing import Price, find_price
from labeler.judges.prompting import Prompt, load_prompt
from labeler.judges.tokens import MESSAGE_FRAME, REPLY_FRAME
from labeler.labeling.estimates import SHORTEST_CACHED
from labeler.labels.answers import PROFILES, family_of
from labeler.labels.record import LabelRecord, Usage
from labeler.labels.signature import load_schema
from labeler.sentences.example import KeyedExample, Piece, key_sentences
from published import published
from ragbench_data import ragbench_files
from wire.calls import Json
from wire.decider import KEY, Asked, Decider
from wire.test_decision_judge import given

MODELS = ("gpt-5-mini", "gpt-5.6-luna")
"""One with the cache rules before GPT-5.6, one with those since."""
DECIDES = "gpt-6-luna"
LITELLM = 128
"""Questions that LiteLLM takes in a request."""
PAIRED = 600
"""Rows among which those of the same question and documents are paired."""
MILLION = 1_000_000
_STEP = 128
"""Tokens of a step of the prefixes that OpenAI caches."""
_FENCE = re.compile(r"(?m)^(The marker is|BEGIN [A-Z]+|END [A-Z]+) ?[0-9a-f]{8,16}\n?")


def published_labels(every: int) -> list[LabelRecord]:
    """Every so many published labels, with the response as a reference answer."""
    found: list[LabelRecord] = []
    for file in ragbench_files():
        for record in published(files=[file])[::every]:
            pieces = [Piece(s.text, s.start, s.end) for s in record.example.response]
            shown = record.example.model_copy(update={"reference": key_sentences("ref.", pieces)})
            found.append(record.model_copy(update={"example": shown}))
    return found


_COUNT = """
import json, os, sys
import litellm
os.environ["TIKTOKEN_CACHE_DIR"] = os.path.join(
    os.path.dirname(litellm.__file__), "litellm_core_utils", "tokenizers")
import tiktoken
encoding = tiktoken.get_encoding("o200k_base")
texts = json.load(sys.stdin)
print(json.dumps([len(encoding.encode(one, disallowed_special=())) for one in texts]))
"""


def tokens(python: str, texts: Sequence[str]) -> list[int]:
    """Count the tokens of texts, of o200k_base."""
    found = subprocess.run(
        [python, "-c", _COUNT], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    counts: list[int] = json.loads(found.stdout)
    return counts


def words(value: object) -> str:
    """Join all texts of a request, names of fields left out, those of questions included."""
    if isinstance(value, dict):
        return " ".join(
            f"{key} {words(one)}" if key not in _FIELDS else words(one)
            for key, one in value.items()
            if key not in {"model", "type", "path"}
        )
    if isinstance(value, list):
        return " ".join(map(words, value))
    return "" if value is None else str(value)


_FIELDS = frozenset({"input", "state", "questions", "instructions", "criteria", "name", "choices",
                     "value", "description"})  # fmt: skip


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
        cached = cacheable(model, self.static)
        each = (Usage(prompt_tokens=self.static + n, cached_tokens=cached) for n in self.records)
        dollars = sum(map(price.cost, each), Decimal(0))
        return cached / self.mean, dollars * MILLION / len(self.records)


def cacheable(model: str, start: int) -> int:
    """Return how many tokens of a common start OpenAI caches: in steps unless its end is marked."""
    if start < SHORTEST_CACHED:
        return 0
    return start if spec_of(model, {}).marks_prefix else start // _STEP * _STEP


def measured(python: str, name: str, examples: Sequence[KeyedExample]) -> Measured:
    """Count one prompt."""
    prompt = load_prompt(name)
    schema = load_schema(PROFILES[family_of(name)].schema_of(name))
    users = [prompt.render(example)[1]["content"] for example in examples]
    bare = [_FENCE.sub("", user) for user in users]
    system, sent, *rest = tokens(python, [prompt.system, schema.compact, *users, *bare])
    own, unfenced = rest[: len(users)], rest[len(users) :]
    return Measured(
        prompt,
        system + sent + MESSAGE_FRAME + REPLY_FRAME,
        tuple(n + MESSAGE_FRAME for n in own),
        (sum(own) - sum(unfenced)) / len(users),
    )


def shared_starts(python: str, name: str, examples: Sequence[KeyedExample]) -> float:
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
    return sum(tokens(python, starts)) / len(starts) if starts else 0.0


def repr_of(example: KeyedExample) -> str:
    """Sorts examples of the same question and documents next to each other."""
    return repr((example.question, [[s.text for s in d] for d in example.documents]))


def profiles(python: str, records: Sequence[LabelRecord]) -> Iterator[str]:
    """One line for each profile."""
    examples, pairs = (
        [record.example for record in some] for some in (records, published_labels(1)[:PAIRED])
    )
    lines = []
    for profile in PROFILES:
        name = f"{profile}/v1"
        one = measured(python, name, examples)
        costs = [one.cost(model, priced(model)) for model in MODELS]
        shared = shared_starts(python, name, pairs)
        parts = [f"{one.static:,}", f"{one.mean - one.static:,.0f}", f"{one.fences:.0f}"]
        shares = (f"{share:.0%}, {dollars:,.0f}" for share, dollars in costs)
        lines.append([f"`{name}`", *parts, f"{shared:,.0f}", *shares])
    heads = ["prompt", "static", "a record", "of it fences", "shared by two responses"]
    return table([*heads, *(f"{model}: cached, $ a million" for model in MODELS)], lines)


def priced(model: str) -> Price:
    """The price of a model that the pinned table has."""
    price = find_price(model)
    assert price is not None, model  # noqa: S101 - see above
    return price


def questions(records: Sequence[LabelRecord]) -> list[Json]:
    """Label records by a server that knows nothing, and return the requests that it got."""

    def any_answer(asked: Asked) -> object:
        return dict.fromkeys(asked.options, 1 / len(asked.options)) if asked.options else 0.9

    rows = [given(one) | {"id": str(n)} for n, one in enumerate(records)]
    with Decider(any_answer) as server:
        judge = JUDGES["decisions"](DECIDES, api_key=KEY, base_url=server.url)
        store = labeler.MemoryStore()
        made = list(labeler.iter_labels(rows, judge=judge, store=store, splitter="given"))
    assert all(isinstance(one, LabelRecord) for one in made)  # noqa: S101 - else nothing is counted
    return server.requests


def next_to_chat(python: str, records: Sequence[LabelRecord]) -> Iterator[str]:
    """One column for a model that decides, and one for a model that writes."""
    prompt = load_prompt("trace/v1")
    different = {prompt.render(one.example)[1]["content"]: one for one in records}
    records, count = list(different.values()), len(different)
    sent = questions(records)
    asked = [body["questions"] for body in sent]
    parts = {
        "the record": [body["input"] for body in sent],
        "questions": [" ".join(one["instructions"] for one in each) for each in asked],
        "their names": [" ".join(one["name"] for one in each) for each in asked],
        "options": [words([one.get("choices", []) for one in each]) for each in asked],
    }
    whole = tokens(python, [words(body) for body in sent])
    chat = measured(python, "trace/v1", [one.example for one in records])
    written = tokens(python, [one.label.model_dump_json() for one in records])
    decides, writes = priced(DECIDES), priced(MODELS[0])
    usages = [
        Usage(prompt_tokens=chat.static + own, completion_tokens=out)
        for own, out in zip(chat.records, written, strict=True)
    ]
    cached = cacheable(MODELS[0], chat.static)
    served = [one.model_copy(update={"cached_tokens": cached}) for one in usages]

    def dollars(price: Price, each: Sequence[Usage]) -> str:
        return f"{sum(map(price.cost, each), Decimal(0)) * 1000 / count:.2f}"

    more = sum(len(one) > LITELLM for one in asked) / count
    lines = [
        ("requests", f"{len(sent) / count:.4g}", "1"),
        ("questions", f"{sum(map(len, asked)) / count:.0f}", ""),
        (f"records with more than {LITELLM} questions", f"{more:.1%}", ""),
        ("input tokens, without JSON syntax", f"{sum(whole) / count:,.0f}", f"{chat.mean:,.0f}"),
    ]
    for name, texts in parts.items():
        right = f"{fmean(chat.records):,.0f}" if name == "the record" else ""
        lines.append((f"… {name}", f"{sum(tokens(python, texts)) / count:,.0f}", right))
    each = [Usage(prompt_tokens=own) for own in whole]
    lines += [
        ("… instructions and schema", "", f"{chat.static:,}"),
        ("output tokens, of the published answers", "0", f"{fmean(written):,.0f}"),
        ("dollars for 1,000 records", dollars(decides, each), dollars(writes, usages)),
        ("… with a cached start", "", dollars(writes, served)),
    ]
    return table(["a record", f"`decisions`, {DECIDES}", f"`trace/v1`, {MODELS[0]}"], lines)


def main() -> None:
    """Publish the tables."""
    parser = with_environments(__doc__)
    parser.add_argument("--every", type=int, default=10)
    given = parser.parse_args()
    [(_, python)] = given.pythons
    records = published_labels(given.every)
    publish(given.write, "prompt costs", profiles(python, records))
    publish(given.write, "decision costs", next_to_chat(python, records))


if __name__ == "__main__":
    main()
