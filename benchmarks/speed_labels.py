"""Synthetic labels and rows with RAGBench's counts of sentences, keys and words, and random texts.

The shape of every label is that of a real row, drawn at random where the rows are at hand (see
``ragbench_data.py``); else it is drawn by the figures in ``STATED``, which were measured on them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from labeler.data.lines import with_checksum
from labeler.labels.answers import PROFILES
from labeler.labels.record import ReplyFacts, Usage
from labeler.labels.signature import Artifact, Signature, digest
from labeler.sentences.example import document_key, letters
from ragbench_data import ragbench_rows

STATED = (
    "4 documents of 6 sentences of 120 characters, a response of 4 sentences, 6 relevant and 5 "
    "utilized sentences, explanations of 300 characters"
)
_ON_TOPIC = 0.8
"""Share of the responses that use what is relevant."""
_POOL = 1 << 20
"""Characters that texts are cut from."""


class Shape(NamedTuple):
    """How much of what a label has.

    Attributes:
        documents: characters of each sentence of each document.
        response: characters of each response sentence.
        relevant: relevant keys.
        utilized: utilized keys.
        support: supporting keys of each response sentence; none where it is not supported.
        explanations: characters of the two explanations and of that of each response sentence.
        question: characters of the question.
    """

    documents: list[list[int]]
    response: list[int]
    relevant: int
    utilized: int
    support: list[int]
    explanations: list[int]
    question: int


def ragbench_shapes() -> list[Shape]:
    """The shapes of the real rows; empty where they are not at hand."""
    return [_shape(row) for row in ragbench_rows()]


def _shape(row: dict[str, Any]) -> Shape:
    judged = {
        entry["response_sentence_key"]: entry for entry in row["sentence_support_information"]
    }
    entries = [judged.get(key, {}) for key, _ in row["response_sentences"]]
    return Shape(
        documents=[[len(text) for _, text in part] for part in row["documents_sentences"]],
        response=[len(text) for _, text in row["response_sentences"]],
        relevant=len(row["all_relevant_sentence_keys"]),
        utilized=len(row["all_utilized_sentence_keys"]),
        support=[len(entry.get("supporting_sentence_keys") or ()) for entry in entries],
        explanations=[
            len(row["relevance_explanation"] or ""),
            len(row["overall_supported_explanation"] or ""),
            *(len(entry.get("explanation") or "") for entry in entries),
        ],
        question=len(row["question"]),
    )


def stated_shapes(rng: random.Random) -> list[Shape]:
    """Shapes by the figures in ``STATED``, each number between half and half as much again."""

    def about(number: int) -> int:
        return max(1, round(number * rng.uniform(0.5, 1.5)))

    return [
        Shape(
            documents=[[about(120) for _ in range(about(6))] for _ in range(about(4))],
            response=(response := [about(120) for _ in range(about(4))]),
            relevant=about(6),
            utilized=about(5),
            support=[rng.choice([0, 1, 2]) for _ in response],
            explanations=[about(300) for _ in range(2 + len(response))],
            question=about(80),
        )
        for _ in range(1000)
    ]


class Labels:
    """Makes labels.

    Args:
        seed: the same seed makes the same labels.
    """

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self.shapes = ragbench_shapes() or stated_shapes(self._rng)
        letters = "etaoinshrdlu"
        words = ("".join(self._rng.choices(letters, k=self._rng.randint(2, 9))) for _ in range(999))
        pool = list(words)
        self._text = " ".join(self._rng.choice(pool) for _ in range(_POOL // 5))
        schema = Artifact(name=PROFILES["trace"].schema, digest="0" * 64)
        self._signature = Signature(
            judge="synthetic", model="none-1", response_schema=schema, splitter="given/1"
        ).facts()
        usage = Usage(prompt_tokens=2500, completion_tokens=250)
        reply = ReplyFacts(served_model="none-1", host="localhost", usage=usage, seconds=1.5)
        self._reply = reply.model_dump(mode="json")

    def lines(self, count: int) -> Iterator[bytes]:
        """Labels as the lines of a label file."""
        for number in range(count):
            yield msgspec.json.encode(self._label(number)) + b"\n"

    def _label(self, number: int) -> dict[str, Any]:
        shape = self._rng.choice(self.shapes)
        question = f"{number} {self._words(shape.question)}"  # as in most data sets, all differ
        documents = [
            [self._sentence(document_key(d, s), size) for s, size in enumerate(sizes)]
            for d, sizes in enumerate(shape.documents)
        ]
        response = [self._sentence(letters(s), size) for s, size in enumerate(shape.response)]
        shown = {
            "question": question,
            "documents": [[[s["key"], s["text"]] for s in part] for part in documents],
            "response": [[s["key"], s["text"]] for s in response],
        }
        return {
            "kind": "label",
            "version": 1,
            "key": digest({"shown": shown, "signature": self._signature}),
            "example": {
                "id": f"row-{number}",
                "question": question,
                "documents": documents,
                "response": response,
                "splitter": "given/1",
                "metadata": {"subset": f"subset-{number % 12}", "row": number},
            },
            "label": self._answer(shape, [s["key"] for s in chain(*documents)], response),
            "signature": self._signature,
            "reply": self._reply,
        }

    def _answer(
        self, shape: Shape, keys: list[str], response: list[dict[str, Any]]
    ) -> dict[str, Any]:
        rng = self._rng
        relevant = rng.sample(keys, min(shape.relevant, len(keys)))
        # What is used is for the most part what is relevant.
        used = dict.fromkeys([*relevant, *keys] if rng.random() < _ON_TOPIC else keys)
        explanations = [self._words(size) for size in shape.explanations]
        support = [rng.sample(keys, min(count, len(keys))) for count in shape.support]
        return {
            "relevance_explanation": explanations[0],
            "all_relevant_sentence_keys": relevant,
            "overall_supported_explanation": explanations[1],
            "overall_supported": all(support),
            "sentence_support_information": [
                {
                    "response_sentence_key": sentence["key"],
                    "explanation": explanation,
                    "supporting_sentence_keys": named,
                    "fully_supported": bool(named),
                }
                for sentence, explanation, named in zip(
                    response, explanations[2:], support, strict=True
                )
            ],
            "all_utilized_sentence_keys": list(used)[: shape.utilized],
        }

    def _sentence(self, key: str, size: int) -> dict[str, Any]:
        text = self._words(max(1, size + self._rng.randint(-3, 3)))
        return {"key": key, "text": text, "start": 0, "end": len(text)}

    def _words(self, size: int) -> str:
        start = self._rng.randrange(_POOL // 2)
        return self._text[start : start + size]


def write_labels(path: Path, count: int, seed: int = 0) -> None:
    """Write so many labels to a file."""
    with path.open("wb") as file:
        file.writelines(with_checksum(line.rstrip()) + b"\n" for line in Labels(seed).lines(count))


def rows_like_ragbench(count: int, changed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield rows of RAGBench's size; the last ones are others by their ids and questions."""
    rng = random.Random(3)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(999)]
    pool = [
        f"{' '.join(rng.choices(words, k=rng.randint(10, 30))).capitalize()}." for _ in range(9999)
    ]
    for number in range(count):
        name = f"{'new' if number >= count - changed else 'row'}-{number}"
        yield {
            "id": name,
            "question": f"What of {name}?",
            "documents": [
                " ".join(rng.choices(pool, k=rng.randint(3, 9))) for _ in range(rng.randint(2, 6))
            ],
            "response": " ".join(rng.choices(pool, k=rng.randint(2, 6))),
            "subset": number % 12,
        }
