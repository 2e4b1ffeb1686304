"""Simulate judges that change or have blind spots, and count how often they are found.

    python benchmarks/exam.py [--only anchors|exam|embedded] [--tries 200]
        [--write docs/measured/exam.md]

Anchors: 80 of 1,000 records of 1 to 6 sentences, chosen by their first answers as the package does;
3 % of verdicts flip at random whenever they are asked. A changed judge has another verdict on 10 %
of the sentences for good. Exams: a judge with one blind
spot, drawn among the kinds of damage, catches 30 % of it and 90 % of every other kind; n = 200.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import labeler
from harness import options, publish, table
from labeler.comparing.calibration import FIELDS as VERDICTS
from labeler.evidence.anchors import find_change, look_level
from labeler.evidence.copies import DAMAGED, KINDS, as_example, in_turn
from labeler.evidence.exam import Exam
from labeler.judges.embedded import second_opinion
from labeler.judges.embedded.features import load_weights
from labeler.judges.scripted import FunctionJudge
from labeler.judges.task import Task
from labeler.labels.answers import judged_sentences
from labeler.labels.record import LabelRecord
from labeler.sentences.display import in_percent, percent
from published import published
from support.answers import answer

RECORDS, LABELED, FLIPS, CHANGE, SUPPORTED = 80, 1000, 0.03, 0.10, 0.8
BLIND, OTHERS, COPIES, NEAR = 0.3, 0.9, 200, 0.07
FACTS = (
    "The tower of {} is {} meters high.",
    "Farmers near {} can harvest {} tons of barley.",
    "Doctor {} has treated {} patients with fever.",
    "Tickets for the {} festival will cost {} crowns.",
)
Truth = list[np.ndarray]


def first_alarm(
    random: np.random.Generator, change: float, since: int, looks: int, supported: float = SUPPORTED
) -> int | None:
    """The look that finds a change, in one series of checks."""
    truth: Truth = [random.random(n) < supported for n in random.integers(1, 7, LABELED)]

    def ask(verdicts: Truth) -> list[list[bool]]:
        return [(one ^ (random.random(len(one)) < FLIPS)).tolist() for one in verdicts]

    first = ask(truth)
    kinds = [[n for n, one in enumerate(first) if all(one) == yes] for yes in (False, True)]
    turns = in_turn(kinds)
    chosen, left_out = turns[:RECORDS], min(turns[RECORDS:])
    truth = [truth[n] for n in chosen]
    changed = [one ^ (random.random(len(one)) < change) for one in truth]
    answers = [[first[n]] for n in chosen]
    for look in range(1, looks + 1):
        for _ in range(2 if look == 1 else 1):
            for own, new in zip(answers, ask(changed if look >= since else truth), strict=True):
                own.append(new)
        firsts = [
            [n < left_out or all(one) == all(own[0]) for one in own]
            for n, own in zip(chosen, answers, strict=True)
        ]
        if find_change(answers, look_level(look) / len(VERDICTS), firsts).changed:
            return look
    return None


def anchors(tries: int) -> Iterator[str]:
    """How often a change is found within 3 looks, and how often there is a false alarm."""
    lines = []
    for since in (1, 2, 5, 20):
        random = np.random.default_rng(since)
        found = [first_alarm(random, CHANGE, since, since + 2) for _ in range(tries)]
        counts = [sum(one is not None and one >= since for one in found), found.count(since)]
        early = sum(one is not None and one < since for one in found)
        shares = [f"{one / tries:.1%}" for one in (*counts, early)]
        lines.append([f"changes before look {since}", tries, *shares])
    for supported in (SUPPORTED, 0.95):
        random = np.random.default_rng(0)
        false = sum(first_alarm(random, 0.0, 1, 50, supported) is not None for _ in range(tries))
        series = f"never changes, 50 looks, {percent(supported)} supported"
        lines.append([series, tries, "", "", f"{false / tries:.1%}"])
    heads = ["the judge", "series", "found within 3 looks", "at the first look", "alarm before"]
    return table(heads, lines)


def rows(random: np.random.Generator, count: int) -> list[labeler.Example]:
    """Rows whose sentences have a number, a name and a verb."""
    towns = ["".join(random.choice(list("aeioulmnrst"), 6)).capitalize() for _ in range(40)]
    found = []
    for n in range(count):
        town, other = random.choice(towns, 2, replace=False)
        fact = FACTS[n % len(FACTS)].format(town, random.integers(100, 999))
        more = f"Its {random.choice(towns)} bridge was opened in {random.integers(1100, 1999)}."
        found.append(
            labeler.Example(
                id=f"r{n}",
                question=f"What is known about place {n}?",
                documents=(fact, f"{more} Ships pass {other} at night.", f"Note {n} is short."),
                response=f"{fact} {more}",
            )
        )
    return found


def judge_with(spot: str, seed: int) -> FunctionJudge:
    """A judge that knows what stands in a document, and misses errors at the rates of the page."""
    random = np.random.default_rng(seed)

    @labeler.judge("simulated", version=seed + 1)
    def judge(task: Task) -> dict[str, Any]:
        keys = {one.text: one.key for one in task.example.document_sentences()}
        kind = task.example.id.rpartition("#")[2]
        caught = {one.name for one in KINDS if one.group == DAMAGED}
        rate = BLIND if kind == spot else OTHERS if kind in caught else 1.0
        support = {}
        for one in task.example.response:
            known = keys.get(one.text.partition(" [")[0])
            missed = known is None and kind in caught and random.random() > rate
            support[one.key] = [known] if known else ["0a"] if missed else []
        return answer(support)

    return judge


def exams(tries: int) -> Iterator[str]:
    """How often the blind spot, and only it, is found, and how far rates are off."""
    spots = [one.name for one in KINDS if one.group == DAMAGED]
    found, alone, errors = 0, 0, []
    for seed in range(tries):
        random = np.random.default_rng(seed)
        spot = str(random.choice(spots))
        store = labeler.MemoryStore()
        exam = labeler.exam(rows(random, COPIES), judge=judge_with(spot, seed), store=store)
        found += spot in exam.blind_spots
        alone += exam.blind_spots == (spot,)
        errors += [
            (rate.value or 0.0) - (BLIND if rate.kind == spot else OTHERS)
            for rate in exam.rates
            if rate.group == DAMAGED and rate.copies
        ]
    off = np.abs(errors)
    shares = [f"{one / tries:.1%}" for one in (found, alone)]
    yield f"{tries} exams: the blind spot found in {shares[0]}, and nothing else in {shares[1]}."
    yield (
        f"Rates of {len(errors):,} kinds: within 7 points of the truth in "
        f"{(off <= NEAR).mean():.1%}, largest error {off.max():.3f}."
    )


def embedded(_: int) -> Iterator[str]:
    """The embedded judge's own table, on RAGBench's rows."""
    truth = published()
    asked = [as_example(one.example) for one in truth if one.example.response]
    found: Exam = labeler.exam(asked, judge="embedded", n=COPIES, store=labeler.MemoryStore())
    lines = []
    for one in found.rates:
        low, high = one.interval or (0.0, 1.0)
        share = "-" if one.value is None else percent(one.value)
        ends = f"{in_percent(low)} to {percent(high)}"
        spot = "yes" if one.is_blind_spot else ""
        lines.append([one.kind, one.says, one.copies, share, ends, spot])
    heads = ["kind", "what was done", "copies", "right", "95 %", "blind spot"]
    yield from (found.sentence, "", *table(heads, lines, left=2), "", really_unsupported(truth))


def really_unsupported(published: Sequence[LabelRecord]) -> str:
    """How many sentences that are unsupported by published labels the embedded judge finds."""
    wrong = {
        (one.key, key)
        for one in published
        for key, entry in judged_sentences(one.label).items()
        if not entry.fully_supported
    }
    least, caught = load_weights().thresholds["support"], 0
    for one in published:
        stated = second_opinion(one)
        support = stated.support.items() if stated else ()
        caught += sum((one.key, key) in wrong and value < least for key, value in support)
    return (
        f"Of {len(wrong):,} sentences that the published labels call unsupported, it calls "
        f"{caught:,} ({percent(caught / len(wrong))}) unsupported."
    )


PARTS: dict[str, Callable[[int], Iterator[str]]] = {
    "anchors": anchors,
    "exam": exams,
    "embedded": embedded,
}


def main() -> None:
    """Simulate, print, write."""
    parser = options(__doc__)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--tries", type=int, default=200)
    given = parser.parse_args()
    for name in [given.only] if given.only else PARTS:
        publish(given.write, name, PARTS[name](given.tries))


if __name__ == "__main__":
    main()
