"""Written questions and their vectors, over whole runs against a server of our own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from labeler.calculators import measure
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.pricing import given_price
from labeler.labels.record import LabelFailure
from labeler.plugins.similarity.comparing import EmbeddingWork, iter_similarity
from labeler.plugins.similarity.embedders import (
    Embedded,
    as_vector,
    cosine,
    flat_price,
)
from labeler.plugins.similarity.openai_embedder import OpenAIEmbedder
from labeler.plugins.similarity.records import EmbedderSpec, QuestionsOutcome, QuestionsRecord
from support.command import Command
from wire.calls import Json
from wire.embeddings_endpoint import vector
from wire.provider import Behavior, Call, Provider, error, says
from wire.runs import KEY, brief, judge_of, row_file, rows

ASKED, EMBEDDED = "POST /v1/chat/completions", "POST /v1/embeddings"


def embedder_of(provider: Provider, **settings: Any) -> OpenAIEmbedder:
    """The provider's embeddings, without long back-offs."""
    given = {"api_key": KEY, "base_url": provider.url, "sleep": brief, **settings}
    return OpenAIEmbedder("e", **given)


def compare(
    provider: Provider,
    store: Path,
    given: list[dict[str, Any]],
    *,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> list[QuestionsOutcome]:
    """Compare rows and return every outcome."""
    judge = judge_of(provider, sleep=brief, **(settings or {}))
    options = {"judge": judge, "embedder": embedder_of(provider), "store": store, **options}
    return list(iter_similarity(given, **options))


def records(outcomes: list[QuestionsOutcome]) -> list[QuestionsRecord]:
    """All of them, without a failure."""
    assert not [o.message for o in outcomes if isinstance(o, LabelFailure)]
    return [outcome for outcome in outcomes if isinstance(outcome, QuestionsRecord)]


def reasons(outcomes: list[QuestionsOutcome]) -> list[str]:
    """Reason codes of the failures, ``questions`` for the others."""
    return [o.reason if isinstance(o, LabelFailure) else o.kind for o in outcomes]


def texts_of(requests: list[Call]) -> list[list[str]]:
    """The texts of each request for vectors."""
    return [call.body["input"] for call in requests if call.route == EMBEDDED]


def test_a_row_is_compared_by_the_servers_vectors(tmp_path: Path) -> None:
    """The number is that of the vectors which the server gives for these very texts.

    Documents are not looked at.
    """
    with Provider() as provider:
        (record,) = records(compare(provider, tmp_path, [{**rows(1)[0], "documents": []}]))
    asked = as_vector(vector(record.example.question))
    expected = [cosine(asked, as_vector(vector(text))) for text in record.answer.questions]
    assert record.similarity is not None
    assert list(record.similarity.cosines) == expected
    mean = measure(record).metrics["answer_relevancy_similarity"].value
    assert mean == pytest.approx(sum(c or 0 for c in expected) / 3)


def test_texts_of_many_rows_share_a_request_and_a_second_run_asks_nobody(tmp_path: Path) -> None:
    """Thirty-two rows of four texts each; neither judge nor embedder is asked again."""
    work = EmbeddingWork()
    with Provider() as provider:
        first = records(compare(provider, tmp_path, rows(64)))
        assert provider.routes == {ASKED: 64, EMBEDDED: 2, "GET /v1/models/{id}": 1}
        assert [len(texts) for texts in texts_of(provider.requests)] == [128, 128]
        before = provider.routes.copy()
        assert compare(provider, tmp_path, rows(64), work=work) == first
        assert provider.routes == before
    assert (work.compared, work.requests, work.stored) == (0, 0, 64)


def test_one_response_to_two_questions_is_asked_about_once(tmp_path: Path) -> None:
    """The judge sees the response alone; each row has a number of its own."""
    row = rows(1)[0]
    both = [row, {**row, "id": "other", "question": "Where do penguins live?"}]
    with Provider() as provider:
        one, other = records(compare(provider, tmp_path, both))
        assert provider.routes[ASKED] == 1
    assert one.answer == other.answer
    assert other.example.question == "Where do penguins live?"
    assert one.similarity != other.similarity


def test_a_row_without_a_question_or_a_response_is_not_asked_about(tmp_path: Path) -> None:
    """There is nothing to compare."""
    first, second = rows(2)
    with Provider() as provider:
        found = compare(provider, tmp_path, [first | {"question": " "}, second | {"response": " "}])
        assert provider.calls == []
    assert reasons(found) == ["empty_question", "empty_response"]


# What the judge may answer


GOOD = {
    "noncommittal_explanation": "it tells nothing",
    "noncommittal": True,
    "questions": ["One?", "Two?", "Three?"],
}
BROKEN: dict[str, Json] = {
    "two questions": {"questions": ["One?", "Two?"]},
    "four questions": {"questions": ["1?", "2?", "3?", "4?"]},
    "a blank one": {"questions": ["One?", " ", "Three?"]},
    "a number": {"questions": ["One?", 2, "Three?"]},
    "more than was asked": {"score": 5},
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_answer_is_sent_back_once(tmp_path: Path, broken: Json) -> None:
    """Then it is a failure of its row that lasts; mended, it counts."""
    again, mended = says(json.dumps(GOOD | broken)), says(json.dumps(GOOD))
    with Provider([again, mended]) as provider:
        (record,) = records(compare(provider, tmp_path / "mended", rows(1)))
    assert (record.answer.noncommittal, record.reply.reasks) == (True, 1)
    with Provider(lambda call: again if "Item 0 " in call.raw.decode() else None) as provider:
        assert reasons(compare(provider, tmp_path, rows(2))) == ["malformed", "questions"]
        assert reasons(compare(provider, tmp_path, rows(1))) == ["malformed"]
        assert provider.routes[ASKED] == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"judge": EmbeddedJudge()}, "cannot write questions"),
        ({"embedder": None}, "an embedder is a name, or an object"),
        ({"embedder": EmbeddedJudge()}, "an embedder is a name, or an object"),
        ({"budget": 1}, "a budget needs a price"),
    ],
)
def test_wrong_use_is_refused_before_a_question_is_paid_for(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    """A judge that only labels, what is no embedder, and vectors of unknown price."""
    with Provider() as provider:
        with pytest.raises(UsageError, match=words):
            compare(provider, tmp_path, rows(1), **options)
        assert provider.requests == []


# What the embedder may do


def test_a_text_that_cannot_be_embedded_fails_its_row_alone(tmp_path: Path) -> None:
    """Its questions are stored; a later run asks for the text again, and for nothing else."""
    too_long = error(400, "context_length_exceeded")
    awkward = {**rows(1)[0], "id": "awkward", "question": "LONG?"}

    def step(call: Call) -> Behavior | None:
        return too_long if "LONG?" in call.body["input"] else None

    with Provider(at={EMBEDDED: step}) as provider:
        found = compare(provider, tmp_path, [*rows(2, start=1), awkward])
        assert reasons(found) == ["questions", "questions", "context_length"]
        failure = found[2]
        assert isinstance(failure, LabelFailure)
        assert failure.message.startswith("'awkward': embedder openai/e at")
        assert failure.signature is not None
        before = len(provider.requests)
        compare(provider, tmp_path, [*rows(2, start=1), awkward])
        texts = {*chain.from_iterable(texts_of(provider.requests[before:]))}
    assert "LONG?" in texts
    assert not texts.intersection(row["question"] for row in rows(2, start=1))


def test_a_wrong_key_of_the_embedder_ends_the_run_and_loses_no_question(tmp_path: Path) -> None:
    """With the right one, only vectors are asked for."""
    with Provider(at={EMBEDDED: [error(401, "invalid_api_key")]}) as provider:
        with pytest.raises(FatalJudgeError, match="embedder openai/e at"):
            compare(provider, tmp_path, rows(3))
        records(compare(provider, tmp_path, rows(3)))
        assert provider.routes[ASKED] == 3


class Broken:
    """An embedder of a user's own, with a fault."""

    spec, price = EmbedderSpec(embedder="own", model="m"), flat_price(Decimal(0), "free")

    def __init__(self, give: Callable[[int], list[Any]]) -> None:
        self._give = give

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Embed texts."""
        return Embedded(tuple(self._give(len(texts))))

    async def aclose(self) -> None:
        """Do nothing."""


Give = Callable[[int], list[Any]]
BROKEN_EMBEDDERS: dict[str, tuple[Give, list[str]]] = {
    "too few": (lambda _: [(1.0,)], ["embedder_error"] * 2),
    "no number": (lambda count: [("x",), *[(1.0,)] * (count - 1)], ["embedder_error", "questions"]),
    "raises": (lambda _: [(1 / 0,)], ["embedder_error"] * 2),
    "two sizes": (lambda n: [(1.0, 2.0), *[(1.0,)] * (n - 1)], ["unequal_dimensions", "questions"]),
}


@pytest.mark.parametrize(("give", "ends"), BROKEN_EMBEDDERS.values(), ids=BROKEN_EMBEDDERS.keys())
def test_a_fault_of_an_embedder_costs_its_rows(tmp_path: Path, give: Give, ends: list[str]) -> None:
    """Nothing is stored of them, and another embedder compares them."""
    with Provider() as provider:
        assert reasons(compare(provider, tmp_path, rows(2), embedder=Broken(give))) == ends
        records(compare(provider, tmp_path, rows(2)))
        assert provider.routes[ASKED] == 2


# Money


@pytest.mark.parametrize(
    ("questions", "vectors", "budget", "reason"),
    [("1,100", 1000, 2, "questions"), ("1,1", 10**6, 1, "budget")],
    ids=["enough", "nothing left"],
)
def test_one_budget_holds_for_judge_and_embedder(
    tmp_path: Path, questions: str, vectors: int, budget: int, reason: str
) -> None:
    """What the questions cost is not there for the vectors; they are kept for a later run."""
    work = EmbeddingWork()
    settings = {"price": given_price(questions), "max_output_tokens": 100}
    with Provider() as provider:
        embedder = embedder_of(provider, price=flat_price(Decimal(vectors), "a test"))
        options: dict[str, Any] = {"embedder": embedder, "budget": budget, "work": work}
        found = compare(provider, tmp_path, rows(2), settings=settings, **options)
        assert reasons(found) == [reason] * 2
        assert (EMBEDDED in provider.routes) is (reason == "questions")
        rates = [int(rate) for rate in questions.split(",")]
        spent_on_questions = 2 * (10_000 * rates[0] + 10 * rates[1]) / Decimal(10**6)
        assert spent_on_questions + work.spent.spent <= budget
        records(compare(provider, tmp_path, rows(2)))
        assert provider.routes[ASKED] == 2


# As a command


def writing(provider: Provider, folder: Path, options: str) -> list[str]:
    """The arguments of the command with which the provider's model writes two rows' questions."""
    asking = ["--model", "m", "--base-url", provider.url, "-o", "out.jsonl", *options.split()]
    return ["similarity", str(row_file(folder, rows(2))), *asking]


def test_the_command_says_what_it_took(tmp_path: Path, labeler_command: Command) -> None:
    """Calls, tokens and money of both; a second time, nothing."""
    priced = "--embedder openai:e --embedding-price 0.02 --price 1,1"
    with Provider() as provider:
        asking = writing(provider, tmp_path, priced)
        (code, _, first), (again, _, second) = labeler_command(*asking), labeler_command(*asking)
    assert (code, again) == (0, 0)
    assert "2 written by openai/m, 0 from the store" in first
    assert "2 compared by openai/e, 0 from the store; 1 request;" in first
    assert "by --embedding-price 0.02" in first
    assert "0 written by openai/m, 2 from the store" in second
    assert "0 compared by openai/e, 2 from the store\n" in second


def test_two_runs_at_once_pay_once(tmp_path: Path) -> None:
    """For each question and each vector, whichever of them was first."""
    with Provider(latency=0.05) as provider, ThreadPoolExecutor(2) as both:
        runs = [both.submit(compare, provider, tmp_path, rows(16)) for _ in range(2)]
        assert [len(records(one.result())) for one in runs] == [16, 16]
        texts = [*chain.from_iterable(texts_of(provider.requests))]
        assert provider.routes[ASKED] == 16
    assert len(texts) == len(set(texts)) == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--embedder openai", "--embedder openai:MODEL"),
        ("--embedder word2vec", "'word2vec'; have: openai, wordllama"),
        ("--embedder wordllama --dimensions 8", "takes no --dimensions; only openai does"),
        ("--embedder ollama:nomic", "its model as openai:nomic"),
        ("--embedder openai:e --embedding-price cheap", "--embedding-price is in US dollars"),
    ],
)
def test_wrong_options_are_named_before_anything_is_sent(
    tmp_path: Path, labeler_command: Command, options: str, words: str
) -> None:
    """With exit code 2."""
    with Provider() as provider:
        code, _, err = labeler_command(*writing(provider, tmp_path, options))
        assert provider.requests == []
    assert (code, words in err) == (2, True), err
