"""Label all published rows by an oracle of both APIs of models that decide, then by a noisy one.

    python benchmarks/decisions.py [--step 1]

The oracle (`tests/wire/decider.py`, on this machine) answers from the published labels: the labels
that come back must have the published values. The noisy one states calibrated probabilities whose
order has an area of .9 under the ROC curve. Exits with 1 where a value differs, or an expected
metric has the larger root mean square error.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist, fmean

import labeler
from harness import options
from labeler.judges.decisions.questions import decision_prompt
from labeler.judges.judge import JUDGES
from labeler.labels.record import LabelRecord
from ragbench_exact import COLUMNS
from support.real_data import published_labels
from wire.decider import KEY, Answer, Asked, Decider, truth
from wire.test_decision_judge import given

AREA = 0.9
METRICS = {
    "relevance": "relevance:expected",
    "utilization": "utilization:expected",
    "adherence": "adherence_score",
}
"""Metrics of thresholded verdicts, and those of probabilities."""
_ERRORS = ("mean absolute error a row", "root mean square", "error of the mean")
_SHIFT = math.sqrt(2) * NormalDist().inv_cdf(AREA)
"""Distance of two normal distributions with that area."""


def known_labels(step: int) -> dict[str, LabelRecord]:
    """Published labels that keep the contract, by the text of their request."""
    prompt, known = decision_prompt("trace/v1"), dict[str, LabelRecord]()
    for record in published_labels()[::step]:
        if not record.violations and "duplicate_key" not in record.normalised:
            known.setdefault(prompt.render(record.example)[0]["content"], record)
    return known


def labeled(
    name: str, answer: Answer, published: Sequence[LabelRecord]
) -> tuple[list[LabelRecord], int]:
    """Label the rows again; the labels, and the number of requests."""
    rows = [given(one) | {"id": str(n)} for n, one in enumerate(published)]
    with Decider(answer) as server:
        judge = JUDGES[name]("m", api_key=KEY, base_url=server.url)
        store = labeler.MemoryStore()
        made = list(labeler.iter_labels(rows, judge=judge, store=store, splitter="given"))
        requests = len(server.requests)
    return [one for one in made if isinstance(one, LabelRecord)], requests


def differing(published: LabelRecord, row: labeler.MetricsRow) -> Iterator[str]:
    """Yield the published columns that a label does not have."""
    scores = published.example.metadata["published"]
    for metric, column in COLUMNS.items():
        # A label without relevant sentences has no completeness; the data set says 1.
        value = row.metrics[metric].value
        if (1 if value is None else value) != scores[column]:
            yield column


def oracle_lines(known: Mapping[str, LabelRecord]) -> Iterator[tuple[str, bool]]:
    """Yield what came back, by API."""
    published = list(known.values())
    for name in ("decisions", "systemone"):
        made, requests = labeled(name, lambda one: truth(known[one.text], one), published)
        wrong = dict.fromkeys(list(COLUMNS.values())[:3], 0)
        contradicting = unexplained = 0
        values = labeler.metrics(made, COLUMNS)
        for before, after in zip(published, values, strict=True):
            label = before.label
            each = all(one.fully_supported for one in label.sentence_support_information)
            for column in differing(before, after):
                if column != "adherence_score":
                    wrong[column] += 1
                elif each != label.overall_supported:
                    contradicting += 1
                else:
                    unexplained += 1
        text = (
            f"{name}: {len(made):,} labels of {len(published):,} rows, {requests:,} requests; "
            f"other values: {wrong}, adherence {unexplained}, and {contradicting} where the "
            "published verdict contradicts its sentences"
        )
        is_right = not any(wrong.values()) and not unexplained and len(made) == len(published)
        yield text, is_right and requests == len(published)


class Noisy:
    """States calibrated probabilities of a kind of verdict, whose area under the curve is known.

    Args:
        known: labels by the text of their request.
    """

    def __init__(self, known: Mapping[str, LabelRecord]) -> None:
        self._known = known
        counts: dict[str, list[int]] = {"relevant": [], "utilized": [], "supported": []}
        for record in known.values():
            label, example = record.label, record.example
            yes = {
                "relevant": set(label.all_relevant_sentence_keys),
                "utilized": set(label.all_utilized_sentence_keys),
            }
            for kind, keys in yes.items():
                counts[kind] += [key in keys for key in example.document_keys()]
            entries = label.sentence_support_information
            counts["supported"] += [one.fully_supported for one in entries]
        self._odds = {kind: fmean(values) for kind, values in counts.items()}

    def __call__(self, asked: Asked) -> object:
        """Return the probability that the truth is yes, given a noisy observation of it."""
        right = truth(self._known[asked.text], asked)
        if asked.options:
            return right
        draw = random.Random(f"{asked.text}\0{asked.kind}\0{asked.key}")
        seen = draw.gauss(_SHIFT if right else 0.0, 1.0)
        prior = self._odds[asked.kind]
        odds = prior / (1 - prior) * math.exp(_SHIFT * seen - _SHIFT * _SHIFT / 2)
        return odds / (1 + odds)


def noisy_lines(known: Mapping[str, LabelRecord]) -> Iterator[tuple[str, bool]]:
    """Yield the errors of thresholded and of expected metrics."""
    published = list(known.values())
    made, _ = labeled("decisions", Noisy(known), published)
    rows = list(labeler.metrics(made, [each for pair in METRICS.items() for each in pair]))
    for hard, soft in METRICS.items():
        right = [one.example.metadata["published"][f"{hard}_score"] for one in published]
        ends = []
        for each in (hard, soft):
            values = [float(row.metrics[each].value or 0) for row in rows]
            off = [a - b for a, b in zip(values, right, strict=True)]
            ends.append((fmean(map(abs, off)), math.sqrt(fmean(e * e for e in off)), fmean(off)))
        errors = "; ".join(
            f"{name} {before:.4f} → {after:.4f}"
            for name, before, after in zip(_ERRORS, *ends, strict=True)
        )
        # An expectation is best in squares, not in absolute errors.
        yield f"{hard} → {soft}, area {AREA}: {errors}", ends[1][1] < ends[0][1]


def main() -> int:
    """Print the findings; 1 if one is not as it should be."""
    parser = options(__doc__)
    parser.add_argument("--step", type=int, default=1, help="every so many rows")
    known = known_labels(parser.parse_args().step)
    met = True
    for lines in (oracle_lines(known), noisy_lines(known)):
        for text, holds in lines:
            met = met and holds
            print(f"{'yes' if holds else 'NO '} {text}", flush=True)
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
