"""A judge, a format of rows, a metric, a check and a command, declared in pyproject.toml."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import labeler
from labeler.calculators.tally import Tally
from labeler.data.formats import Raw
from labeler.judges.task import Task

LONG = 8
"""Words of a long sentence."""


@labeler.judge("quotes", version=1)
def quotes(task: Task) -> dict[str, object]:
    """Call a sentence supported if a document has it word by word."""
    example = task.example
    found = {
        mine.key: [one.key for one in example.document_sentences() if mine.text in one.text]
        for mine in example.response
    }
    used = sorted({key for keys in found.values() for key in keys})
    return {
        "relevance_explanation": "Quoted sentences.",
        "all_relevant_sentence_keys": used,
        "overall_supported_explanation": "All sentences are quotations, or not.",
        "overall_supported": all(found.values()),
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": "Quoted." if keys else "Not quoted.",
                "supporting_sentence_keys": keys,
                "fully_supported": bool(keys),
            }
            for key, keys in found.items()
        ],
        "all_utilized_sentence_keys": used,
    }


def read_faq(name: str) -> Iterator[Raw]:
    """Read a file of paragraphs: a question, an answer, then documents, one a line."""
    for place, paragraph in enumerate(Path(name).read_text("utf-8").split("\n\n"), start=1):
        question, response, *documents = paragraph.strip().splitlines()
        row = {"question": question, "response": response, "documents": documents}
        yield Raw(f"{name}:paragraph {place}", row)


@labeler.metric(
    "first_supported",
    definition="sentence",
    default=True,
    source="ours",
    needs=("sentence_support_information",),
    formula="1 if the first sentence is supported",
)
def first_supported(tally: Tally) -> labeler.Ratio:
    """Give 1 for a record whose first sentence is supported, else 0."""
    return labeler.Ratio(int("a" in tally.supported), 1)


@labeler.check("much_on_one_sentence", severity="suspicion")
def much_on_one_sentence(subject: labeler.audit.Subject) -> Iterator[labeler.audit.Found]:
    """Much said on one document sentence.

    A long sentence seldom rests on one source alone: look for missing keys.
    """
    for entry in subject.judged:
        key = entry.response_sentence_key
        words = subject.texts.get(key, "").split()
        if (
            entry.fully_supported
            and len(entry.supporting_sentence_keys) == 1
            and len(words) >= LONG
        ):
            yield labeler.audit.Found(
                f"{len(words)} words rest on one sentence.", (key, *entry.supporting_sentence_keys)
            )


def count(file: Annotated[str, typer.Argument(help="File of rows.")]) -> None:
    """Count the rows of a file that are examples."""
    typer.echo(sum(1 for _ in labeler.open_rows(file)))
