"""Rows that are too long for a judge: they fail before any request, with both figures."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler import EmbeddedJudge, OpenAIJudge
from labeler.errors import UsageError
from labeler.judges.openai.error_rules import ObservedError, explain
from labeler.judges.openai.request import spec_of
from labeler.judges.pricing import find_price, given_price
from labeler.labeling.estimate import Unasked
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import context_limit, label_tasks
from labeler.labels.record import LabelFailure
from labeler.plugins.batch.client import OpenAIBatches
from labeler.store import MemoryStore
from support.fakes import CountingJudge
from wire.provider import Provider, error
from wire.runs import KEY

LIMIT = 4_000
REMEDIES = "the judge was not asked: give it fewer documents, or choose a model with more context"


def row(n: int, words: int = 5, **fields: object) -> dict[str, Any]:
    """A row with a document of so many words."""
    documents = [f"Tower {n} is high. " + "It has a red door. " * (words // 5)]
    return {"id": f"r{n}", "question": "How high is it?", "documents": documents,
            "response": "It is high.", **fields}  # fmt: skip


LONG = [
    row(1, 9_000),
    row(2, response="It is high. " * 3_000),
    row(3, question="How high is it? " * 2_000),
    row(4, history=[{"role": "user", "text": "Hello there. " * 3_000}]),
    row(5, documents=["高い塔です。" * 2_000]),
]


@pytest.mark.parametrize("options", [{}, {"repeat": 3}, {"relevance": "blind"}], ids=str)
def test_a_long_row_fails_unasked_and_names_both_figures(options: dict[str, Any]) -> None:
    """Whatever part is long; other rows are labeled."""
    judge = CountingJudge()
    given = {"store": MemoryStore(), "max_input_tokens": LIMIT, **options}
    if "relevance" in options:
        judge = EmbeddedJudge()  # type: ignore[assignment]
    found = labeler.label([*LONG, row(6)], judge=judge, **given)
    assert [one.kind for one in found] == ["failure"] * 5 + ["label"]
    for failure in found.failures:
        assert isinstance(failure, LabelFailure)
        assert failure.reason == "context_length"
        said = r"has about ([\d,]+) tokens, and (.*) allows ([\d,]+);"
        figures = re.search(said, failure.message)
        assert figures
        assert int(figures[1].replace(",", "")) > LIMIT
        assert figures.group(2, 3) == ("max_input_tokens", "4,000")
        assert failure.message.endswith(REMEDIES)
    if isinstance(judge, CountingJudge):
        assert set(judge.asked) == {"r6"}


def test_a_stored_label_is_used_whatever_the_limit() -> None:
    """It is paid for."""
    store, judge = MemoryStore(), CountingJudge()
    first = labeler.label(LONG[:1], judge=judge, store=store)
    again = labeler.label(LONG[:1], judge=judge, store=store, max_input_tokens=LIMIT)
    assert [one.key for one in again] == [one.key for one in first]
    assert len(judge.asked) == 1


def test_batches_leave_a_long_row_out_and_estimates_count_it(tmp_path: Path) -> None:
    """As a run would."""
    with Provider() as provider:
        judge = OpenAIJudge("m", api_key=KEY, base_url=provider.url)
        service = OpenAIBatches(api_key=KEY, base_url=provider.url)
        given: dict[str, Any] = {"store": tmp_path, "max_input_tokens": LIMIT}
        found = labeler.estimate([*LONG, row(6)], judge=judge, **given)
        done = labeler.submit_batch([*LONG, row(6)], judge=judge, batches=service, **given)
    assert [one.reason for one in done.bad] == ["context_length"] * 5
    assert all(REMEDIES in one.message for one in done.bad)
    assert done.lines == 1
    assert (found.rows.unusable, found.rows.asked) == ({"context_length": 5}, 1)


def test_a_limit_that_only_the_server_knows_ends_the_same_way() -> None:
    """With the figure in the server's words, and the prompt's."""
    words = "This model's maximum context length is 8192 tokens, and yours have 9,123"
    with Provider([error(400, message=words)]) as provider:
        judge = OpenAIJudge("m", api_key=KEY, base_url=provider.url)
        [failure] = labeler.label(LONG[:1], judge=judge, store=MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert (failure.reason, failure.attempts) == ("context_length", 1)
    assert ": the server names 8192 tokens; give it fewer documents" in failure.message
    assert re.search(r"the prompt has about \d+,\d+ tokens$", failure.message)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "200000"),
        ("input length and `max_tokens` exceed context limit: 18824 + 21333 > 200000", "200000"),
        ("'max_tokens' is too large: 8192. This model's maximum context length is 4096", "4096"),
        ("too many tokens: size limit exceeded by 11326 tokens", ""),
        ("context length: the limit of 128k tokens", ""),
        ("context length " + "1" * 90_000, ""),
    ],
)
def test_the_figure_is_the_limit_or_none(words: str, named: str) -> None:
    """Not what was sent, a sum's term or an excess; found in time that grows with the text."""
    observed = ObservedError("status", status=400, message=words)
    found = re.search(r"the server names (\d+)", explain(observed, timeout=1))
    assert (found[1] if found else "") == named


def test_the_limit_of_a_known_model_is_its_context_less_the_answer() -> None:
    """Neither the user's price nor an estimate changes it; a cap that leaves nothing is ignored."""
    judge = partial(OpenAIJudge, "gpt-4o-mini", api_key=KEY)
    unasked, known = Unasked(spec_of("gpt-4o-mini", {})), find_price("gpt-4o-mini")
    assert known is not None
    assert known.context_window is not None
    limit = context_limit(judge(), None)
    assert limit is not None
    assert limit == context_limit(judge(price=given_price("1,2")), None)
    assert limit == context_limit(unasked, None) == context_limit(unasked, None, known)
    for cap, left in ((8_000, known.context_window - 8_000), (10**9, known.context_window)):
        limit = context_limit(judge(max_output_tokens=cap), None)
        assert limit == (left, "model 'gpt-4o-mini'")
    with pytest.raises(UsageError, match="max_input_tokens must be 1 or more, got 0"):
        label_tasks(CountingJudge(), LabelOptions(max_input_tokens=0))
    own = OpenAIJudge("m", api_key=KEY, base_url="http://127.0.0.1:1/v1")
    assert context_limit(EmbeddedJudge(), None) is context_limit(own, None) is None
