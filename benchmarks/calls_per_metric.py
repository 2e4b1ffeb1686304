"""Count the calls that seven metrics of a record take, and how often its context is sent.

    python benchmarks/calls_per_metric.py [--documents 5] [--records 20]

labeler is measured: it labels made-up records with the profile ``reference`` on a made-up provider
on this machine, which counts what it is asked, and computes every metric from what it stored. The
counts of the others were taken from their own code, with a model that only counts (RAGAS 0.4.3 and
DeepEval 4.3.1, five documents, six statements) and hold for any number of documents. Prints
Markdown; exits with 1 where a metric has no value.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import labeler
from wire.provider import Call, Json, Provider, answers

RECORDS, DOCUMENTS, STATEMENTS = 20, 5, 6


class Calls(NamedTuple):
    """Calls of one metric for a record of C documents."""

    per_document: int = 0
    fixed: int = 0

    def at(self, documents: int) -> int:
        """How many there are for that many documents."""
        return self.per_document * documents + self.fixed

    def __str__(self) -> str:
        """As a formula: ``2C + 3``."""
        of_documents = {0: "", 1: "C"}.get(self.per_document, f"{self.per_document}C")
        parts = [of_documents, str(self.fixed) if self.fixed else ""]
        return " + ".join(filter(None, parts)) or "0"


class Asked(NamedTuple):
    """What a framework asks for one metric."""

    calls: Calls
    contexts: int
    """How often the context of a record is sent, all documents of it."""


class Wanted(NamedTuple):
    """One metric; ``None`` where a framework does not offer it."""

    name: str
    ids: tuple[str, ...]
    """What it is called here."""
    ragas: Asked | None
    deepeval: Asked | None


WANTED = (
    Wanted("faithfulness", ("faithfulness:claim",), Asked(Calls(0, 2), 1), Asked(Calls(0, 4), 1)),
    Wanted("answer relevancy", ("answer_relevancy",), Asked(Calls(0, 3), 0), Asked(Calls(0, 3), 0)),
    Wanted(
        "context precision", ("context_precision",), Asked(Calls(1, 0), 1), Asked(Calls(0, 2), 1)
    ),
    Wanted("context recall", ("context_recall",), Asked(Calls(0, 1), 1), Asked(Calls(0, 2), 1)),
    Wanted(
        "context relevancy", ("context_relevancy",), Asked(Calls(0, 2), 2), Asked(Calls(1, 1), 1)
    ),
    Wanted(
        "noise sensitivity",
        ("noise_sensitivity_relevant", "noise_sensitivity_irrelevant"),
        Asked(Calls(2, 3), 2),
        None,
    ),
    Wanted("hallucination", ("hallucination_contexts",), None, Asked(Calls(0, 2), 1)),
)
"""DeepEval with reasons, its default; RAGAS's answer relevancy also asks for 2 embeddings."""


class Measured(NamedTuple):
    """What labeling took, a record, and which of the metrics came out of it."""

    calls: float
    contexts: float
    undefined: tuple[str, ...]
    """Ids of metrics that lack a value for some record."""


def rows(records: int, documents: int) -> list[dict[str, Any]]:
    """Records with a reference answer; every document sentence stands in one place alone."""
    return [
        {
            "id": f"r{n}",
            "question": f"What is known of case {n}?",
            "documents": [
                f"Case {n} was opened in week {d}. Office {n}-{d} wrote it down."
                for d in range(documents)
            ],
            "response": " ".join(f"Case {n} has a part {s}." for s in range(STATEMENTS)),
            "reference": f"Case {n} has two parts. It is closed.",
        }
        for n in range(records)
    ]


def answer(call: Call) -> Json:
    """A label that keeps the contract: the first document holds half of what is claimed."""
    first, response = call.keys("DOCUMENTS")[0], call.keys("RESPONSE")
    kept = {key: [first] if number % 2 else [] for number, key in enumerate(response)}
    return {
        "relevance_explanation": "the first document answers the question",
        "all_relevant_sentence_keys": [first],
        "overall_supported_explanation": "half of it stands in the first document",
        "overall_supported": False,
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": "stands there, or does not",
                "supporting_sentence_keys": support,
                "fully_supported": bool(support),
            }
            for key, support in kept.items()
        ],
        "all_utilized_sentence_keys": [first],
        "response_claims": [
            {
                "response_sentence_key": key,
                "claim": "the sentence",
                "supporting_sentence_keys": support,
                "contradicting_sentence_keys": [],
                "verdict": "entailment" if support else "neutral",
                "relevant_to_question": True,
                "reference_verdict": "neutral",
            }
            for key, support in kept.items()
        ],
        "response_sentences_without_claims": [],
        "reference_claims": [
            {
                "reference_sentence_key": key,
                "claim": "the sentence",
                "supporting_sentence_keys": [first],
                "response_verdict": "neutral",
            }
            for key in call.keys("REFERENCE")
        ],
        "reference_sentences_without_claims": [],
    }


def measured(records: int, documents: int) -> Measured:
    """Label records on the made-up provider, and count."""
    given = rows(records, documents)
    ids = [name for wanted in WANTED for name in wanted.ids]
    with Provider(lambda _: answers(label=answer)) as provider:
        judge = labeler.OpenAIJudge("counted", api_key="none", base_url=provider.url)
        store = labeler.MemoryStore()
        outcomes = labeler.label(given, judge=judge, store=store, profile="reference")
        sent = [message["content"] for call in provider.calls for message in call.messages]
    values = labeler.metrics(outcomes, ids)
    undefined = [name for name in ids if any(row.metrics[name].value is None for row in values)]
    return Measured(
        len(provider.calls) / records,
        _times_sent(given, sent) / (records * documents),
        tuple(undefined),
    )


def _times_sent(given: Iterable[dict[str, Any]], sent: Sequence[str]) -> int:
    """How often documents of the rows stand in what was sent, by the last sentence of each."""
    ends = [text.split(". ")[1] for row in given for text in row["documents"]]
    return sum(text.count(end) for text in sent for end in ends)


def report(ours: Measured, documents: int) -> str:
    """The table, in Markdown."""
    lines = [
        f"| metric | RAGAS 0.4.3, C = {documents} | DeepEval 4.3.1, C = {documents} | labeler |",
        "|---|--:|--:|---|",
    ]
    for wanted in WANTED:
        ids = ", ".join(f"`{name}`" for name in wanted.ids)
        theirs = (_cell(asked, documents) for asked in (wanted.ragas, wanted.deepeval))
        lines.append(f"| {wanted.name} | {' | '.join(theirs)} | {ids} |")
    totals = [_total(w.ragas for w in WANTED), _total(w.deepeval for w in WANTED)]
    calls = (f"{total.calls} = {total.calls.at(documents)}" for total in totals)
    lines.append(f"| **calls a record** | {' | '.join(calls)} | **{ours.calls:g}** (measured) |")
    sent = " | ".join(str(total.contexts) for total in totals)
    lines.append(f"| **times the context is sent** | {sent} | **{ours.contexts:g}** (measured) |")
    return "\n".join(lines)


def _cell(asked: Asked | None, documents: int) -> str:
    if asked is None:
        return "not offered"
    formula, number = str(asked.calls), asked.calls.at(documents)
    return formula if not asked.calls.per_document else f"{formula} = {number}"


def _total(asked: Iterable[Asked | None]) -> Asked:
    """All metrics that a framework offers, one after the other as it asks for them."""
    offered = [one for one in asked if one is not None]
    calls = Calls(sum(a.calls.per_document for a in offered), sum(a.calls.fixed for a in offered))
    return Asked(calls, sum(a.contexts for a in offered))


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="C (default: %(default)s)")
    parser.add_argument("--records", type=int, default=RECORDS, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.documents < 1 or options.records < 1:
        parser.error("there must be a document and a record at least")
    ours = measured(options.records, options.documents)
    print(report(ours, options.documents))
    if ours.undefined:
        print(f"\nWithout a value: {', '.join(ours.undefined)}")
    return 1 if ours.undefined else 0


if __name__ == "__main__":
    sys.exit(main())
