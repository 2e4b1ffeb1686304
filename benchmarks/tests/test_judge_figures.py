"""Figures of the benchmarks, against ones worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pytest

from judge_figures import (
    RELEVANCE,
    UTILIZATION,
    Kind,
    Row,
    adherence_area,
    by_subset,
    compare_adherence,
    compare_ratio,
    constant_f1,
    constant_rmse,
    join,
    mean_over,
    own_rmse,
    sentence_f1,
    support_area,
    verdicts,
)
from judges import split_of
from labeler.errors import UsageError
from labeler.labels.record import LabelFailure, LabelRecord, SentenceScores
from support.labeled import record

YES, NO = ("0a",), ()
"""Support of a response sentence."""


def label(
    id: str = "r1",  # noqa: A002 - the field's name
    *,
    relevant: Sequence[str] = ("0a",),
    utilized: Sequence[str] = ("0a",),
    support: Sequence[Sequence[str]] = (YES,),
    scores: Sequence[float] = (),
    dataset: str = "one_test",
    published: Mapping[str, float | None] | None = None,
) -> LabelRecord:
    """A label of four document sentences, with published columns if it is a true one."""
    made = record(
        id=id,
        documents=(4,),
        relevant=relevant,
        utilized=utilized,
        support=dict(zip("abcd", support, strict=False)),
        metadata={"dataset_name": dataset, "published": dict(published or {})},
    )
    found = SentenceScores(support=dict(zip("abcd", scores, strict=False)))
    return made.model_copy(update={"scores": found}) if scores else made


def rows(*pairs: tuple[LabelRecord, LabelRecord]) -> list[Row]:
    """Join true and judged labels."""
    joined = join([truth for truth, _ in pairs], [judged for _, judged in pairs])
    assert not joined.left_out
    return joined.rows


def two_ratios() -> list[Row]:
    """Judged 1/4 and 2/4 relevant, 3/4 and 4/4 utilized; in truth 3/4 and 1/4, 1/4 and 2/4."""
    return rows(
        (
            label("x", published={"relevance_score": 0.75, "utilization_score": 0.25}),
            label("x", relevant=("0a",), utilized=("0a", "0b", "0c")),
        ),
        (
            label("y", published={"relevance_score": 0.25, "utilization_score": 0.5}),
            label("y", relevant=("0a", "0b"), utilized=("0a", "0b", "0c", "0d")),
        ),
    )


@pytest.mark.parametrize(("kind", "errors"), [(RELEVANCE, (-0.5, 0.25)), (UTILIZATION, (0.5, 0.5))])
def test_rmse_is_of_the_ratio_it_names(kind: Kind, errors: tuple[float, float]) -> None:
    """Each ratio is held against its own published column, never against the other one."""
    expected = math.sqrt((errors[0] ** 2 + errors[1] ** 2) / 2)
    assert own_rmse(two_ratios(), kind) == pytest.approx(expected)
    assert own_rmse([], kind) is None


def test_constant_rmse_is_the_standard_deviation() -> None:
    """True relevance .75 and .25 lie .25 from their mean, utilization .25 and .5 lie .125."""
    assert constant_rmse(two_ratios(), RELEVANCE) == pytest.approx(0.25)
    assert constant_rmse(two_ratios(), UTILIZATION) == pytest.approx(0.125)
    assert constant_rmse([], RELEVANCE) is None


def test_sentence_f1_pools_the_sentences_of_all_rows() -> None:
    """Found 1 + 1 of 2 + 1 said and 1 + 3 true is 2 * 2 / (3 + 4); utilized ones count apart."""
    found = rows(
        (label("x", relevant=("0a",)), label("x", relevant=("0a", "0b"))),
        (label("y", relevant=("0b", "0c", "0d")), label("y", relevant=("0d",))),
    )
    assert sentence_f1(found, RELEVANCE) == 4 / 7
    assert sentence_f1(found, UTILIZATION) == 1.0


def test_sentence_f1_of_nothing_is_undefined() -> None:
    """Where nothing is true and nothing was said there is no F1."""
    found = rows((label(relevant=()), label(relevant=())))
    assert sentence_f1(found, RELEVANCE) is None


def test_constant_f1_says_yes_to_every_sentence() -> None:
    """One of four sentences is relevant: 2 * 1 / (4 + 1)."""
    assert constant_f1(rows((label(), label())), RELEVANCE) == 2 / 5


def test_a_record_scores_the_mean_of_its_support_scores() -> None:
    """Scores .2 and .6 make .4, with .2 the lowest, whatever the verdicts are."""
    (row,) = rows((label(support=(YES, YES)), label(support=(YES, NO), scores=(0.2, 0.6))))
    assert row.adherence == pytest.approx(0.4)
    assert row.lowest == 0.2


def test_a_record_without_scores_scores_its_adherence_fraction() -> None:
    """One of two sentences supported makes 1/2; the verdicts stand in for support scores."""
    (row,) = rows((label(support=(YES, YES)), label(support=(YES, NO))))
    assert row.adherence == 0.5
    assert row.support == {"a": 1.0, "b": 0.0}


def test_support_area_compares_sentences() -> None:
    """Supported score .9 and .5, unsupported .5 and .2: 3 of 4 pairs in order, 1 a tie."""
    found = rows(
        (label("x", support=(YES, NO)), label("x", support=(YES, YES), scores=(0.9, 0.5))),
        (label("y", support=(NO, YES)), label("y", support=(YES, YES), scores=(0.2, 0.5))),
    )
    assert support_area(found) == 3.5 / 4


def test_support_area_of_verdicts_counts_them_as_one_and_zero() -> None:
    """Without scores: supported 1 and 0, unsupported 0, so 1 pair in order and 1 tie of 2."""
    found = rows((label(support=(YES, YES, NO)), label(support=(YES, NO, NO))))
    assert support_area(found) == 1.5 / 2


def four_answers(column: str, values: Sequence[float | None]) -> list[Row]:
    """Adherent rows scored .9 and .3, others .6 and .1; a column published of the four."""
    pairs = []
    for score, support, value in zip((0.9, 0.3, 0.6, 0.1), (YES, YES, NO, NO), values, strict=True):
        name, published = str(score), {column: value}
        truth = label(name, support=(support,), published=published)
        pairs.append((truth, label(name, scores=(score,))))
    return rows(*pairs)


def test_adherence_area_compares_records() -> None:
    """Of the four pairs .3 lies below .6, the other three are in order."""
    found = four_answers("gpt3_adherence", (1, 1, 0, 0))
    assert adherence_area(found, lambda row: row.adherence) == 3 / 4
    assert adherence_area(found[:2], lambda row: row.adherence) is None


def test_comparison_drops_and_counts_rows_without_a_value() -> None:
    """Without the row of .3 this judge has every pair in order, and the other one a tie."""
    found = compare_adherence(
        four_answers("ragas_faithfulness", (0.5, None, 0.5, 0.0)), "ragas_faithfulness"
    )
    assert (found.used, found.dropped, found.subsets) == (3, 1, 1)
    assert found.pooled == (1.5 / 2, 1.0)
    assert found.mean == found.pooled


def test_comparison_of_ratios_uses_the_same_rows() -> None:
    """Utilization 1/4 is right in truth; the other judge's 3/4 is off by 1/2, its null dropped."""
    found = compare_ratio(
        rows(
            (
                label("x", published={"utilization_score": 0.25, "gpt35_utilization": 0.75}),
                label("x"),
            ),
            (
                label("y", published={"utilization_score": 1.0, "gpt35_utilization": None}),
                label("y"),
            ),
        ),
        "gpt35_utilization",
        UTILIZATION,
    )
    assert (found.used, found.dropped) == (1, 1)
    assert found.pooled == (0.5, 0.0)


def test_comparison_takes_means_over_the_subsets_where_the_other_is_defined() -> None:
    """A subset with adherent rows only has no AUROC, and plays no part in either mean."""
    found = compare_adherence(
        rows(
            (label("x", published={"gpt3_adherence": 1.0}), label("x", scores=(0.9,))),
            (
                label("y", published={"gpt3_adherence": 0.0}, support=(NO,)),
                label("y", scores=(0.1,)),
            ),
            (
                label("z", published={"gpt3_adherence": 1.0}, dataset="two_test"),
                label("z", scores=(0.05,)),
            ),
        ),
        "gpt3_adherence",
    )
    assert (found.used, found.subsets) == (3, 1)
    assert found.mean == (1.0, 1.0)
    assert found.pooled == (1.0, 1 / 2)


def test_verdicts_count_what_is_flagged() -> None:
    """Of four rows 2 are non-adherent and 3 flagged, both of those among them."""
    found = rows(
        (label("w", support=(YES,)), label("w", support=(YES,))),
        (label("x", support=(YES,)), label("x", support=(NO,))),
        (label("y", support=(NO,)), label("y", support=(NO,))),
        (label("z", support=(NO,)), label("z", support=(NO,))),
    )
    assert verdicts(found) == (2 / 4, 3 / 4, 2 / 3, 2 / 2)
    assert verdicts(found[:1]) == (0.0, 0.0, None, None)


def test_rows_are_grouped_by_data_set_without_its_split() -> None:
    """Test and train rows of a data set are one subset; groups come by name."""
    found = rows(
        (label("x", dataset="two_test"), label("x")),
        (label("y", dataset="one_train"), label("y")),
        (label("z", dataset="two_train"), label("z")),
    )
    groups = by_subset(found)
    assert {name: len(group) for name, group in groups.items()} == {"one": 1, "two": 2}
    assert list(groups) == ["one", "two"]
    assert mean_over(groups.values(), lambda group: len(group) if len(group) > 1 else None) == 2
    assert [split_of(row.truth) for row in found] == ["test", "development", "development"]


def test_rows_without_counterpart_are_counted_by_reason() -> None:
    """Unread, unjudged, failed and undefined rows are left out and told apart."""
    joined = join(
        [
            LabelFailure(id="f.jsonl:1", reason="wrong_keys", message="no"),
            *(label(name) for name in ("judged", "failed", "absent")),
            label("silent", support=(YES, YES)),
        ],
        [
            label("judged"),
            LabelFailure(id="failed", reason="refusal", message="no"),
            unjudged("silent"),
            label("of another split"),
        ],
    )
    assert [row.truth.id for row in joined.rows] == ["judged"]
    assert joined.left_out == {
        "unreadable truth: wrong_keys": 1,
        "failed: refusal": 1,
        "not judged": 1,
        "undefined: adherence_fraction": 1,
    }


def unjudged(id: str) -> LabelRecord:  # noqa: A002 - the field's name
    """A label of two response sentences that says nothing of the second."""
    return record(id=id, documents=(4,), support={"a": YES}, response=2)


@pytest.mark.parametrize(
    ("judged", "message"),
    [
        ([label("x"), label("x")], "'x' twice"),
        ([record(id="x", documents=(3,))], "other sentences"),
        ([label("elsewhere")], "elsewhere.*id_from='dataset_name,id,generation_model_name'"),
        ([], "nothing"),
    ],
)
def test_labels_that_cannot_be_joined_are_refused(
    judged: Sequence[LabelRecord], message: str
) -> None:
    """An id twice, other sentences, or no common id would make figures of something else."""
    with pytest.raises(UsageError, match=message):
        join([label("x")], judged)
