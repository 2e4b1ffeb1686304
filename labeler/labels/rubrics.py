"""Built-in criteria: a score from 1 to 5 each, with anchors.

The meaning of the scores follows the rubric metrics of the evaluation tool omk: the five anchors, a
pass from 3 on, and no reward for length.
"""

from __future__ import annotations

from labeler.catalog import Catalog
from labeler.labels.criteria import Criterion

CRITERIA: Catalog[Criterion] = Catalog("criterion")

for _criterion in (
    Criterion(
        name="rubric_faithfulness",
        criteria=(
            "Is the response supported by the documents? Hold every statement of the response "
            "against them. A statement counts as supported when the documents say it or it follows "
            "from what they say; what you know about the world does not count. A statement that "
            "the documents do not hold is made up, however true it may be."
        ),
        anchors={
            5: "Every statement is supported; nothing is made up.",
            4: "Nearly all statements are supported; one or two that hardly matter are made up.",
            3: "About half of the statements are supported.",
            2: "Most statements are not supported.",
            1: "The response is made up from end to end, or contradicts the documents.",
        },
        shows=("documents", "response"),
    ),
    Criterion(
        name="rubric_answer_relevancy",
        criteria=(
            "Does the response answer the question? Look at what was asked and at what the "
            "response gives for it. Whether it is true does not matter here: that is another "
            "criterion."
        ),
        anchors={
            5: "A complete answer to the point: nothing is missing, nothing is beside it.",
            4: "To the point, with a little that is superfluous or a small gap.",
            3: "Partly to the point; partly beside it, or evasive.",
            2: "Mostly beside the point.",
            1: "Beside the point altogether, or a refusal to answer.",
        },
        shows=("question", "response"),
    ),
    Criterion(
        name="rubric_context_recall",
        criteria=(
            "How many of the key facts does the response convey? The key facts are those of the "
            "reference answer; where none is shown, they are the main facts of the documents. A "
            "fact counts as conveyed when the response states it in any words."
        ),
        anchors={
            5: "All key facts are conveyed.",
            4: "Most are conveyed; one or two minor ones are missing.",
            3: "About half are conveyed.",
            2: "Only a few are conveyed.",
            1: "None is conveyed.",
        },
        shows=("response", "key_facts"),
    ),
):
    CRITERIA.add(_criterion.name, _criterion)
