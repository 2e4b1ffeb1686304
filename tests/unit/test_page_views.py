"""What a page is told of a label."""

from __future__ import annotations

from labeled import output
from labeler.labels.answers import SentenceSupport
from labeler.report.views import label_view


def test_a_sentence_that_was_judged_twice_shows_the_no() -> None:
    """As metrics count it, whichever came last; labels from elsewhere may judge one twice."""
    label = output(support={"a": ["0a"]})
    no = SentenceSupport(
        response_sentence_key="a",
        explanation="Nowhere.",
        supporting_sentence_keys=(),
        fully_supported=False,
    )
    (yes,) = label.sentence_support_information
    for entries in ((yes, no), (no, yes)):
        twice = label.model_copy(update={"sentence_support_information": entries})
        assert label_view(twice)["support"]["a"] == {
            "supported": False,
            "keys": [],
            "explanation": "Nowhere.",
        }
