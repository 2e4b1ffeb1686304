"""Plant errors of seven kinds in RAGBench's published labels, and count those that the audit finds.

    python benchmarks/planted_errors.py [FOLDER] [--write docs/measured/audit.md]

Each record that allows it gets one error of a kind, drawn with a fixed seed; the audit examines the
label before and after, without and with a second opinion. An error is found if a finding that the
label did not have before names the response sentence. The AUROC is the probability that the
suspicion score of a label with the error is above that of an untouched label of another record.
Published labels have errors of their own, so neither figure can reach 1.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from audit_ragbench import Ranked, percent, replaced
from judge_figures import area
from judges import line, shown, true_labels
from labeler.audit import Finding, Subject, examine
from labeler.judges.embedded import second_opinion
from labeler.labels.answers import SPECIAL_SUPPORT, SentenceSupport
from labeler.labels.record import LabelRecord
from labeler.labels.signature import label_key
from labeler.sentences.example import position
from ragbench_data import ragbench_files, ragbench_folder

MOST = 200
"""Errors of each kind."""
SEED = 7
Planter = Callable[[LabelRecord, SentenceSupport, Random], LabelRecord | None]


class Planted(NamedTuple):
    """A label with an error, and the response sentence that has it."""

    before: LabelRecord
    after: LabelRecord
    key: str


def with_entry(record: LabelRecord, entry: SentenceSupport) -> LabelRecord:
    """A label with another verdict on a sentence; overall verdict and lists of keys follow."""
    entries = tuple(
        entry if one.response_sentence_key == entry.response_sentence_key else one
        for one in record.label.sentence_support_information
    )
    before = {key for one in record.label.sentence_support_information for key in named(one)}
    after = {key for one in entries for key in named(one)}
    lists = {
        name: tuple(
            key
            for key in record.example.document_keys()
            if key in after or (key in getattr(record.label, name) and key not in before - after)
        )
        for name in ("all_relevant_sentence_keys", "all_utilized_sentence_keys")
    }
    changes = {
        "sentence_support_information": entries,
        "overall_supported": all(one.fully_supported for one in entries),
        **lists,
    }
    return record.model_copy(
        update={"label": record.label.model_copy(update=changes), "verbatim": None}
    )


def with_text(record: LabelRecord, key: str, text: str) -> LabelRecord:
    """A label of a response with another text of a sentence."""
    response = tuple(
        type(one)(key=key, text=text, start=one.start, end=one.end) if one.key == key else one
        for one in record.example.response
    )
    example = record.example.model_copy(update={"response": response})
    changes = {"example": example, "key": label_key(example, record.signature)}
    return record.model_copy(update=changes)


def text_of(record: LabelRecord, key: str) -> str:
    """The text of a response sentence."""
    return next(one.text for one in record.example.response if one.key == key)


def named(entry: SentenceSupport) -> tuple[str, ...]:
    """The document sentences of a support."""
    return tuple(key for key in entry.supporting_sentence_keys if key not in SPECIAL_SUPPORT)


def unsupported(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """A supported sentence is called unsupported."""
    changes = {"fully_supported": False, "supporting_sentence_keys": ()}
    return with_entry(record, entry.model_copy(update=changes)) if named(entry) else None


def supported(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """An unsupported sentence is called supported, by the sentence with most words in common."""
    if entry.fully_supported:
        return None
    subject = Subject(record)
    own = set(subject.words(entry.response_sentence_key))
    key = max(subject.documents, key=lambda one: len(own.intersection(subject.words(one))))
    changes = {"fully_supported": True, "supporting_sentence_keys": (key,)}
    return with_entry(record, entry.model_copy(update=changes))


def general(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """A sentence with document support is called general."""
    changes = {"supporting_sentence_keys": ("general",)}
    return with_entry(record, entry.model_copy(update=changes)) if named(entry) else None


def other_document(
    record: LabelRecord, entry: SentenceSupport, random: Random
) -> LabelRecord | None:
    """The support is a sentence of another document."""
    own = {position(key).document for key in named(entry)}
    others = [k for k in record.example.document_keys() if position(k).document not in own]
    if not own or not others or not entry.fully_supported:
        return None
    changes = {"supporting_sentence_keys": (random.choice(others),)}
    return with_entry(record, entry.model_copy(update=changes))


def next_sentence(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """The support is off by one sentence."""
    keys = list(record.example.document_keys())
    after = dict(pairwise(keys))
    moved = tuple(after[key] for key in named(entry) if key in after)
    if not moved or not entry.fully_supported or set(moved) & set(named(entry)):
        return None
    return with_entry(record, entry.model_copy(update={"supporting_sentence_keys": moved}))


def number(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """A number of a supported sentence is another one."""
    if not named(entry) or not entry.fully_supported:
        return None
    text = text_of(record, entry.response_sentence_key)
    found = re.search(r"(?<![\w.,-])\d{1,4}(?![\w.,)-])", text)
    if found is None:
        return None
    changed = f"{text[: found.start()]}{int(found[0]) + 3}{text[found.end() :]}"
    return with_text(record, entry.response_sentence_key, changed)


def negation(record: LabelRecord, entry: SentenceSupport, _: Random) -> LabelRecord | None:
    """A supported sentence says the contrary."""
    if not named(entry) or not entry.fully_supported:
        return None
    text = text_of(record, entry.response_sentence_key)
    changed = re.sub(r"\b(is|are|was|were|can|will|should|does|has)\b", r"\1 not", text, count=1)
    return None if changed == text else with_text(record, entry.response_sentence_key, changed)


KINDS: dict[str, Planter] = {
    "supported sentence called unsupported": unsupported,
    "unsupported sentence called supported": supported,
    "sentence with support called `general`": general,
    "support in another document": other_document,
    "support off by one sentence": next_sentence,
    "number changed, still called supported": number,
    "negation added, still called supported": negation,
}


def plant(records: Sequence[LabelRecord], planter: Planter) -> Iterator[Planted]:
    """Yield labels with an error, one a record."""
    random = Random(SEED)  # noqa: S311 - errors, no secrets
    order = random.sample(list(records), len(records))
    count = 0
    for record in order:
        entries = list(record.label.sentence_support_information)
        for entry in random.sample(entries, len(entries)):
            made = planter(record, entry, random)
            if made is not None:
                yield Planted(record, made, entry.response_sentence_key)
                count += 1
                break
        if count >= MOST:
            return


class Figures(NamedTuple):
    """Found share and AUROC of one kind, without and with a second opinion."""

    errors: int
    found: tuple[float, float]
    ranked: tuple[float | None, float | None]


def is_found(before: Sequence[Finding], after: Sequence[Finding], key: str) -> bool:
    """True if a new finding names the sentence."""
    known = {(one.check, one.keys) for one in before}
    return any(key in one.keys and (one.check, one.keys) not in known for one in after)


def figures(records: Sequence[LabelRecord], planter: Planter) -> Figures:
    """Return the figures of one kind."""
    planted = list(plant(records, planter))
    found, ranked = [], []
    for second in (lambda _: None, second_opinion):
        before = [examine(one.before, second(one.before)) for one in planted]
        after = [examine(one.after, second(one.after)) for one in planted]
        pairs = zip(before, after, planted, strict=True)
        found.append(fmean(is_found(b[0], a[0], one.key) for b, a, one in pairs))
        rows = [
            Ranked(score, wrong)
            for some, wrong in ((before, False), (after, True))
            for _, score in some
        ]
        ranked.append(area(rows))
    return Figures(len(planted), (found[0], found[1]), (ranked[0], ranked[1]))


def tables(records: Sequence[LabelRecord]) -> dict[str, list[str]]:
    """The table of all kinds, and what a second opinion finds in untouched labels."""
    second = "with a second opinion"
    lines = [
        line(["planted error", "errors", "found", second, "AUROC", second]),
        line(["---", *["--:"] * 5]),
    ]
    for name, planter in KINDS.items():
        got = figures(records, planter)
        cells = [f"{share:.3f}" for share in got.found] + [shown(one) for one in got.ranked]
        lines.append(line([name, got.errors, *cells]))
    lines += ["", *untouched(records)]
    return {"planted": lines}


def untouched(records: Sequence[LabelRecord]) -> Iterator[str]:
    """How often the checks of a second opinion find something in untouched labels."""
    found = [examine(one, second_opinion(one))[0] for one in records]
    sentences = sum(len(one.label.sentence_support_information) for one in records)
    for check in ("second_opinion_disagrees", "general_makes_a_claim"):
        named_by = sum(one.check == check for some in found for one in some)
        flagged = sum(any(one.check == check for one in some) for some in found)
        yield (
            f"`{check}` in untouched labels: {percent(named_by, sentences)} of {sentences:,} "
            f"sentences, {percent(flagged, len(records))} of {len(records):,} records."
        )


def main() -> None:
    """Read, plant, examine, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ragbench_folder())
    parser.add_argument("--write", type=Path, metavar="FILE", help="also put the table into a page")
    options = parser.parse_args()
    files = ragbench_files(options.folder)
    if not files:
        parser.error(f"no RAGBench rows in {options.folder}; name a folder of .jsonl.gz files")
    records = [o for o in true_labels(files, "all") if isinstance(o, LabelRecord)]
    parts = tables(records)
    for lines in parts.values():
        print(*lines, sep="\n")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(replaced(page, dict(parts)), encoding="utf-8")


if __name__ == "__main__":
    main()
