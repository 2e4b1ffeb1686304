"""Audit RAGBench's published labels, and plant errors in them: docs/measured/audit.md.

    python benchmarks/audit_ragbench.py [--only audit|planted] [--write docs/measured/audit.md]

How often each check flags the published labels, the most suspicious of them by id, and how well
suspicion of the embedded judge's labels finds the records in which its verdict on the whole
response differs from the published one. Weights were chosen on ``development`` rows (train and
validation). False alarms of the checks of texts and explanations were mended by reading findings in
rows of every split, without regard to whether the embedded judge was right there.

Planted: each record that allows it gets one error of a kind, drawn with a fixed seed; the audit
examines the label before and after, without and with a second opinion. An error is found if a
finding that the label did not have before names the response sentence. The AUROC is the probability
that the suspicion score of a label with the error is above that of an untouched label of another
record. Published labels have errors of their own, so neither figure can reach 1.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from random import Random
from statistics import fmean
from typing import NamedTuple

from harness import options, publish, shown, table
from labeler.audit import (
    Audit,
    Finding,
    Subject,
    audit_labels,
    examine,
    findings_of,
    suspicion_score,
)
from labeler.judges.embedded import second_opinion
from labeler.labels.answers import SPECIAL_SUPPORT, SentenceSupport
from labeler.labels.record import LabelRecord
from labeler.labels.signature import label_key
from labeler.sentences.example import position
from published import area, judged, published, split_of, subset_of

EXAMPLES = 3
DEEP = (50, 200)
"""How many of the most suspicious records a person might read."""


# -- the published labels -------------------------------------------------------------------------


def with_subset(record: LabelRecord) -> LabelRecord:
    """A record with a column to count by."""
    metadata = {**record.example.metadata, "subset": subset_of(record)}
    example = record.example.model_copy(update={"metadata": metadata})
    return record.model_copy(update={"example": example})


def rates_table(found: Audit) -> Iterator[str]:
    """Rates of all checks that had something to look at, over all rows and by subset."""
    subsets = sorted({row.group or "" for row in found.rows})
    lines = []
    for check in found.checks:
        rows = [row for row in found.rows if row.check is check]
        records, flagged = sum(row.records for row in rows), sum(row.flagged for row in rows)
        if records:
            own = [[row for row in rows if row.group == subset] for subset in subsets]
            shares = [percent(sum(r.flagged for r in o), sum(r.records for r in o)) for o in own]
            counts = [f"{records:,}", flagged, percent(flagged, records)]
            lines.append([f"`{check.id}`", *counts, *shares])
    return table(["check", "applies to", "flagged", "rate", *subsets], lines)


def percent(part: int, whole: int) -> str:
    """A share as a cell."""
    return f"{100 * part / whole:.2f} %" if whole else "n/a"


def examples(found: Audit) -> Iterator[str]:
    """The most suspicious records, one of each subset, by id: keys and counts alone."""
    seen: set[str | None] = set()
    for record in found.ranked():
        if record.group not in seen and len(seen) < EXAMPLES:
            seen.add(record.group)
            yield f"- `{record.id}`, suspicion score {record.suspicion:.2f}:"
            for finding in record.findings:
                keys = f" ({', '.join(finding.keys)})" if finding.keys else ""
                yield f"  - `{finding.check}`{keys}"


# -- value of the suspicion score -----------------------------------------------------------------


class Ranked(NamedTuple):
    """A record to rank: its suspicion score, and true if the verdict is wrong."""

    suspicion: float
    wrong: bool


def share_among(rows: Sequence[Ranked], deep: int) -> float | None:
    """Share of wrong verdicts among the most suspicious; ties are averaged."""
    left, wrong = float(min(deep, len(rows))), 0.0
    if not left:
        return None
    read = left
    ordered = sorted(rows, key=lambda row: -row.suspicion)
    for _, equal in groupby(ordered, key=lambda row: row.suspicion):
        group = list(equal)
        taken = min(left, len(group))
        wrong += taken * fmean(row.wrong for row in group)
        left -= taken
    return wrong / read


def suspicion_table(pairs: Sequence[tuple[LabelRecord, LabelRecord]]) -> Iterator[str]:
    """The suspicion score's power to find wrong verdicts, next to the lowest support score."""
    scores: dict[str, Callable[[LabelRecord], float]] = {
        "suspicion score": lambda one: suspicion_score(findings_of(one)),
        "lowest support score": _lowest,
    }
    lines = []
    for split in ("development", "test"):
        part = [(truth, made) for truth, made in pairs if split_of(truth) == split]
        wrong = [a.label.overall_supported != b.label.overall_supported for a, b in part]
        for name, score in scores.items():
            rows = [
                Ranked(score(made), is_wrong)
                for (_, made), is_wrong in zip(part, wrong, strict=True)
            ]
            cells = [area(rows), fmean(wrong), *(share_among(rows, deep) for deep in DEEP)]
            lines.append([split, f"{len(rows):,}", name, *map(shown, cells)])
    among = [f"wrong among {deep} most suspicious" for deep in DEEP]
    heads = ["rows", "records", "ranked by", "AUROC", "wrong on average", *among]
    return table(heads, lines, left=3)


def _lowest(record: LabelRecord) -> float:
    return -min(record.scores.support.values(), default=0.0) if record.scores else 0.0


def audited(truth: Sequence[LabelRecord]) -> dict[str, list[str]]:
    """Every part about the published labels by its name."""
    records = [with_subset(record) for record in truth]
    started = time.process_time()
    found = audit_labels(records, by="subset")
    each = (time.process_time() - started) / len(records)
    made = {one.id: one for one in judged(truth)[0]}
    return {
        "rates": [
            (
                f"{len(records):,} records: {found.worst['contradiction']:,} with a contradiction, "
                f"{found.worst['suspicion']:,} suspicious, {found.worst['note']:,} with "
                f"notes only; {each * 1000:.1f} ms of processor time a record."
            ),
            "",
            *rates_table(found),
        ],
        "examples": list(examples(found)),
        "doubt": list(suspicion_table([(t, made[t.id]) for t in truth if t.id in made])),
    }


# -- planted errors -------------------------------------------------------------------------------

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
        replace(one, text=text) if one.key == key else one for one in record.example.response
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
    random = Random(SEED)
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


def planted(records: Sequence[LabelRecord]) -> dict[str, list[str]]:
    """The table of all kinds, and what a second opinion finds in untouched labels."""
    second = "with a second opinion"
    lines = []
    for name, planter in KINDS.items():
        got = figures(records, planter)
        cells = [f"{share:.3f}" for share in got.found] + [shown(one) for one in got.ranked]
        lines.append([name, got.errors, *cells])
    heads = ["planted error", "errors", "found", second, "AUROC", second]
    return {"planted": [*table(heads, lines), "", *untouched(records)]}


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


PARTS = {"audit": audited, "planted": planted}


def main() -> None:
    """Read, audit or plant, print and write."""
    parser = options(__doc__)
    parser.add_argument("--only", choices=list(PARTS))
    given = parser.parse_args()
    truth = published()
    for part in [given.only] if given.only else PARTS:
        for name, lines in PARTS[part](truth).items():
            publish(given.write, name, lines)


if __name__ == "__main__":
    main()
