"""Insert negations into sentences that the embedded judge passes, and count those it then fails.

    python benchmarks/negations.py [--split test|development] [--write PAGE]

A sentence that RAGBench's published label and the judge both call supported gets one negation of
each kind that fits it, at the first place where it fits; the rest of the record stays. A sentence
is caught if the judge then calls it unsupported. The price is paid by sentences as they are: those
that the published label calls supported and the judge does not, in all and because of a negation
(the judge would pass them without its rules for negations). The rules were made on development
rows.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from judge_dialects import write_block
from judges import line, shown, true_labels
from labeler.judges.embedded.features import SUPPORT, describe, load_weights
from labeler.labels.record import LabelRecord
from labeler.sentences.example import KeyedExample
from ragbench_data import ragbench_files, ragbench_folder

_AUXILIARY = r"\b(is|are|was|were|can|could|will|would|should|must|may|(?:has|have) been)"
_HAVING = r"\b(has|have|contains?|includes?|provides?|requires?|causes?|offers?|supports?|needs?)"
_COMMAND = (
    "Press|Select|Use|Turn|Set|Touch|Check|Connect|Open|Remove|Add|Place|Make|Keep|Ensure|Move"
)
KINDS = {
    "not": (rf"{_AUXILIARY} (?!not\b|never\b)(?=[a-z])", r"\1 not "),
    "n't": (r"\b(is|are|was|were|could|would|should|has|have) (?!not\b)(?=[a-z])", r"\1n't "),
    "never": (rf"{_AUXILIARY} (?!not\b|never\b)(?=[a-z])", r"\1 never "),
    "no": (rf"{_HAVING} (?:an? |the )?(?=[a-z])", r"\1 no "),
    "do not": (rf"(^|[:.] |\d\. |- )({_COMMAND})\b", r"\1Do not \2"),
}
"""Patterns of places for a negation, and what replaces them."""
FLIPPED = SUPPORT.index("flipped")


class Judged(NamedTuple):
    """The judge's verdict on a sentence.

    Attributes:
        passes: True if its probability reaches the threshold.
        passes_anyway: the same, if negations did not count.
        is_claim: True if the sentence makes a claim about the documents' content.
    """

    passes: bool
    passes_anyway: bool
    is_claim: bool


def judge(example: KeyedExample) -> dict[str, Judged]:
    """Judge every response sentence."""
    weights, found = load_weights(), describe(example)
    judged = {}
    for (key, evidence), values in zip(found.evidence.items(), found.support, strict=True):
        plain = [0.0 if n == FLIPPED else value for n, value in enumerate(values)]
        passes, passes_anyway = (
            evidence.kind != "empty"
            and weights.support.probability(one) >= weights.thresholds["support"]
            for one in (values, plain)
        )
        judged[key] = Judged(passes, passes_anyway, evidence.kind == "claim")
    return judged


def negated(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kinds of negations that fit a sentence, and the sentence with each."""
    for kind, (pattern, by) in KINDS.items():
        changed = re.sub(pattern, by, text, count=1)
        if changed != text:
            yield kind, changed


def with_text(example: KeyedExample, key: str, text: str) -> KeyedExample:
    """Return an example with another text of a response sentence."""
    response = (replace(one, text=text) if one.key == key else one for one in example.response)
    return example.model_copy(update={"response": tuple(response)})


class Counts(NamedTuple):
    """Sentences: negated and caught ones by kind, and correct ones as they are."""

    planted: Counter[str]
    caught: Counter[str]
    correct: Counter[str]


def measure(split: str) -> Counts:
    """Count over the rows of a split."""
    counts = Counts(Counter(), Counter(), Counter())
    for record in true_labels(ragbench_files(ragbench_folder()), split):
        if isinstance(record, LabelRecord):
            measure_record(record, counts)
    return counts


def measure_record(record: LabelRecord, counts: Counts) -> None:
    """Add the sentences of a record to the counts."""
    supported = {
        one.response_sentence_key
        for one in record.label.sentence_support_information
        if one.fully_supported
    }
    judged = judge(record.example)
    for sentence in record.example.response:
        if sentence.key not in supported:
            continue
        found = judged[sentence.key]
        counts.correct["all"] += 1
        counts.correct["failed"] += not found.passes
        counts.correct["failed by a negation"] += found.passes_anyway and not found.passes
        for kind, text in negated(sentence.text) if found.passes and found.is_claim else ():
            after = judge(with_text(record.example, sentence.key, text))
            counts.planted[kind] += 1
            counts.caught[kind] += not after[sentence.key].passes


def report(split: str) -> Iterator[str]:
    """Yield the table."""
    counts = measure(split)
    yield line(["negation", "inserted", "caught"])
    yield line(["---", "--:", "--:"])
    for kind in KINDS:
        share = counts.caught[kind] / (counts.planted[kind] or 1)
        yield line([kind, f"{counts.planted[kind]:,}", shown(share)])
    total = counts.planted.total()
    yield line(["all", f"{total:,}", shown(counts.caught.total() / (total or 1))])
    yield ""
    yield (
        f"Of {counts.correct['all']:,} correct sentences as they are, {counts.correct['failed']:,} "
        f"are called unsupported, {counts.correct['failed by a negation']:,} because of a negation."
    )


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--split", choices=["test", "development"], default="test")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page with the block's markers")
    options = parser.parse_args()
    lines = list(report(options.split))
    if options.write:
        write_block(options.write, "negations", lines)
    else:
        print(*lines, sep="\n")


if __name__ == "__main__":
    main()
