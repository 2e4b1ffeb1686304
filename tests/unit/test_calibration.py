"""Threshold calibration and AUROC, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labeler.errors import UsageError
from labeler.judges.embedded.calibration import ScoredTruth, calibrate, pairs_from_records
from labeler.labels.answers import GPTLabelingOutput, SentenceSupport
from labeler.labels.record import LabelRecord, SentenceScores
from labeler.labels.signature import Artifact, Signature
from labeler.sentences.example import KeyedExample, Piece, key_documents, key_response

# Supported: 0.9, 0.5, 0.5. Unsupported: 0.5, 0.2. Of the 3 x 2 pairs, 4 are in order
# (0.9 over both, 0.5 over 0.2 twice) and 2 are ties: (4 + 2/2) / 6.
TIED: list[ScoredTruth] = [(0.9, True), (0.5, True), (0.5, True), (0.5, False), (0.2, False)]


@pytest.mark.parametrize(
    ("pairs", "numerator", "denominator"),
    [
        (TIED, 5, 6),
        ([(1.0, True), (0.0, False)], 1, 1),
        ([(0.0, True), (1.0, False)], 0, 1),
        ([(0.5, True), (0.5, False), (0.5, False)], 1, 2),
        ([(3.0, True), (1.0, True), (2.0, False)], 1, 2),
    ],
)
def test_auroc_counts_ties_half(pairs: list[ScoredTruth], numerator: int, denominator: int) -> None:
    """AUROC is the share of pairs in order, ties half, as an exact quotient."""
    assert calibrate(pairs).auroc == numerator / denominator
    assert calibrate(reversed(pairs)).auroc == numerator / denominator


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
)
def test_auroc_equals_the_count_of_pairs(supported: list[int], unsupported: list[int]) -> None:
    """The fast way agrees with comparing every supported score with every unsupported one."""
    pairs = [(float(s), True) for s in supported] + [(float(u), False) for u in unsupported]
    halves = sum((s > u) * 2 + (s == u) for s in supported for u in unsupported)
    assert calibrate(pairs).auroc == halves / (2 * len(supported) * len(unsupported))


def test_threshold_lies_between_the_classes() -> None:
    """Classes that do not overlap are split halfway between them, without error."""
    calibration = calibrate([(0.1, False), (0.3, False), (0.5, True), (0.9, True)])
    assert calibration.threshold == pytest.approx(0.4)
    assert (calibration.n, calibration.supported, calibration.auroc) == (4, 2, 1.0)
    assert calibration.chosen.balanced_accuracy == 1.0
    assert calibration.chosen.unsupported_f1 == 1.0


def test_threshold_figures_by_hand() -> None:
    """Chosen and default thresholds come with precision, recall, F1 and balanced accuracy."""
    # Candidates: 0.2 (flags none): 1/2. 0.35 (flags the 0.2): (1/2 + 3/3) / 2 = 3/4.
    # 0.7 (flags 0.2 and the three at 0.5): (2/2 + 1/3) / 2 = 2/3.
    calibration = calibrate(TIED, default=0.7)
    assert calibration.threshold == 0.35
    assert calibration.chosen.balanced_accuracy == 3 / 4
    assert calibration.chosen.unsupported_precision == 1.0
    assert calibration.chosen.unsupported_recall == 1 / 2
    assert calibration.chosen.unsupported_f1 == 2 / 3
    assert calibration.default.balanced_accuracy == pytest.approx(2 / 3)
    assert calibration.default.unsupported_precision == 2 / 4
    assert calibration.default.unsupported_f1 == 4 / 6


def test_equally_good_thresholds() -> None:
    """Of equal balanced accuracy the better F1 wins, then the lowest threshold."""
    # Flagging {1}: (1/2 + 2/2) / 2; flagging {1, 2, 3}: (2/2 + 1/2) / 2; both 3/4.
    # F1 of the first is 2/(1+2), of the second 4/(3+2): the second wins.
    pairs = [(1.0, False), (2.0, True), (3.0, False), (4.0, True)]
    assert calibrate(pairs).threshold == 3.5
    # All scores equal: only the lowest candidate is left, which flags nothing.
    calibration = calibrate([(0.5, True), (0.5, False)])
    assert calibration.threshold == 0.5
    assert calibration.chosen.unsupported_precision is None


def test_order_of_pairs_does_not_matter() -> None:
    """The same pairs in another order give the same calibration."""
    assert calibrate(TIED) == calibrate(TIED[::-1])


def test_neighboring_floats_are_separated() -> None:
    """Where no number lies between two scores, the upper one is the threshold."""
    upper = math.nextafter(0.5, 1)
    calibration = calibrate([(0.5, False), (upper, True)])
    assert calibration.threshold == upper
    assert calibration.chosen.balanced_accuracy == 1.0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "0 supported, 0 unsupported"),
        ([(0.5, True)], "1 supported, 0 unsupported"),
        ([(0.5, False), (0.6, False)], "0 supported, 2 unsupported"),
        ([(math.nan, True), (0.1, False)], "finite"),
    ],
)
def test_pairs_that_cannot_calibrate(pairs: list[ScoredTruth], message: str) -> None:
    """No pairs, one class or a score that is no number are refused in words."""
    with pytest.raises(UsageError, match=message):
        calibrate(pairs)


def record(
    name: str,
    verdicts: list[bool],
    scores: list[float] | None = None,
    texts: list[str] | None = None,
) -> LabelRecord:
    """A stored label with a verdict, and perhaps a score, for each response sentence."""
    texts = texts or [f"Sentence {n}." for n in range(len(verdicts))]
    keys = [chr(ord("a") + n) for n in range(len(verdicts))]
    return LabelRecord(
        key="0" * 64,
        example=KeyedExample(
            id=name,
            question="?",
            documents=key_documents([[Piece(text="Source.", start=0, end=7)]]),
            response=key_response([Piece(text=text, start=0, end=0) for text in texts]),
            splitter="given/1",
        ),
        label=GPTLabelingOutput(
            relevance_explanation="",
            all_relevant_sentence_keys=(),
            overall_supported_explanation="",
            overall_supported=all(verdicts),
            sentence_support_information=tuple(
                SentenceSupport(
                    response_sentence_key=key,
                    explanation="",
                    supporting_sentence_keys=("0a",) if verdict else (),
                    fully_supported=verdict,
                )
                for key, verdict in zip(keys, verdicts, strict=True)
            ),
            all_utilized_sentence_keys=(),
        ),
        signature=Signature(
            judge="test",
            model="test",
            response_schema=Artifact(name="label-trace/v1", digest="0" * 64),
            splitter="given/1",
        ),
        scores=(
            SentenceScores(support=dict(zip(keys, scores, strict=True)))
            if scores is not None
            else None
        ),
    )


def test_pairs_join_by_id_and_sentence() -> None:
    """Scores come from one side, verdicts from the other; records of one side only are skipped."""
    scored = [record("x", [True, True], [0.9, 0.1]), record("only here", [True], [0.5])]
    truth = [record("x", [True, False]), record("only there", [False])]
    assert list(pairs_from_records(scored, truth)) == [(0.9, True), (0.1, False)]


def test_pairs_need_scores_same_sentences_and_unique_truth() -> None:
    """Records that cannot be joined unambiguously are rejected by name."""
    with pytest.raises(UsageError, match="'x' of judge 'test' has no scores"):
        list(pairs_from_records([record("x", [True])], [record("x", [True])]))
    with pytest.raises(UsageError, match="'x' has other response sentences"):
        list(
            pairs_from_records(
                [record("x", [True], [0.5], ["One."])], [record("x", [True], texts=["Two."])]
            )
        )
    with pytest.raises(UsageError, match="'x' twice"):
        list(pairs_from_records([], [record("x", [True]), record("x", [False])]))
