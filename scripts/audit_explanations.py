"""Print what the judge said where its answer does not agree with itself.

    python scripts/audit_explanations.py LABELS

One JSON object for each finding: the record, what is odd, and the explanation to read. Copy this
file and change it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import labeler
from labeler.labels import SPECIAL_SUPPORT


def oddities(label: labeler.GPTLabelingOutput) -> Iterator[tuple[str, list[str], str]]:
    """What is odd about a label: a name for it, the keys concerned, the explanation."""
    sentences = label.sentence_support_information
    unsupported = [s.response_sentence_key for s in sentences if not s.fully_supported]
    if label.overall_supported == bool(unsupported):
        yield "overall_against_sentences", unsupported, label.overall_supported_explanation
    unasked = set(label.all_utilized_sentence_keys) - set(label.all_relevant_sentence_keys)
    if unasked:
        yield "utilized_not_relevant", sorted(unasked), label.relevance_explanation
    for sentence in sentences:
        support = set(sentence.supporting_sentence_keys) - set(SPECIAL_SUPPORT)
        unused = support - set(label.all_utilized_sentence_keys)
        if unused:
            yield "support_not_utilized", sorted(unused), sentence.explanation
        if not sentence.fully_supported:
            yield "not_supported", [sentence.response_sentence_key], sentence.explanation


def main(labels: str) -> None:
    """Print the findings of every record, in order."""
    for outcome in labeler.read_labels(labels):
        if isinstance(outcome, labeler.LabelRecord):
            for name, keys, explanation in oddities(outcome.label):
                found = {
                    "id": outcome.id,
                    "finding": name,
                    "keys": keys,
                    "explanation": explanation,
                }
                print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and one argument
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except labeler.LabelerError as error:
        sys.exit(str(error))
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
