"""Train the embedded judge on RAGBench's published labels, and write its weights as JSON.

    python scripts/train_embedded.py [FOLDER]           # writes lexical.json
    python scripts/train_embedded.py [FOLDER] --check   # predicts each subset without its rows

Needs scikit-learn, which the package does not. Training rows are those whose ``dataset_name`` ends
in ``_train`` or ``_validation``, without rows whose question occurs in a test row. Subsets under
terms that exclude commercial use are left out (:data:`EXCLUDED`); ``--check`` predicts them too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import minimize  # type: ignore[import-untyped]  # not installed here
from sklearn.metrics import roc_auc_score  # type: ignore[import-not-found]

from labeler.judges.embedded import MODEL
from labeler.judges.embedded.features import FILE, RANK, SUPPORT, describe, record_features
from labeler.labels.record import LabelRecord
from labeler.plugins.ragbench import read_ragbench

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from ragbench_data import ragbench_files, ragbench_folder

EXCLUDED = {"msmarco": "MS MARCO is for non-commercial research only"}
DATA = (
    {
        "name": "RAGBench",
        "subsets": ["covidqa", "delucionqa", "emanual"],
        "splits": ["train", "validation"],
        "license": "CC-BY-4.0",
        "attribution": "Friel, Belyi, Sanyal 2024, arXiv 2407.11005",
    },
    {
        "name": "MTRAG",
        "used_for": "thresholds: half of the conversations",
        "license": "Apache-2.0",
        "attribution": "Katsis and others 2025, arXiv 2501.03468",
    },
)
Array: TypeAlias = Any
"""An array of numpy."""

THRESHOLDS = {"support": 0.82, "relevance": 0.35, "utilization": 0.35}
"""Support: the highest precision within .01 of the best F1 of unsupported records, as a mean over
the three subsets, each predicted without its rows, and half of MTRAG's conversations by people's
median faithfulness of 3 or more. The others: the best F1 of sentences over the three subsets."""
STRENGTH = 0.3
"""Inverse strength of the penalty on the model of support, on features of unit variance."""
RANK_STRENGTH = 0.03
"""The same, of the models of document sentences."""
SIGNS = [-1 if name.startswith(("unseen", "flipped", "scattered")) else 1 for name in SUPPORT]
"""Direction of each feature of a response sentence."""
AT_MOST = {"flipped": -3.0, "unseen_numbers": -3.0, "unseen_names": -0.6}
"""Slopes by hand: the training rows hold few such errors, and a sentence that copies a document
except for one number should not pass. Held-out figures do not change by them."""


class Data(NamedTuple):
    """Training rows as arrays; sentences name their record by position.

    Attributes:
        subsets: subset of each record.
        adherent: true if the record's response is supported.
        support: vectors of response sentences.
        supported: labels of response sentences.
        of_response: record of each response sentence.
        rank: vectors of document sentences.
        relevant: labels of document sentences.
        utilized: labels of document sentences.
        of_document: record of each document sentence.
    """

    subsets: Array
    adherent: Array
    support: Array
    supported: Array
    of_response: Array
    rank: Array
    relevant: Array
    utilized: Array
    of_document: Array

    def select(self, wanted: Array) -> Data:
        """Return the sentences of some records; records keep their positions."""
        mine, theirs = wanted[self.of_response], wanted[self.of_document]
        return Data(
            self.subsets,
            self.adherent,
            self.support[mine],
            self.supported[mine],
            self.of_response[mine],
            self.rank[theirs],
            self.relevant[theirs],
            self.utilized[theirs],
            self.of_document[theirs],
        )


Predict: TypeAlias = Callable[[Data], Array]
"""Predicts the sentences of records."""


# -- rows -----------------------------------------------------------------------------------------


def training_records(folder: Path) -> Iterator[tuple[str, LabelRecord]]:
    """Yield development records with the name of their subset, in the order of the files."""
    found = chain.from_iterable(map(read_ragbench, ragbench_files(folder)))
    records = [one for one in found if isinstance(one, LabelRecord)]
    names = [str(one.example.metadata["dataset_name"]).rsplit("_", 1) for one in records]
    rows = list(zip(names, records, strict=True))
    tested = {_question(one) for (_, split), one in rows if split == "test"}
    for (subset, split), one in rows:
        if split != "test" and _question(one) not in tested:
            yield subset, one


def _question(record: LabelRecord) -> str:
    return re.sub(r"\W+", " ", record.example.question.lower()).strip()


def read(folder: Path) -> Data:
    """Describe all development records."""
    columns: list[list[Any]] = [[] for _ in Data._fields]
    names, adherent, support, supported, of_response, rank, relevant, utilized, of_document = (
        columns
    )
    for place, (subset, record) in enumerate(training_records(folder)):
        found, label = describe(record.example), record.label
        names.append(subset)
        adherent.append(label.overall_supported)
        verdicts = {
            one.response_sentence_key: one.fully_supported
            for one in label.sentence_support_information
        }
        for key, values in zip(found.evidence, found.support, strict=True):
            if key in verdicts:
                support.append(values)
                supported.append(verdicts[key])
                of_response.append(place)
        rank += zip(*found.rank, strict=True)
        for key in found.keys:
            relevant.append(key in label.all_relevant_sentence_keys)
            utilized.append(key in label.all_utilized_sentence_keys)
            of_document.append(place)
    return Data(*map(np.array, columns))


# -- models ---------------------------------------------------------------------------------------


def weights_of(data: Data, records: Array) -> Array:
    """Return the weight of each sentence.

    A long record counts less than its sentences, and each subset counts the same.
    """
    weights = np.bincount(records)[records] ** -0.5
    subsets = data.subsets[records]
    for name in set(subsets):
        weights[subsets == name] /= weights[subsets == name].sum()
    return weights * len(weights) / weights.sum()


def fit_linear(
    vectors: Array, truth: Array, weights: Array, signs: Array, strength: float
) -> dict[str, Any]:
    """Fit a logistic model with a penalty on its slopes.

    Args:
        vectors: the features.
        truth: the labels.
        weights: of the rows.
        signs: 1 for features that may only raise the probability, -1 for those that may only lower
            it, else 0.
        strength: inverse strength of the penalty.

    Returns:
        The bias, and a slope for each plain feature.
    """
    mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
    scale[scale == 0] = 1
    rows, sides = (vectors - mean) / scale, np.where(truth, 1.0, -1.0)

    def loss(values: Array) -> tuple[float, Array]:
        margins = sides * (values[0] + rows @ values[1:])
        pulls = -weights * sides * probability(-margins)
        penalty = values[1:] @ values[1:] / (2 * strength)
        total = weights @ np.logaddexp(0, -margins) + penalty
        return total, np.concatenate([[pulls.sum()], pulls @ rows + values[1:] / strength])

    limits = [(None, None), *((0 if s > 0 else None, 0 if s < 0 else None) for s in signs)]
    found = minimize(loss, np.zeros(len(limits)), jac=True, method="L-BFGS-B", bounds=limits).x
    slopes = found[1:] / scale
    return {"bias": float(found[0] - slopes @ mean), "slopes": slopes}


def linear_odds(model: dict[str, Any], vectors: Array) -> Array:
    """Return the log-odds of a linear model."""
    return model["bias"] + vectors @ model["slopes"]


def probability(odds: Array) -> Array:
    """Return the probabilities of log-odds."""
    return 1 / (1 + np.exp(-odds))


def per_record(values: Array, records: Array) -> dict[int, list[float]]:
    """Return the sentence probabilities of each record."""
    found: dict[int, list[float]] = {}
    for place, value in zip(records, values, strict=True):
        found.setdefault(int(place), []).append(float(value))
    return found


def held_out(data: Data, train_on: Sequence[str], fit: Callable[[Data], Predict]) -> Array:
    """Predict each subset by models of the other training subsets.

    Args:
        data: all records.
        train_on: subsets that models learn from.
        fit: fits a model to some records; the model predicts those of others.

    Returns:
        The probabilities of all sentences.
    """
    parts = []
    for subset in dict.fromkeys(data.subsets):
        others = data.select(np.isin(data.subsets, train_on) & (data.subsets != subset))
        parts.append(fit(others)(data.select(data.subsets == subset)))
    return np.concatenate(parts)


def support_model(data: Data) -> Predict:
    """Fit the model of response sentences."""
    model = fit_support(data)
    return lambda other: probability(linear_odds(model, other.support))


def rank_model(labels: str) -> Callable[[Data], Predict]:
    """Return what fits a model of document sentences, to a field of labels."""

    def fit(data: Data) -> Predict:
        model = fit_rank(data, labels)
        return lambda other: probability(linear_odds(model, other.rank))

    return fit


def fit_rank(data: Data, labels: str) -> dict[str, Any]:
    """Fit a model of document sentences to a field of labels."""
    weights = weights_of(data, data.of_document)
    return fit_linear(data.rank, getattr(data, labels), weights, [0] * len(RANK), RANK_STRENGTH)


def fit_support(data: Data) -> dict[str, Any]:
    """Fit the model of response sentences."""
    weights = weights_of(data, data.of_response)
    model = fit_linear(data.support, data.supported, weights, SIGNS, STRENGTH)
    for name, most in AT_MOST.items():
        place = SUPPORT.index(name)
        model["slopes"][place] = min(most, model["slopes"][place])
    return model


def fit_adherence(data: Data, support: Array) -> dict[str, Any]:
    """Fit the record's probability to held-out probabilities of its sentences."""
    found = per_record(support, data.of_response)
    vectors = np.array([record_features(values) for values in found.values()])
    truth = data.adherent[list(found)]
    return fit_linear(vectors, truth, np.ones(len(truth)), [1], 100.0)


# -- writing --------------------------------------------------------------------------------------


def linear(model: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a linear model as JSON."""
    weights = {n: round(float(w), 6) for n, w in zip(names, model["slopes"], strict=True)}
    return {"bias": round(model["bias"], 6), "weights": weights}


def trained(data: Data) -> dict[str, Any]:
    """Return the weights file: models, thresholds and where they come from."""
    names = sorted(set(data.subsets) - EXCLUDED.keys())
    mine = np.isin(data.subsets, names)
    own = data.select(mine)
    held = held_out(data, names, support_model)[mine[data.of_response]]
    return {
        "model": MODEL,
        "data": DATA,
        "left_out": EXCLUDED,
        "records": int(mine.sum()),
        "thresholds": THRESHOLDS,
        "support": linear(fit_support(own), SUPPORT),
        "adherence": linear(fit_adherence(own, held), ["weakest_and_mean"]),
        "relevance": linear(fit_rank(own, "relevant"), RANK),
        "utilization": linear(fit_rank(own, "utilized"), RANK),
    }


# -- checking -------------------------------------------------------------------------------------


def check(data: Data) -> Iterator[str]:
    """Yield figures of each subset, predicted without its rows."""
    names = sorted(set(data.subsets))
    used = [name for name in names if name not in EXCLUDED]
    support = held_out(data, used, support_model)
    relevance, utilization = (
        held_out(data, used, rank_model(labels)) for labels in ("relevant", "utilized")
    )
    scored = {
        place: record_features(values)[0]
        for place, values in per_record(support, data.of_response).items()
    }
    yield "subset | records | sentence AUROC | record AUROC | relevance RMSE | utilization RMSE"
    for name in [*names, "all"]:
        here = np.isin(data.subsets, names if name == "all" else [name])
        mine, theirs = here[data.of_response], here[data.of_document]
        places = [place for place in scored if here[place]]
        cells = [
            roc_auc_score(data.supported[mine], support[mine]),
            roc_auc_score(data.adherent[places], [scored[place] for place in places]),
            *(
                ratio_error(truth[theirs], found[theirs], data.of_document[theirs])
                for truth, found in (
                    (data.relevant, relevance),
                    (data.utilized, utilization),
                )
            ),
        ]
        yield " | ".join([name, str(here.sum()), *(f"{cell:.3f}" for cell in cells)])


def ratio_error(truth: Array, found: Array, records: Array) -> float:
    """Return the root mean square error of the records' shares."""
    counts = np.bincount(records)
    kept = counts > 0
    errors = (np.bincount(records, found) - np.bincount(records, truth))[kept] / counts[kept]
    return float(np.sqrt(fmean(errors**2)))


def main() -> None:
    """Train and write, or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=ragbench_folder())
    parser.add_argument("--check", action="store_true", help="print held-out figures only")
    options = parser.parse_args()
    data = read(options.folder)
    if options.check:
        print("\n".join(check(data)))
        return
    FILE.write_text(json.dumps(trained(data)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
