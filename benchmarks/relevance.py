"""Relevance with and without the response: what differs over equal retrieval, and what it costs.

    python benchmarks/relevance.py [--groups N] [--write docs/measured/relevance.md]

A made-up provider on this machine calls relevant what shares words with the response if a request
shows one, else with the question. Groups are two RAGBench rows with the same question and the same
ordered documents. Exits with 1 if blind relevance differs within a group, or a request about
relevance shows a response.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import labeler
from harness import line, options, publish, table
from labeler.judges.pricing import find_price
from labeler.labels.record import LabelRecord, Usage
from peers.records import made_up, with_references
from ragbench_data import ragbench_files, ragbench_rows
from wire.calls import Call, Json, label_for
from wire.provider import Provider, answers

METRICS = ("relevance", "context_precision", "document_relevance")
ANSWERS = (1, 2, 5, 10)
PRICED = "gpt-4.1-mini"
"""Its prices make the dollars of all tools."""
LEAST = 4
"""Letters of a word that counts."""


class Peer(NamedTuple):
    """What a tool takes for a record, from docs/measured/peers.md: all its metrics there."""

    name: str
    calls: int
    prompt: int
    completion: int


PEERS = (Peer("ragas, `evaluate`", 21, 18_498, 1_544), Peer("deepeval", 18, 9_687, 956))


def words(text: str) -> set[str]:
    """The longer words of a text."""
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= LEAST}


def peeking(call: Call) -> Json:
    """A label whose relevance depends on the response, if the request shows one."""
    label = label_for(call)
    said = " ".join(one["text"] for one in call.data.get("RESPONSE", []))
    seen = {
        "all_relevant_sentence_keys": words(said or call.data["QUESTION"][0]["question"]),
        "all_utilized_sentence_keys": words(said),
    }
    for name in seen.keys() & label.keys():
        lines = call.data["DOCUMENTS"]
        label[name] = [one["key"] for one in lines if seen[name] & words(one["text"])]
    return label


def groups_of(rows: Iterable[Json]) -> list[tuple[Json, Json]]:
    """Pairs of rows of two generators with the same question and documents, which no third has."""
    found = defaultdict[Any, list[Json]](list)
    for row in rows:
        found[row["question"], tuple(row["documents"])].append(row)
    pairs = [(each[0], each[1]) for each in found.values() if len(each) == 2]  # noqa: PLR2004 - two
    return [(a, b) for a, b in pairs if a.get(_GENERATOR, "a") != b.get(_GENERATOR, "b")]


_GENERATOR = "generation_model_name"


def example(row: Json, name: str) -> Json:
    """A row to be labeled, under another id."""
    return {"id": name, **{part: row[part] for part in ("question", "documents", "response")}}


class Judged(NamedTuple):
    """Labels of both sides of the groups, and the requests for them."""

    a: list[LabelRecord]
    b: list[LabelRecord]
    calls: list[Call]


def judged(pairs: Sequence[tuple[Json, Json]], relevance: str) -> Judged:
    """Label both sides in one run."""
    rows = [
        example(row, f"{side}{number}")
        for side in "ab"
        for number, pair in enumerate(pairs)
        for row in [pair["ab".index(side)]]
    ]
    with Provider(lambda _: answers(label=peeking)) as provider:
        judge = labeler.OpenAIJudge("m", api_key="none", base_url=provider.url)
        found = labeler.label(
            rows, judge=judge, relevance=relevance, store=labeler.MemoryStore(), progress=False
        )
    labels = [one for one in found if isinstance(one, LabelRecord)]
    if len(labels) < len(rows):
        raise SystemExit(f"{len(rows) - len(labels)} rows have no label: {found.failures}")
    named = [_renamed(one) for one in labels]
    return Judged(named[: len(pairs)], named[len(pairs) :], provider.calls)


def _renamed(record: LabelRecord) -> LabelRecord:
    """The record under the id that it shares with the other side."""
    shared = record.example.model_copy(update={"id": record.id[1:]})
    return record.model_copy(update={"example": shared})


def differing(found: Judged) -> int:
    """Groups in which a metric of retrieval differs."""
    sides = [labeler.metrics(side, METRICS) for side in (found.a, found.b)]
    return sum(any(a[name] != b[name] for name in METRICS) for a, b in zip(*sides, strict=True))


def leaks(calls: Iterable[Call], pairs: Sequence[tuple[Json, Json]]) -> int:
    """Requests about relevance that show a response, or a text of one that no document has."""
    blind = [call for call in calls if set(call.asked_for) <= set(_RELEVANCE)]
    own = {
        row["response"]
        for row in (row for pair in pairs for row in pair)
        if not any(row["response"] in text for text in [row["question"], *row["documents"]])
    }
    return sum("RESPONSE" in one.data or not own.isdisjoint(_texts(one)) for one in blind)


_RELEVANCE = ("relevance_explanation", "all_relevant_sentence_keys")


def _texts(call: Call) -> set[str]:
    """All texts of the data of a request, each sentence and each block as a whole."""
    blocks = [[str(text) for one in block for text in one.values()] for block in call.data.values()]
    return {text for block in blocks for text in [*block, " ".join(block)]}


def groups_table(pairs: Sequence[tuple[Json, Json]]) -> tuple[list[str], bool]:
    """Lines about the groups in both modes, and whether blind relevance keeps its promise."""
    both = [judged(pairs, mode) for mode in ("with-response", "blind")]
    apart = [differing(one) for one in both]
    leaked = leaks(both[1].calls, pairs)
    audits = [labeler.audit.audit_labels(_distinct(one)).same_documents[0] for one in both]
    rows = labeler.compare(both[0].a, both[0].b, metrics="relevance").rows
    seen = labeler.compare(both[1].a, both[1].b, metrics="relevance").rows
    facts: list[tuple[str, Sequence[object]]] = [
        ("requests", [f"{len(one.calls):,}" for one in both]),
        ("groups whose retriever metrics differ", apart),
        ("verdict of `compare` on relevance", [rows[0].verdict, seen[0].verdict]),
        ("sentences flipped, by `audit`", [f"{one.flipped:.1%}" for one in audits]),
        ("lean to used sentences", [_signed(one.lean) for one in audits]),
        ("requests about relevance that show a response", ["all", leaked]),
    ]
    lines = table(["", "`with-response`", "`blind`"], ([name, *values] for name, values in facts))
    return list(lines), apart[1] == 0 and leaked == 0


def _distinct(found: Judged) -> list[LabelRecord]:
    """Both sides under ids of their own."""
    return [
        one.model_copy(update={"example": one.example.model_copy(update={"id": f"{side}{one.id}"})})
        for side, labels in (("a", found.a), ("b", found.b))
        for one in labels
    ]


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}"


def cost_table() -> Iterator[str]:
    """Lines about calls, tokens and dollars for several answers over one retrieval."""
    lines: list[list[object]] = []
    for count in ANSWERS:
        for mode in ("with-response", "blind"):
            usage, calls = measured(count, mode)
            lines.append([count, f"labeler, `{mode}`", calls, *_cost(usage)])
        for one in PEERS:
            usage = Usage(
                prompt_tokens=one.prompt * count, completion_tokens=one.completion * count
            )
            lines.append([count, one.name, one.calls * count, *_cost(usage)])
    yield "| answers | tool | calls | prompt tokens | answer tokens | dollars |"
    yield "| --: | --- | --: | --: | --: | --: |"
    yield from map(line, lines)


def measured(count: int, relevance: str) -> tuple[Usage, int]:
    """Tokens and calls of labels with claims and reference for so many answers."""
    rows = with_references(made_up(count))
    same = [{**row, "documents": rows[0]["documents"], "question": "Why?"} for row in rows]
    with Provider(count_tokens=True) as provider:
        judge = labeler.OpenAIJudge("m", api_key="none", base_url=provider.url)
        options: dict[str, Any] = {"relevance": relevance, "profile": "reference"}
        store = labeler.MemoryStore()
        done = labeler.label(same, judge=judge, store=store, progress=False, **options)
    if done.failures:
        raise SystemExit(f"no label: {done.failures}")
    return done.cost.usage, done.cost.requests


def _cost(usage: Usage) -> tuple[str, str, str]:
    price = find_price(PRICED, "https://api.openai.com/v1")
    usage = Usage(
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens
    )  # as if nothing was cached, as for the other tools
    dollars = price.cost(usage) if price else Decimal(0)
    return f"{usage.prompt_tokens:,}", f"{usage.completion_tokens:,}", f"{dollars:.4f}"


def retrievals() -> str:
    """Say how many retrieval calls all rows need; nothing is sent."""
    files = [str(file) for file in ragbench_files()]
    found = labeler.estimate(files, preset="ragbench", model=PRICED, relevance="blind")
    return (
        f"{found.rows.read:,} rows need {found.profiles['retrieval']:,} retrieval calls "
        f"(`labeler estimate --preset ragbench --relevance blind`)."
    )


def main() -> int:
    """Print all tables, and write that of costs."""
    parser = options(__doc__)
    parser.add_argument("--groups", type=int, help="use the first groups only")
    given = parser.parse_args()
    pairs = groups_of(ragbench_rows())[: given.groups]
    lines, kept = groups_table(pairs)
    print(f"{len(pairs)} groups of two responses over one retrieval.\n")
    publish(None, "", [*lines, "", retrievals()])
    publish(given.write, "costs", cost_table())
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
