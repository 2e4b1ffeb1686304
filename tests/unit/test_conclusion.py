"""The conclusion of a comparison: one sentence that agrees with verdict and interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from labeler.comparing.compare import compare, compare_runs
from labeler.labels.record import LabelRecord
from support.labeled import record

BOTH: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": ["0b"]}
HALF: Mapping[str, Sequence[str]] = {"a": ["0a"], "b": []}


def labels(
    count: int,
    unsupported: int,
    *,
    model: str = "test-1",
    relevant: Sequence[str] = ("0a",),
    question: str = "How high is tower {}?",
) -> list[LabelRecord]:
    """Labels of rows of their own questions, the first of them with an unsupported sentence."""
    found = []
    for n in range(count):
        support = HALF if n < unsupported else BOTH
        one = record(id=f"row-{n}", support=support, relevant=relevant, documents=(2, 1))
        metadata = {"domain": ("law", "tax")[n % 2]}
        changed = {"question": question.format(n), "metadata": metadata}
        signature = one.signature.model_copy(update={"model": model})
        example = one.example.model_copy(update=changed)
        found.append(one.model_copy(update={"example": example, "signature": signature}))
    return found


CASES = {
    "identical": (labels(60, 8), labels(60, 8), "no difference: all 60 pairs have equal values"),
    "gain": (
        labels(60, 20),
        labels(60, 8),
        "B is better: 12 more of 60 answers fully supported, +.20 (.08 to .32)",
    ),
    "loss": (
        labels(60, 8),
        labels(60, 20),
        "B is worse: 12 fewer of 60 answers fully supported, -.20 (-.32 to -.08)",
    ),
    "another judge": (
        labels(60, 8),
        labels(60, 0, model="other"),
        "B is higher: 8 more of 60 answers fully supported, +.13 (.03 to .25); other judges, ",
    ),
    "small": (
        labels(60, 8),
        labels(60, 9),
        (
            "no difference seen: 1 fewer of 60 answers fully supported, -.02 (-.09 to .05); with "
            "60 pairs only one of .07 or more would show"
        ),
    ),
    "one of many": (labels(12, 0), labels(12, 6), "not certain: 6 fewer of 12 answers fully "),
    "one pair": (labels(1, 0), labels(1, 1), "1 record is too few to tell; 1 fewer of 1 answers "),
    "mixed": (
        labels(60, 12, relevant=["0a", "0b"]),
        labels(60, 0, relevant=["1a"]),
        "+.20 (.08 to .32) and 2 more metrics; but worse: relevant sentences used ",
    ),
    "lost": (labels(60, 0), labels(50, 0), "; but 10 of 60 records with a label in A have none "),
}


@pytest.mark.parametrize("case", CASES)
def test_the_conclusion_is_one_sentence_of_plain_words(case: str) -> None:
    """Counts for whole answers, the interval in parentheses, and no word of statistics."""
    a, b, expected = CASES[case]
    sentence = str(compare(a, b).conclusion)
    assert expected in sentence
    unknown = "Holm|McNemar|pooled|undefined|p-value|signature|resampl|tests"
    assert not re.search(unknown, sentence)


def test_a_conclusion_names_why_nothing_is_compared() -> None:
    """No value on both sides, or differences between judges' views of equal documents."""
    none = compare(labels(4, 0, relevant=()), labels(4, 0), "completeness").conclusion
    assert (none.kind, str(none).partition(":")[0]) == ("not compared", "nothing to compare")
    equal = compare(labels(4, 0, relevant=["1a"]), labels(4, 0), "document_relevance").conclusion
    assert "both sides retrieved the same documents" in str(equal)


def test_a_group_that_differs_is_named() -> None:
    """Behind the conclusion on all records."""
    better = [*labels(60, 60)]
    better[1::2] = labels(60, 0)[1::2]
    found = compare(labels(60, 60), better, "adherence", by="domain").conclusion
    first, _, group = str(found).partition("; largest change by domain: ")
    assert first.startswith("B is better: 30 more of 60 answers fully supported, +.50")
    assert group.startswith("30 more of 30 answers fully supported in tax, ")


def test_several_sets_have_one_line() -> None:
    """Each letter with its direction; every comparison has its own sentence."""
    found = compare_runs([labels(60, 8), labels(60, 20), labels(60, 8), labels(60, 0)])
    assert found.conclusion == "against A: B worse; C no difference seen; D better"
    assert str(found[2].concluded("D")).startswith("D is better: 8 more of 60 answers")
