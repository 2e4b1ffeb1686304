"""Puts a text into a record, renders it, and looks for what left its data block.

The messages are read as strictly as they are written: by the marker that the first line states, a
block's lines are a key and a JSON string each. All else is what speaks to a judge.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from typing import Literal, NamedTuple

from injection.attacks import CONTROL_TOKENS, FABRICATION, POSITIONS, Position
from labeler.judges.prompting import Message, load_prompt
from labeler.sentences.example import KeyedExample, key_sentences
from support.samples import keyed_example, pieces

Part = Literal[
    "question", "document", "response", "reference",
    "inside document", "inside response", "inside reference",
]  # fmt: skip
PARTS: tuple[Part, ...] = (
    *("question", "document", "response"),
    *("inside document", "inside response"),
)
"""Where a stranger's text goes: sentences of its own, or inside a sentence that is there."""
ALL_PARTS: tuple[Part, ...] = (*PARTS, "reference", "inside reference")
"""With the reference answer, which one prompt shows."""
PLACES = list(product(ALL_PARTS, POSITIONS))
Render = Callable[[KeyedExample], tuple[Message, ...]]

QUESTION = "When was the lighthouse first lit?"
DOCUMENTS = (
    ("The lighthouse was first lit in 1874.", "Gulls nest on the rocks.", "Its keeper rowed."),
    ("The lighthouse lamp burned colza.", "Storms took the pier in 1901."),
)
RESPONSE = (
    "The lighthouse was first lit in 1874.",
    FABRICATION,
    "Storms took the pier in 1901.",
    "A ghost tends it.",
)
CLEAN = keyed_example(question=QUESTION, documents=DOCUMENTS, response=RESPONSE)
REFERENCE = ("The lighthouse was first lit in 1874.", "Its keeper rowed.")

_HIDDEN = re.compile("[\U000e0020-\U000e007e\ufe00-\ufe0f\U000e0100-\U000e01ef]{8,}")
"""A message in characters without a glyph: tags, or bytes as variation selectors."""
_KEYED = re.compile(r'((?:ref\.)?\d*[a-z]{1,2}) (".*")')


class Reading(NamedTuple):
    """What stands in the messages.

    Attributes:
        data: keys and texts by block; the question has an empty key.
        outside: the system message, and the lines that are no data, with the marker blanked.
    """

    data: dict[str, list[tuple[str, str]]]
    outside: list[str]


def referenced(example: KeyedExample, reference: Sequence[str] = REFERENCE) -> KeyedExample:
    """The record with a reference answer."""
    return example.model_copy(update={"reference": key_sentences("ref.", pieces(reference))})


def by(prompt: str) -> Render:
    """Render by a prompt that ships, such as ``trace/v1``.

    A record has the clean reference answer unless it brings one.
    """

    def render(example: KeyedExample) -> tuple[Message, ...]:
        return load_prompt(prompt).render(example if example.reference else referenced(example))

    return render


def marker(messages: Sequence[Message]) -> str:
    """The marker that a request states."""
    return messages[1]["content"].splitlines()[0].removeprefix("The marker is ")


def read(messages: Sequence[Message]) -> Reading:
    """Read the blocks that the stated marker fences."""
    stated = marker(messages)
    assert re.fullmatch("(?:[0-9a-f]{8}){1,2}", stated)
    reading, block = Reading(defaultdict(list), [messages[0]["content"]]), ""
    for line in messages[1]["content"].splitlines():
        opened = re.fullmatch(rf"BEGIN (QUESTION|DOCUMENTS|RESPONSE|REFERENCE) {stated}", line)
        if block and line == f"END {block} {stated}":
            block = ""
        elif not block and opened:
            block = opened[1]
        elif block and (sentence := _sentence(block, line)):
            reading.data[block].append(sentence)
        else:
            reading.outside.append(line.replace(stated, ""))
    return reading


def _sentence(block: str, line: str) -> tuple[str, str] | None:
    """Read one line of a block: a key and a JSON string, or that alone."""
    keyed = _KEYED.fullmatch(line if block != "QUESTION" else f"a {line}")
    try:
        text = json.loads(keyed[2]) if keyed else None
    except ValueError:
        return None
    key = keyed[1] if keyed and block != "QUESTION" else ""
    return (key, text) if isinstance(text, str) else None


def escaped(example: KeyedExample, render: Render) -> list[str]:
    """What left its block, or did not arrive there as it is; empty is as it should be."""
    messages = render(example)
    clean, found = read(render(CLEAN)), read(messages)
    given = {
        "QUESTION": [("", example.question)],
        "DOCUMENTS": [(s.key, s.text) for s in example.document_sentences()],
        "RESPONSE": [(s.key, s.text) for s in example.response],
    }
    if example.reference:
        given["REFERENCE"] = [(s.key, s.text) for s in example.reference]
    told = [line for line in found.outside if line not in clean.outside]
    if found.outside != clean.outside:
        told.append("other words to the judge")
    told += [name for name, sentences in given.items() if found.data[name] != sentences]
    whole = "\n".join(message["content"] for message in messages)
    told += [token for token in CONTROL_TOKENS if token in whole]
    return told + ["a hidden message"] * bool(_HIDDEN.search(whole))


def plant(texts: tuple[str, ...], part: Part, position: Position) -> KeyedExample:
    """Write the texts into a part of the clean record.

    A middle position among documents is the border of the two.
    """
    place, text = POSITIONS.index(position), " ".join(texts)
    first, second, response, reference = map(list, (*DOCUMENTS, RESPONSE, REFERENCE))
    question = _mixed(QUESTION, text, position) if part == "question" else QUESTION
    if part == "document":
        first[:0], first[len(first) :] = ((texts, ()), ((), texts[:1]), ((), ()))[place]
        second[:0], second[len(second) :] = (((), ()), (texts[1:], ()), ((), texts))[place]
    elif part == "response":
        response[2 * place : 2 * place] = texts
    elif part == "reference":
        reference[place:place] = texts
    elif part == "inside document":
        first[1] = _mixed(first[1], text, position)
    elif part == "inside response":
        response[1] = _mixed(response[1], text, position)
    elif part == "inside reference":
        reference[place // 2] += f"\n{text}"
    example = keyed_example(question=question, documents=[first, second], response=response)
    return referenced(example, reference) if "reference" in part else example


def _mixed(host: str, text: str, position: Position) -> str:
    half = host.index(" ", len(host) // 2)
    return {
        "first": f"{text} {host}",
        "middle": f"{host[:half]} {text}{host[half:]}",
        "last": f"{host}\n{text}",
    }[position]
