"""Measure the embedded judge against published labels and people: docs/measured/embedded_judge.md.

    python benchmarks/embedded.py [--only figures|history|negations] [--write PAGE]
    python benchmarks/embedded.py --show-errors    # the surest errors with their texts

Scores are what the metrics return. Nothing was chosen on RAGBench's test rows, nor on the second
half of MTRAG's conversations. ``emanual`` stands apart: its test rows share documents with training
rows. ``history`` labels MTRAG's answers to follow-up questions with the turns hidden and shown, and
all answers with the conversation as the question.

``negations`` inserts into sentences that the published label and the judge call supported one
negation of each kind that fits, at the first place where it fits; it is caught if the judge then
calls the sentence unsupported. The price is paid by sentences as they are: those that the published
label calls supported and the judge does not, in all and because of a negation.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import krippendorff

import labeler
from harness import options, publish, shown, table
from labeler.calculators.agreement import Pattern
from labeler.calculators.rater_agreement import FieldRatings
from labeler.judges.embedded.features import SUPPORT, describe, load_weights
from labeler.labels.answers import SPECIAL_SUPPORT
from labeler.labels.record import LabelRecord
from labeler.sentences.citations import find_markers
from labeler.sentences.example import Example, KeyedExample, Sentence, position
from published import CUTS, Answer, area, judged, mtrag_answers, mtrag_file, published, subset_of

METRICS = ("adherence", "adherence_score", "relevance:expected", "utilization:expected")
HISTORY = ("adherence", "adherence_fraction", "adherence_score", "supported_by_history")
OTHERS = {
    "TruLens": "trulens_groundedness",
    "RAGAS": "ragas_faithfulness",
    "GPT-3.5": "gpt3_adherence",
}
"""Published columns of other judges that score adherence."""
SHOWN = 12


# -- figures ---------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A record of people or of GPT-4, and what the judge says of it.

    Attributes:
        group: its data set.
        adherent: true if the response is supported in truth.
        truth: the published label; ``None`` for MTRAG.
        judged: the judge's record.
        values: the metrics of the judge's record.
    """

    group: str
    adherent: bool
    truth: LabelRecord | None
    judged: LabelRecord
    values: dict[str, float | None]

    def published(self, column: str) -> float | None:
        """Return a column of the data set."""
        found: float | None = None
        if self.truth:
            found = self.truth.example.metadata["published"][column]
        return found


Rows = Sequence[Row]


def measured(record: LabelRecord, names: Sequence[str] = METRICS) -> dict[str, float | None]:
    """Return metrics of a record."""
    (row,) = labeler.metrics([record], names)
    return {name: ratio.value for name, ratio in row.metrics.items()}


def labeled(truth: Sequence[LabelRecord]) -> tuple[list[Row], float]:
    """Label rows; return them and the CPU seconds of the judge."""
    found, seconds = judged(truth)
    by_id = {one.id: one for one in found}
    return [
        Row(subset_of(one), one.label.overall_supported, one, made, measured(made))
        for one in truth
        if (made := by_id.get(one.id))
    ], seconds


def with_markers(record: LabelRecord) -> LabelRecord:
    """Plant "[n]" at the end of each sentence, for each document of its published support."""
    named = {
        one.response_sentence_key: {
            position(key).document + 1
            for key in one.supporting_sentence_keys
            if key not in SPECIAL_SUPPORT
        }
        for one in record.label.sentence_support_information
    }
    response = tuple(
        replace(one, text="".join([one.text.rstrip(), *(f" [{n}]" for n in sorted(numbers))]))
        if (numbers := named.get(one.key))
        else one
        for one in record.example.response
    )
    example = record.example.model_copy(update={"response": response})
    return record.model_copy(update={"example": example})


def half_of(answer: Answer) -> str:
    """Return the half of an answer's conversation."""
    conversation = str(answer.row["id"]).partition("<::>")[0]
    odd = int(hashlib.sha256(conversation.encode()).hexdigest(), 16) % 2
    return "MTRAG, unread half" if odd else "MTRAG, half for thresholds"


def mtrag(answers: Sequence[Answer]) -> list[Row]:
    """Label MTRAG's answers; people's median faithfulness of 3 or more is a yes."""
    found = labeler.iter_labels(
        [one.row for one in answers], judge="embedded", store=labeler.MemoryStore()
    )
    return [
        Row(half_of(answer), answer.rating >= CUTS[1], None, one, measured(one))
        for answer, one in zip(answers, found, strict=True)
        if isinstance(one, LabelRecord)
    ]


def groups_of(rows: Rows) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of each data set, then those of all, without and with emanual."""
    names = dict.fromkeys(row.group for row in rows)
    for name in names:
        yield name, [row for row in rows if row.group == name]
    if "emanual" in names:
        yield "all but emanual", [row for row in rows if row.group != "emanual"]
        yield "all", rows


def auroc(rows: Rows, name: str) -> float | None:
    """AUROC of a metric for adherence; rows without a value are left out."""
    return area((value, row.adherent) for row in rows if (value := row.values[name]) is not None)


def rmse(rows: Rows, name: str, column: str) -> float:
    """Error of a metric against a published column."""
    return math.sqrt(
        fmean(((row.values[name] or 0) - (row.published(column) or 0)) ** 2 for row in rows)
    )


class Judged(NamedTuple):
    """A response sentence with its published verdict and the judge's probability."""

    row: Row
    sentence: Sentence
    score: float
    supported: bool


def sentences(rows: Rows) -> Iterator[Judged]:
    """Yield each response sentence that has a published verdict."""
    for row in rows:
        if row.truth is None or row.judged.scores is None:
            continue
        found = {one.key: one for one in row.truth.example.response}
        for entry in row.truth.label.sentence_support_information:
            key = entry.response_sentence_key
            if key in found:
                yield Judged(row, found[key], row.judged.scores.support[key], entry.fully_supported)


def quality_table(rows: Rows) -> Iterator[str]:
    """AUROC and errors by subset."""
    titles = [
        "test rows of",
        "rows",
        "`adherence_score` AUROC",
        "sentence AUROC",
        "`adherence` AUROC",
        "`relevance:expected` RMSE",
        "`utilization:expected` RMSE",
    ]

    def cells(part: Rows) -> list[float | None]:
        return [
            auroc(part, "adherence_score"),
            area((one.score, one.supported) for one in sentences(part)),
            auroc(part, "adherence"),
            rmse(part, "relevance:expected", "relevance_score"),
            rmse(part, "utilization:expected", "utilization_score"),
        ]

    return table(titles, ([name, len(p), *map(shown, cells(p))] for name, p in groups_of(rows)))


def other_judges(rows: Rows) -> str:
    """AUROC of published columns of other judges on the same rows."""
    found = []
    for name, column in OTHERS.items():
        pairs = [(x, row.adherent) for row in rows if (x := row.published(column)) is not None]
        some = f" ({len(pairs)} rows with a value)" if len(pairs) < len(rows) else ""
        found.append(f"{name} {shown(area(pairs))}{some}")
    return (
        f"AUROC of published columns of other judges for adherence, all rows: {', '.join(found)}."
    )


def verdict_table(*sets: Rows) -> Iterator[str]:
    """The verdicts at the one threshold, on each data set: how it transfers."""
    titles = ["rows", "not supported in truth", "flagged", "precision", "recall", "AUROC"]

    def cells(part: Rows) -> list[float | None]:
        wrong = [not row.adherent for row in part]
        flagged = [row.values["adherence"] == 0 for row in part]
        hits = sum(a and b for a, b in zip(wrong, flagged, strict=True))
        shares = [hits / sum(one) if any(one) else None for one in (flagged, wrong)]
        return [fmean(wrong), fmean(flagged), *shares, auroc(part, "adherence_score")]

    parts = [group for rows in sets for group in groups_of(rows)]
    return table(
        ["data set", *titles], ([name, len(p), *map(shown, cells(p))] for name, p in parts)
    )


def citing_table(rows: Rows, planted: Rows, threshold: float) -> Iterator[str]:
    """Sentence figures without markers and with planted ones, by whether a sentence got one."""
    titles = ["sentences", "markers", "number", "supported in truth", "called so", "AUROC"]
    pairs = list(zip(sentences(rows), sentences(planted), strict=True))
    groups = {
        "that support names": [pair for pair in pairs if find_markers(pair[1].sentence.text)],
        "others": [pair for pair in pairs if not find_markers(pair[1].sentence.text)],
        "all": pairs,
    }

    def lines() -> Iterator[list[object]]:
        for name, some in groups.items():
            changed = sum(a.score != b.score for a, b in some)
            turned = sum((a.score >= threshold) != (b.score >= threshold) for a, b in some)
            for kind, counts, place in (("none", ("", ""), 0), ("planted", (changed, turned), 1)):
                part = [pair[place] for pair in some]
                cells = [
                    fmean(one.supported for one in part),
                    fmean(one.score >= threshold for one in part),
                    area((one.score, one.supported) for one in part),
                ]
                yield [name, kind, len(part), *map(shown, cells), *counts]

    return table([*titles, "probabilities changed", "verdicts changed"], lines(), left=2)


def surest_errors(rows: Rows) -> Iterator[tuple[str, Judged]]:
    """The surest false alarms and misses."""
    found = sorted(sentences(rows), key=lambda one: one.score)
    alarms = [one for one in found if one.supported]
    misses = [one for one in reversed(found) if not one.supported]
    for kind, some in (("false alarm", alarms), ("miss", misses)):
        yield from ((kind, one) for one in some[: SHOWN // 2])


def texts_of_errors(rows: Rows) -> Iterator[str]:
    """The surest errors with question, sentence and closest document sentence."""
    for kind, one in surest_errors(rows):
        example = one.row.judged.example
        texts = {sentence.key: sentence.text for sentence in example.document_sentences()}
        key = next(iter(describe(example).evidence[one.sentence.key].closest), None)
        yield f"{kind}: {one.row.judged.id}, probability {shown(one.score)}"
        yield f"  question      {example.question!r}"
        yield f"  sentence {one.sentence.key:4} {one.sentence.text!r}"
        yield f"  closest {key or '-':5} {texts[key] if key else '(none)'!r}\n"


def figures() -> Iterator[str]:
    """All figures, line by line; texts of data sets stay in the data."""
    truth = published("test")
    rows, seconds = labeled(truth)
    planted, _ = labeled(list(map(with_markers, truth)))
    count = sum(len(row.judged.example.response) for row in rows)
    yield "Ranking, and errors of ratios, against published labels:\n"
    yield from quality_table(rows)
    yield f"\n{other_judges(rows)}"
    yield "\nVerdicts at the default threshold, here and on people's ratings (MTRAG):\n"
    yield from verdict_table(rows, mtrag(mtrag_answers()))
    yield "\nSentences without markers, and with markers planted from the published support:\n"
    yield from citing_table(rows, planted, load_weights().thresholds["support"])
    yield f"\nThe surest errors, of {count:,} sentences:\n"
    yield from table(
        ["error", "record", "sentence", "probability"],
        (
            [kind, f"`{one.row.judged.id}`", one.sentence.key, shown(one.score)]
            for kind, one in surest_errors(rows)
        ),
        left=3,
    )
    yield (
        f"\nSpeed: {1000 * seconds / count:.2f} ms of CPU time a response sentence, "
        f"{len(rows) / seconds:,.0f} records a second."
    )


# -- history ---------------------------------------------------------------------------------------


def follow_ups(path: Path) -> list[tuple[Example, float]]:
    """Return the answers that follow earlier turns, read as ``labeler label`` reads them."""
    read = (row.content for row in labeler.open_rows(path))
    return [
        (one, median(int(said["value"]) for said in _faithfulness(one)))
        for one in read
        if isinstance(one, Example) and one.history
    ]


def _faithfulness(one: Example) -> Iterable[dict[str, str]]:
    found: dict[str, dict[str, str]] = one.metadata["annotations"]["faithfulness"]
    return found.values()


def agreement(rows: Sequence[object], ratings: Sequence[float], cut: int) -> list[object]:
    """Label answers in memory, and return cells of the judge's agreement with people at a cut."""
    found = labeler.iter_labels(rows, judge="embedded", store=labeler.MemoryStore())
    patterns, pairs, shares = Counter[Pattern](), [], []
    for record, rating in zip(found, ratings, strict=True):
        if isinstance(record, LabelRecord):
            adherent, share, score, by_history = measured(record, HISTORY).values()
            if adherent is not None and share is not None:
                patterns[adherent, float(rating >= cut)] += 1
                pairs.append((share if score is None else score, rating >= cut))
                shares += [] if by_history is None else [by_history]
    made = FieldRatings(patterns).agreement("faithful")
    numbers = [made.raw, made.mean_a, made.by_name["kappa"].value, area(pairs)]
    return [made.units, *map(shown, [*numbers, fmean(shares) if shares else None])]


def history(path: Path | None = None) -> Iterator[str]:
    """The judge's agreement with people, by the place of the turns."""
    file = path or mtrag_file()
    titles = ["turns", "people's yes", "answers", "agree", "judge says yes", "kappa"]
    examples, ratings = zip(*follow_ups(file), strict=True)
    whole = mtrag_answers(file)
    sets: dict[str, tuple[Sequence[object], Sequence[float]]] = {
        "hidden": ([one.model_copy(update={"history": None}) for one in examples], ratings),
        "shown": (examples, ratings),
        "in the question, first ones too": (
            [one.row for one in whole],
            [one.rating for one in whole],
        ),
    }
    yield from table(
        [*titles, "AUROC of the score", "`supported_by_history`"],
        (
            [turns, f"≥ {cut}", *agreement(rows, given, cut)]
            for turns, (rows, given) in sets.items()
            for cut in CUTS
        ),
    )
    yield f"\nPeople among themselves, {len(whole)} answers: ordinal alpha {shown(alpha(whole))}."


def alpha(answers: Iterable[Answer]) -> float:
    """Return the ordinal alpha of people's ratings; who rated plays no part in it."""
    scale = (1, 2, 3, 4)
    counts = [[answer.ratings.count(one) for one in scale] for answer in answers]
    return float(
        krippendorff.alpha(value_counts=counts, value_domain=scale, level_of_measurement="ordinal")
    )


# -- negations -------------------------------------------------------------------------------------

_AUXILIARY = r"\b(is|are|was|were|can|could|will|would|should|must|may|(?:has|have) been)"
_HAVING = r"\b(has|have|contains?|includes?|provides?|requires?|causes?|offers?|supports?|needs?)"
_COMMAND = (
    "Press|Select|Use|Turn|Set|Touch|Check|Connect|Open|Remove|Add|Place|Make|Keep|Ensure|Move"
)
NEGATIONS = {
    "not": (rf"{_AUXILIARY} (?!not\b|never\b)(?=[a-z])", r"\1 not "),
    "n't": (r"\b(is|are|was|were|could|would|should|has|have) (?!not\b)(?=[a-z])", r"\1n't "),
    "never": (rf"{_AUXILIARY} (?!not\b|never\b)(?=[a-z])", r"\1 never "),
    "no": (rf"{_HAVING} (?:an? |the )?(?=[a-z])", r"\1 no "),
    "do not": (rf"(^|[:.] |\d\. |- )({_COMMAND})\b", r"\1Do not \2"),
}
"""Patterns of places for a negation, and what replaces them."""
_FLIPPED = SUPPORT.index("flipped")


class Verdict(NamedTuple):
    """The judge's verdict on a sentence.

    Attributes:
        passes: True if its probability reaches the threshold.
        passes_anyway: the same, if negations did not count.
        is_claim: True if the sentence makes a claim about the documents' content.
    """

    passes: bool
    passes_anyway: bool
    is_claim: bool


def verdicts(example: KeyedExample) -> dict[str, Verdict]:
    """Judge every response sentence."""
    weights, found = load_weights(), describe(example)
    made = {}
    for (key, evidence), values in zip(found.evidence.items(), found.support, strict=True):
        plain = [0.0 if n == _FLIPPED else value for n, value in enumerate(values)]
        passes, passes_anyway = (
            evidence.kind != "empty"
            and weights.support.probability(one) >= weights.thresholds["support"]
            for one in (values, plain)
        )
        made[key] = Verdict(passes, passes_anyway, evidence.kind == "claim")
    return made


def with_text(example: KeyedExample, key: str, text: str) -> KeyedExample:
    """Return an example with another text of a response sentence."""
    response = (replace(one, text=text) if one.key == key else one for one in example.response)
    return example.model_copy(update={"response": tuple(response)})


def negations() -> Iterator[str]:
    """Count inserted and caught negations over the test rows; the rules were made on others."""
    planted, caught, correct = Counter[str](), Counter[str](), Counter[str]()
    for record in published("test"):
        before = verdicts(record.example)
        entries = record.label.sentence_support_information
        supported = {one.response_sentence_key for one in entries if one.fully_supported}
        for sentence in record.example.response:
            if sentence.key not in supported:
                continue
            found = before[sentence.key]
            correct["all"] += 1
            correct["failed"] += not found.passes
            correct["by a negation"] += found.passes_anyway and not found.passes
            for kind, (pattern, by) in NEGATIONS.items() if found.passes and found.is_claim else ():
                text = re.sub(pattern, by, sentence.text, count=1)
                if text != sentence.text:
                    after = verdicts(with_text(record.example, sentence.key, text))
                    planted[kind] += 1
                    caught[kind] += not after[sentence.key].passes
    planted["all"], caught["all"] = planted.total(), caught.total()
    yield from table(
        ["negation", "inserted", "caught"],
        (
            [kind, f"{planted[kind]:,}", shown(caught[kind] / planted[kind])]
            for kind in [*NEGATIONS, "all"]
        ),
    )
    yield (
        f"\nOf {correct['all']:,} correct sentences as they are, {correct['failed']:,} are called "
        f"unsupported, {correct['by a negation']:,} because of a negation."
    )


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "negations": negations,
    "figures": figures,
    "history": history,
}


def main() -> None:
    """Measure, print and write."""
    parser = options(__doc__)
    parser.add_argument("--only", choices=list(PARTS))
    parser.add_argument("--show-errors", action="store_true", help="print the surest errors only")
    given = parser.parse_args()
    if given.show_errors:
        print(*texts_of_errors(labeled(published("test"))[0]), sep="\n")
        return
    for name in [given.only] if given.only else PARTS:
        publish(given.write, name, PARTS[name]())


if __name__ == "__main__":
    main()
