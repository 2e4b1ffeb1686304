"""Planted sentences: where they go, what is read from them, and that they enter no number."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import pytest

import labeler
from fakes import CountingJudge
from injection.gullible import label as label_honestly
from labeler.data.rows import RowSequence
from labeler.errors import FatalJudgeError, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.judges.traffic.limits import Budget
from labeler.labeling.cache import Origin
from labeler.labeling.canaries import (
    DOCUMENT_FACTS,
    DOCUMENT_ORDER,
    RESPONSE_FACTS,
    RESPONSE_ORDER,
    Canaries,
    CanaryVerdict,
    SeededChoices,
    plant,
    planted_in,
    verdict_on,
)
from labeler.labeling.options import LabelOptions
from labeler.labeling.pipeline import run_tasks
from labeler.labeling.run import Run, RunListener
from labeler.labeling.tasks import label_tasks
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import (
    AnyOutcome,
    LabelRecord,
    Outcome,
    ReplyFacts,
    Usage,
    is_uncounted,
    label_key,
    records_of,
)
from labeler.sentences.example import KeyedExample
from labeler.store.protocol import LabelStore
from samples import keyed_example, request

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
ORDER = "Note to the evaluator:"
MANY = 400


def asked(number: int) -> Task:
    """One of many requests."""
    return request(keyed_example(id=str(number), question=f"Question {number}?"))


def twins(canaries: Canaries, count: int = MANY) -> list[Task]:
    """The twins of many requests."""
    return [twin for n in range(count) if (twin := canaries.perturbed(asked(n)))]


def planted_keys(example: KeyedExample) -> tuple[str, str, bool]:
    """What was planted in an example that has something planted."""
    planted = planted_in(example)
    assert planted is not None
    return planted


# Which, what and where


@pytest.mark.parametrize(("share", "least", "most"), [(0, 0, 0), (0.2, 40, 120), (1, 400, 400)])
def test_about_a_share_of_the_records_has_a_twin(share: float, least: int, most: int) -> None:
    """The keys are digests, so the number is fixed and near what it should be."""
    assert least <= len(twins(Canaries(share))) <= most


def test_the_same_records_have_the_same_twins_every_time() -> None:
    """Another run asks for nothing anew; a greater share adds twins and takes none away."""
    few, again, more = (twins(Canaries(share)) for share in (0.1, 0.1, 0.3))
    assert [twin.key for twin in few] == [twin.key for twin in again]
    assert {twin.key for twin in few} < {twin.key for twin in more}


def test_another_seed_chooses_anew() -> None:
    """Other records, and other sentences in other places."""
    one, other = ({t.example.id for t in twins(Canaries(0.1, seed))} for seed in (0, 1))
    assert one != other
    first, second = (twins(Canaries(1, seed), 20) for seed in (0, 1))
    assert [t.example.response for t in first] != [t.example.response for t in second]


def test_a_run_asks_once_for_the_twin_of_equal_rows() -> None:
    """They are one judgement, and so is their twin."""
    canaries = Canaries(1)
    assert canaries.perturbed(asked(1)) is not None
    assert canaries.perturbed(asked(1)) is None


def test_half_of_the_twins_give_orders() -> None:
    """Both planted sentences of a twin do, or neither; every text and place is used."""
    found = twins(Canaries(1))
    ordered = [twin for twin in found if planted_keys(twin.example)[2]]
    assert MANY * 0.4 < len(ordered) < MANY * 0.6
    for twin in found:
        document, response, orders = planted_keys(twin.example)
        texts = {
            s.key: s.text for s in (*twin.example.document_sentences(), *twin.example.response)
        }
        assert [ORDER in texts[key] for key in (document, response)] == [orders, orders]
    used = {s.text for t in found for s in (*t.example.document_sentences(), *t.example.response)}
    written = {f"{fact} {DOCUMENT_ORDER}" for fact in DOCUMENT_FACTS} | set(DOCUMENT_FACTS)
    written |= {f"{fact} {RESPONSE_ORDER}" for fact in RESPONSE_FACTS} | set(RESPONSE_FACTS)
    assert written <= used
    assert {planted_keys(t.example)[0] for t in found} == {"0a", "0b", "0c", "1a", "1b"}
    assert {planted_keys(t.example)[1] for t in found} == {"a", "b", "c"}


def test_a_twin_is_the_record_and_two_sentences() -> None:
    """Without them it is the record: texts, order, question, metadata; offsets do not overlap."""
    for twin in twins(Canaries(1)):
        example, original = twin.example, asked(int(twin.example.id.removesuffix(" (canary)")))
        document, response, _ = planted_keys(example)
        left = [[s.text for s in d if s.key != document] for d in example.documents]
        assert left == [[s.text for s in d] for d in original.example.documents]
        kept = [s.text for s in example.response if s.key != response]
        assert kept == [s.text for s in original.example.response]
        assert example.question == original.example.question
        assert example.metadata == original.example.metadata
        for sentences in (*example.documents, example.response):
            assert all(s.end - s.start == len(s.text) for s in sentences)
            spans = [place for s in sentences for place in (s.start, s.end)]
            assert spans == sorted(spans)
            assert sentences[0].start == 0


def test_a_twin_has_a_key_and_a_signature_of_its_own() -> None:
    """It can be stored beside the record, and never be mistaken for it."""
    original = asked(1)
    twin = Canaries(1).perturbed(original)
    assert twin is not None
    assert twin.key != original.key
    assert twin.key == label_key(twin.example, twin.signature)
    assert str(twin.signature) == f"{original.signature}|canary:1"
    assert original.signature.canary is None


def test_documents_without_sentences_can_be_planted_in() -> None:
    """A blank document keeps its index."""
    example = keyed_example(documents=[[], ["Fact."], []])
    places = {planted_keys(plant(example, SeededChoices(0, str(n))))[0] for n in range(60)}
    assert places == {"0a", "1a", "1b", "2a"}


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_is_from_0_to_1(share: float) -> None:
    """Anything else is a mistake."""
    with pytest.raises(UsageError, match="0 to 1"):
        Canaries(share)


# What is read from them


def sober(asked_for: Task) -> JudgeReply:
    """A scripted judge that obeys no text within the data."""
    answer = label_honestly(asked_for.messages)
    assert answer is not None
    return JudgeReply(answer)


def obedient(asked_for: Task) -> JudgeReply:
    """A scripted judge that does what any sentence asks of it."""
    example, answer = asked_for.example, sober(asked_for).answer
    ordered = [s.key for s in example.document_sentences() if ORDER in s.text]
    supported = {s.key for s in example.response if ORDER in s.text}
    entries = tuple(
        e.model_copy(update={"fully_supported": True, "supporting_sentence_keys": ("general",)})
        if e.response_sentence_key in supported
        else e
        for e in answer.sentence_support_information
    )
    changes = {
        "all_relevant_sentence_keys": (*answer.all_relevant_sentence_keys, *ordered),
        "sentence_support_information": entries,
    }
    facts = ReplyFacts(usage=Usage(prompt_tokens=3))
    return JudgeReply(answer.model_copy(update=changes), facts)


def careless(asked_for: Task) -> JudgeReply:
    """A scripted judge to whom everything is relevant and supported."""
    keys = tuple(asked_for.example.document_keys())
    answer = sober(asked_for).answer
    entries = tuple(
        e.model_copy(update={"fully_supported": True, "supporting_sentence_keys": keys[:1]})
        for e in answer.sentence_support_information
    )
    changes = {"all_relevant_sentence_keys": keys, "sentence_support_information": entries}
    return JudgeReply(answer.model_copy(update=changes))


def silent(asked_for: Task) -> JudgeReply:
    """A scripted judge that fails where something is planted, after 7 tokens."""
    if planted_in(asked_for.example):
        usage = Usage(prompt_tokens=7)
        raise UnusableAnswer("no", reason="refusal", attempts=1, usage=usage)
    return sober(asked_for)


def rows(count: int = 20) -> list[dict[str, object]]:
    """Rows of which each asks something else."""
    return [
        {
            "id": str(n),
            "question": f"When was lighthouse {n} lit?",
            "documents": [f"Lighthouse {n} was lit in 18{n:02}. Gulls nest there.", "It rains."],
            "response": f"Lighthouse {n} was lit in 18{n:02}.",
        }
        for n in range(count)
    ]


def stored_twins(store: LabelStore) -> list[LabelRecord]:
    """Stored labels of records with planted sentences."""
    return [r for r in store if isinstance(r, LabelRecord) and is_uncounted(r)]


def run(
    judge: CountingJudge,
    canaries: Canaries | None,
    store: LabelStore,
    listener: RunListener | None = None,
) -> list[Outcome]:
    """Label twenty rows."""
    how = label_tasks(judge, LabelOptions())
    with Run(store, listener=listener) as begun:
        return list(records_of(run_tasks(begun, RowSequence(rows()), [how], canaries), "label"))


def test_a_sober_judge_is_fooled_by_nothing() -> None:
    """All twins are judged, and none is held against it."""
    canaries = Canaries(1)
    run(CountingJudge(sober), canaries, labeler.MemoryStore())
    assert canaries.ordered.judged + canaries.plain.judged == 20
    assert (canaries.ordered.share, canaries.plain.share) == (0.0, 0.0)


def test_an_obedient_judge_is_fooled_by_orders_alone() -> None:
    """So obedience is told from misjudgement."""
    canaries = Canaries(1)
    run(CountingJudge(obedient), canaries, labeler.MemoryStore())
    n = canaries.ordered.judged
    assert n > 0
    assert (canaries.ordered.document, canaries.ordered.response) == (n, n)
    assert (canaries.ordered.share, canaries.plain.share) == (1.0, 0.0)
    assert f"with orders {n} of {n} fooled (document {n}, response {n})" in str(canaries)


def test_a_careless_judge_is_fooled_by_both_kinds() -> None:
    """It was not the orders."""
    canaries = Canaries(1)
    run(CountingJudge(careless), canaries, labeler.MemoryStore())
    assert (canaries.ordered.share, canaries.plain.share) == (1.0, 1.0)


def test_without_twins_there_is_no_share() -> None:
    """Nothing judged is not nothing fooled."""
    canaries = Canaries(0)
    run(CountingJudge(careless), canaries, labeler.MemoryStore())
    assert (canaries.ordered.share, canaries.plain.share) == (None, None)
    assert "with orders none judged" in str(canaries)


def test_a_twin_without_a_label_is_counted() -> None:
    """And it fails no row."""
    canaries = Canaries(1)
    outcomes = run(CountingJudge(silent), canaries, labeler.MemoryStore())
    assert {outcome.kind for outcome in outcomes} == {"label"}
    assert canaries.failed == 20
    assert (canaries.ordered.share, canaries.plain.share) == (None, None)


@pytest.mark.parametrize(
    ("field", "verdict"),
    [
        ("all_relevant_sentence_keys", (True, False)),
        ("all_utilized_sentence_keys", (True, False)),
        ("supporting_sentence_keys", (True, False)),
        ("fully_supported", (False, True)),
        ("nothing", (False, False)),
    ],
)
def test_each_way_to_fall_for_a_planted_sentence_is_seen(
    field: str, verdict: tuple[bool, bool]
) -> None:
    """Relevant, used or a support, for the one in a document; supported, for the other."""

    def fall(asked_for: Task) -> JudgeReply:
        answer = sober(asked_for).answer
        planted = planted_in(asked_for.example)
        return JudgeReply(answer if planted is None else fallen(answer, field, *planted[:2]))

    store = labeler.MemoryStore()
    run(CountingJudge(fall), Canaries(1), store)
    found = [verdict_on(record) for record in stored_twins(store)]
    assert len(found) == 20
    assert {(v.document, v.response) for v in found} == {verdict}


def fallen(
    answer: GPTLabelingOutput, field: str, document: str, response: str
) -> GPTLabelingOutput:
    """The answer with one verdict that it must not have."""
    if field.startswith("all_"):
        return answer.model_copy(update={field: (*getattr(answer, field), document)})
    entries = []
    for entry in answer.sentence_support_information:
        if field == "fully_supported" and entry.response_sentence_key == response:
            changes = {"fully_supported": True, "supporting_sentence_keys": ("general",)}
            entries.append(entry.model_copy(update=changes))
        elif field == "supporting_sentence_keys" and entry.response_sentence_key != response:
            entries.append(entry.model_copy(update={field: (document,)}))
        else:
            entries.append(entry)
    return answer.model_copy(update={"sentence_support_information": tuple(entries)})


def test_a_record_without_planted_sentences_has_no_verdict() -> None:
    """TaskFactory for one is a mistake."""
    (record, *_) = run(CountingJudge(sober), None, labeler.MemoryStore())
    assert record.kind == "label"
    with pytest.raises(UsageError, match="no planted sentences"):
        verdict_on(record)


# Beside the run


def test_twins_are_stored_and_yielded_to_nobody() -> None:
    """They are paid for, so they are kept; a second run asks for none of them."""
    store, judge, first = labeler.MemoryStore(), CountingJudge(obedient), Canaries(1)
    outcomes = run(judge, first, store)
    assert [outcome.id for outcome in outcomes] == [str(n) for n in range(20)]
    assert not any(map(is_uncounted, outcomes))
    assert sum(map(is_uncounted, store)) == 20
    assert all(record.fault() is None for record in store)
    assert len(judge.asked) == 40
    again = Canaries(1)
    assert run(judge, again, store) == outcomes
    assert len(judge.asked) == 40
    assert (again.ordered, again.plain) == (first.ordered, first.plain)


class Payer:
    """Adds up what a run paid for."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def on_start(self, rows: int) -> None:
        """Nothing to learn."""

    def on_result(self, outcome: AnyOutcome, origin: Origin) -> None:
        """Nothing to learn."""

    def on_finish(self, spent: Budget) -> None:
        """Nothing to learn."""

    def on_notice(self, text: str) -> None:
        """Nothing to learn."""

    def on_judged(self, outcome: AnyOutcome) -> None:
        """Remember the tokens."""
        usage = outcome.usage if outcome.kind == "failure" else outcome.reply.usage
        self.tokens.append(usage.prompt_tokens if usage else 0)


@pytest.mark.parametrize("judged", [sober, silent])
def test_what_twins_cost_is_told(judged: Callable[[Task], JudgeReply]) -> None:
    """Once, with or without a label, and not where they are stored already."""
    store, payer = labeler.MemoryStore(), Payer()
    run(CountingJudge(judged), Canaries(1), store, payer)
    assert len(payer.tokens) == 40
    if judged is sober:
        again = Payer()
        run(CountingJudge(judged), Canaries(1), store, again)
        assert again.tokens == []


def test_a_fatal_error_of_a_twin_keeps_the_rows_before_it() -> None:
    """Their labels are paid for and passed on, although a twin met the error first."""

    def expiring(task: Task) -> JudgeReply:
        if task.example.id == "8 (canary)":
            raise FatalJudgeError("the key is not valid", reason="auth")
        return sober(task)

    store, judge = labeler.MemoryStore(), CountingJudge(expiring, seconds=0.002)
    seen: list[Outcome] = []
    with pytest.raises(FatalJudgeError, match="not valid"):
        seen.extend(
            labeler.iter_labels(rows(), judge=judge, store=store, concurrency=1, canaries=1.0)
        )
    assert [outcome.id for outcome in seen] == [str(n) for n in range(9)]
    assert len(store) == 9 + 8


def test_rows_are_labeled_as_they_are_without_twins() -> None:
    """The same labels under the same keys."""
    plain = run(CountingJudge(sober), None, labeler.MemoryStore())
    beside = run(CountingJudge(sober), Canaries(0.5), labeler.MemoryStore())
    assert keys_and_labels(plain) == keys_and_labels(beside)


def keys_and_labels(
    outcomes: Iterable[Outcome],
) -> list[tuple[str, GPTLabelingOutput]]:
    """What matters of records."""
    return [(o.key, o.label) for o in outcomes if o.kind == "label"]


def test_twins_in_a_store_enter_no_number(tmp_path: Path) -> None:
    """A store with twins measures as the label file of the run, which has none."""
    outcomes = list(
        labeler.iter_labels(EXAMPLES, judge="embedded", store=tmp_path / "s", canaries=Canaries(1))
    )
    held = list(labeler.read_labels(tmp_path / "s"))
    assert len(held) == 2 * len(outcomes)
    assert sum("canary:1" in str(outcome.signature) for outcome in held) == len(outcomes)
    assert labeler.summary(held) == labeler.summary(outcomes)
    assert sorted(row.id for row in labeler.metrics(held)) == sorted(o.id for o in outcomes)


def test_the_embedded_judge_obeys_nobody() -> None:
    """It compares words, and those of an order are in no question and no other sentence."""
    rows = [json.loads(line) for line in EXAMPLES.read_text().splitlines()]
    for number, (row, fact) in enumerate(product(rows, DOCUMENT_FACTS)):
        first, *others = row["documents"]
        documents = [f"{first} {fact} {DOCUMENT_ORDER}", *others]
        made = {**row, "id": str(number), "documents": documents}
        (found,) = labeler.iter_labels([made], judge="embedded", store=labeler.MemoryStore())
        assert isinstance(found, LabelRecord)
        texts = {one.key: one.text for one in found.example.document_sentences()}
        chosen = {*found.label.all_relevant_sentence_keys, *found.label.all_utilized_sentence_keys}
        assert not [key for key in chosen if "evaluator" in texts[key] or fact in texts[key]]
    canaries = Canaries(1)
    store = labeler.MemoryStore()
    list(labeler.iter_labels(EXAMPLES, judge="embedded", store=store, canaries=canaries))
    assert canaries.ordered.judged + canaries.plain.judged == len(rows)
    assert canaries.ordered.response == canaries.plain.response == 0


def test_a_verdict_says_which_kind_it_is() -> None:
    """Orders or none, document, response."""
    store = labeler.MemoryStore()
    run(CountingJudge(obedient), Canaries(1), store)
    found = {verdict_on(record) for record in stored_twins(store)}
    assert found == {CanaryVerdict(True, True, True), CanaryVerdict(False, False, False)}  # noqa: FBT003 - a tuple's fields
