"""From rows to stored labels: one call each, none twice, nothing lost."""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import MemoryStore, iter_labels
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UnstorableRecord, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.labeling import tasks
from labeler.labeling.progress import RunEvent
from labeler.labels.record import (
    AnyOutcome,
    AnyRecord,
    LabelFailure,
    LabelRecord,
    SentenceScores,
    Usage,
)
from labeler.sentences.example import Frozen, KeyedExample
from labeler.sentences.splitting import key_example
from support.fakes import Behavior, CountingJudge, agreeable
from support.labeled import output
from support.stored import started
from support.watching import Watch
from wire.runs import reasons, rows

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def row(number: int, **changes: Any) -> dict[str, Any]:
    """A row with content of its own."""
    return {**rows(1, number)[0], **changes}


MISFITTING = {"documents_sentences": [["No."], ["x"]], "response_sentences": ["x"]}


def nested(depth: int) -> object:
    """A list in a list, and so on."""
    deep: object = "x"
    for _ in range(depth):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"response": " \n "}, "empty_response"),
        ({"question": ""}, "empty_question"),
        ({"response": "a\ud800"}, "lone_surrogate"),
        ({"response_sentences": ["Item 0 is a lamp."]}, "given_sentences_incomplete"),
        (MISFITTING, "given_sentences_mismatch"),
        # No reader of JSON would give it back.
        *(({"tag": nested(depth)}, "wrong_type") for depth in (65, 5000)),
    ],
)
def test_what_cannot_be_judged_costs_nothing(changes: dict[str, Any], reason: str) -> None:
    """It becomes a failure with a reason in its place, and the judge is not asked."""
    judge = CountingJudge()
    outcomes = labeler.label([row(0, **changes), row(1)], judge=judge, store=MemoryStore())
    assert reasons(outcomes) == [reason, "label"]
    assert judge.asked == ["r1"]


def refusing(request: Task) -> JudgeReply:
    """Fails on one record, each time in a way of its own."""
    if request.example.id == "r1":
        raise JudgeError("the model refused", reason="refusal", attempts=3)
    if request.example.id == "r2":
        raise ZeroDivisionError("a bug with sk-secret in it")
    if request.example.id == "r3":
        return JudgeReply(output(relevant=["9z"]))
    return agreeable(request)


def test_a_record_that_fails_fails_alone() -> None:
    """A refusal, a judge's bug and a broken contract: each a failure with its reason."""
    store = MemoryStore()
    outcomes = labeler.label(rows(5), judge=CountingJudge(refusing), store=store)
    assert reasons(outcomes) == ["label", "refusal", "judge_error", "contract", "label"]
    assert len(store) == 2
    refusal, bug, contract = (o for o in outcomes if isinstance(o, LabelFailure))
    assert refusal.attempts == 3
    assert "raised ZeroDivisionError at test_pipeline.py" in bug.message
    assert "sk-secret" not in bug.message
    assert contract.violations[0].keys == ("9z",)


class Keeper(MemoryStore):
    """Saves in a way of its own, with the store's own way at hand."""

    def __init__(self, save: Callable[[Any, AnyOutcome], Future[bool]]) -> None:
        super().__init__()
        self._saving = save

    def put(self, outcome: AnyOutcome, *, is_checked: bool = False) -> Future[bool]:
        """Save it as told."""
        del is_checked
        return self._saving(self, outcome)


keep = MemoryStore.put


def refused(error: Exception) -> Future[bool]:
    """What a store says that could not save."""
    saved = Future[bool]()
    saved.set_exception(error)
    return saved


def test_a_label_is_durable_before_it_is_yielded() -> None:
    """Whatever the caller has seen survives a loss of power."""
    durable: list[str] = []

    def slow(store: Keeper, outcome: AnyOutcome) -> Future[bool]:
        saved = Future[bool]()

        def save() -> None:
            keep(store, outcome)
            durable.append(outcome.id)
            saved.set_result(True)

        threading.Timer(0.05, save).start()
        return saved

    for outcome in iter_labels(rows(8), judge=CountingJudge(), store=Keeper(slow), concurrency=2):
        assert outcome.id in durable


def test_a_judge_may_have_an_attribute_of_ours_for_something_else() -> None:
    """It has no output modes."""

    class Driving(CountingJudge):
        auto = True

    judge = Driving(agreeable)
    assert len([*iter_labels(rows(2), judge=judge)]) == 2


def test_a_score_that_is_no_number_costs_its_record(tmp_path: Path) -> None:
    """It could not be read back; the other records are labeled, and the store stays readable."""

    def doubtful(request: Task) -> JudgeReply:
        reply = agreeable(request)
        nan = float("nan") if request.example.id == "r1" else 0.5
        return dataclasses.replace(reply, scores=SentenceScores(support={"a": nan}))

    store = tmp_path / "store"
    outcomes = labeler.label(rows(3), judge=CountingJudge(doubtful), store=store)
    assert reasons(outcomes) == ["label", "judge_error", "label"]
    assert len(list(labeler.api.read_labels(store))) == 2


def test_a_store_that_fails_stops_the_run() -> None:
    """Labels that cannot be saved are not paid for one after the other."""

    def full(store: Keeper, outcome: AnyOutcome) -> Future[bool]:
        return keep(store, outcome) if len(store) < 2 else refused(StoreError("disk full"))

    judge = CountingJudge()
    with pytest.raises(StoreError, match="disk full"):
        labeler.label(rows(200), judge=judge, store=Keeper(full), concurrency=2)
    assert len(judge.asked) < 20


def test_labels_saved_since_rows_were_looked_up_are_not_bought() -> None:
    """Each key is looked for again once nobody else can save it."""

    class Overlooking(MemoryStore):
        """Another run saves its labels just after this one has looked for them."""

        def get(self, key: str) -> AnyRecord | None:
            """Return nothing for the first time."""
            looked_for[key] += 1
            return super().get(key) if looked_for[key] > 1 else None

    looked_for = Counter[str]()
    judge, store = CountingJudge(), Overlooking()
    first = labeler.label(rows(5), judge=judge, store=store)
    looked_for.clear()
    again = labeler.label(rows(5), judge=judge, store=store)
    assert len(judge.asked) == 5
    assert [one.key for one in again] == [one.key for one in first]


@pytest.mark.parametrize("failures", [True, False])
def test_a_label_that_no_store_can_keep_costs_its_row_alone(failures: bool) -> None:
    """It is bought once if its failure can be kept; what it cost is told."""

    def picky(store: Keeper, outcome: AnyOutcome) -> Future[bool]:
        kept = failures if isinstance(outcome, LabelFailure) else outcome.id != "r1"
        return keep(store, outcome) if kept else refused(UnstorableRecord("too large"))

    judge, store = CountingJudge(), Keeper(picky)
    for _ in range(2):
        outcomes = labeler.label(rows(3), judge=judge, store=store)
        assert reasons(outcomes) == ["label", "unstorable", "label"]
    failure = outcomes[1]
    assert isinstance(failure, LabelFailure)
    assert "too large" in failure.message
    assert failure.lasting == failures
    assert judge.asked.count("r1") == (1 if failures else 2)


def test_nothing_is_bought_while_nothing_can_be_saved() -> None:
    """A label has its place until it is durable, so that a crash costs no more than there are."""
    waiting: list[tuple[Future[bool], AnyOutcome]] = []
    full, free = threading.Event(), threading.Event()

    def later(store: Keeper, outcome: AnyOutcome) -> Future[bool]:
        if free.is_set():
            return keep(store, outcome)
        saved = Future[bool]()
        waiting.append((saved, outcome))
        if len(waiting) == 2:
            full.set()
        return saved

    def go_on() -> None:
        assert full.wait(30)
        assert len(judge.asked) == 2
        free.set()
        for saved, record in waiting:
            keep(store, record)
            saved.set_result(True)

    judge, store = CountingJudge(), Keeper(later)
    saving = threading.Thread(target=go_on)
    saving.start()
    outcomes = labeler.label(rows(20), judge=judge, store=store, concurrency=2)
    saving.join()
    assert reasons(outcomes) == ["label"] * 20


def test_a_stopped_run_does_not_wait_for_a_disk() -> None:
    """The store saves what it was given when it is closed; a run that is left waits no minute."""

    def never(store: Keeper, outcome: AnyOutcome) -> Future[bool]:
        reached.set()
        return keep(store, outcome) if outcome.id == "r0" else Future()

    reached = threading.Event()
    run = iter_labels(rows(4), judge=CountingJudge(), store=Keeper(never), concurrency=1)
    next(run)
    assert reached.wait(30)
    run.close()


def test_a_run_that_fails_leaves_a_label_to_the_store() -> None:
    """It is paid for: a store whose own thread has not begun to save it may still do so."""
    unsaved, given = Future[bool](), threading.Event()

    def queued(_: Keeper, __: AnyOutcome) -> Future[bool]:
        given.set()
        return unsaved

    class Refused(CountingJudge):
        """Loses its key after the first answer."""

        async def label(self, request: Task) -> JudgeReply[Frozen]:
            """Answer once."""
            if request.example.id != "r0":
                await asyncio.to_thread(given.wait, 30)
                raise FatalJudgeError("no such key", reason="authentication")
            return await super().label(request)

    with pytest.raises(FatalJudgeError):
        labeler.label(rows(2), judge=Refused(), store=Keeper(queued), concurrency=2)
    assert not unsaved.cancelled()


def test_one_slow_answer_does_not_keep_the_others_waiting() -> None:
    """Rows behind it are asked about meanwhile, and come out in input order."""

    class Stubborn(CountingJudge):
        """Waits with the first record until nearly all others were asked about."""

        async def label(self, request: Task) -> JudgeReply[Frozen]:
            """Answer, the first one last."""
            if request.example.id == "r0":
                await release.wait()
            reply = await super().label(request)
            if len(self.asked) == 80:
                release.set()
            return reply

    release = asyncio.Event()

    outcomes = labeler.label(rows(100), judge=Stubborn(), store=MemoryStore(), concurrency=2)
    assert [outcome.id for outcome in outcomes] == [f"r{n}" for n in range(100)]


def test_what_takes_long_is_not_done_between_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, whose source may block, are read by the caller; very long ones split elsewhere."""
    readers, splitters = list[str](), list[str]()

    def given() -> Iterator[dict[str, Any]]:
        for number in (1, 100_000):
            readers.append(threading.current_thread().name)
            yield row(number, response="lamp " * number)

    def keyed(*given: Any, **options: Any) -> KeyedExample:
        splitters.append(threading.current_thread().name)
        return key_example(*given, **options)

    monkeypatch.setattr(tasks, "key_example", keyed)
    outcomes = labeler.label(given(), judge=CountingJudge(), store=MemoryStore())
    assert reasons(outcomes) == ["label"] * 2
    assert set(readers) == {threading.current_thread().name}
    assert "labeler-engine" in splitters
    assert set(splitters) - {"labeler-engine", *readers}


def test_a_failure_is_tried_anew_for_a_later_row() -> None:
    """A row with the same sentences, met after the failure, gets a call of its own."""
    failed: list[str] = []

    def once(request: Task) -> JudgeReply:
        if request.example.question == "What is item 0?" and not failed:
            failed.append(request.example.id)
            raise JudgeError("the model refused", reason="refusal")
        return agreeable(request)

    many = [row(0, id="first"), *(row(n) for n in range(1, 20)), row(0, id="later")]
    outcomes = labeler.label(many, judge=CountingJudge(once), store=MemoryStore(), concurrency=1)
    assert reasons(outcomes) == ["refusal", *["label"] * 20]


def test_a_row_that_another_run_asks_for_is_waited_for() -> None:
    """It is not paid for twice, people are told once, and its label is the other run's."""
    store, judge = MemoryStore(), CountingJudge()
    other = labeler.label(rows(2), judge=CountingJudge(), store=MemoryStore())
    records = [outcome for outcome in other if isinstance(outcome, LabelRecord)]
    leases = [store.lease(record.key) for record in records]

    class Impatient(Watch):
        """The other run finishes when this one says that it waits."""

        def __call__(self, event: RunEvent) -> None:
            super().__call__(event)
            for lease, record in zip(leases, records, strict=True):
                if event.kind == "notice" and lease:
                    store.put(record).result()
                    lease.release()

    watch = Impatient()
    outcomes = list(iter_labels(rows(3), judge=judge, store=store, on_event=watch))
    assert judge.asked == ["r2"]
    assert outcomes[:2] == records
    (notice,) = watch.notices
    assert notice.startswith("another run is labeling some of these rows")
    assert watch.origins == ["store", "store", "judge"]
    assert watch.paid_for == ["r2"]


def refusing_all_but(*ids: str) -> Behavior:
    """The model does not want to, and will not; other rows show that it is well."""

    def answer(request: Task) -> JudgeReply:
        if request.example.id in ids:
            return agreeable(request)
        usage = Usage(prompt_tokens=9)
        raise UnusableAnswer("refused", reason="refusal", attempts=1, usage=usage, lasting=True)

    return answer


def test_a_lasting_failure_is_kept_and_asked_again_only_on_request() -> None:
    """It is told again in the name of the row that asks, at no cost."""
    store, mended = MemoryStore(), CountingJudge()
    failure, _ = labeler.label(rows(2), judge=CountingJudge(refusing_all_but("r1")), store=store)
    assert isinstance(failure, LabelFailure)
    assert failure.lasting
    (again,) = labeler.label([row(0, id="other")], judge=mended, store=store)
    assert isinstance(again, LabelFailure)
    assert (again.id, again.reason, again.attempts, again.usage) == ("other", "refusal", 0, None)
    assert again.message == (
        "'other': refused; asked again only on request (retry_failed, --retry-failed)"
    )
    assert mended.asked == []

    retried = labeler.label(rows(1), judge=mended, store=store, retry_failed=True)
    assert reasons(retried) == ["label"]
    assert labeler.label(rows(1), judge=CountingJudge(refusing_all_but()), store=store) == retried


def test_a_judge_without_any_label_leaves_no_lasting_failure() -> None:
    """It may be at fault, not the rows; another run asks for them."""
    store, mended = MemoryStore(), CountingJudge()
    outcomes = labeler.label(rows(5), judge=CountingJudge(refusing_all_but()), store=store)
    assert reasons(outcomes) == ["refusal"] * 5
    assert not any(o.lasting for o in outcomes if isinstance(o, LabelFailure))
    assert reasons(labeler.label(rows(5), judge=mended, store=store)) == ["label"] * 5


def test_who_retries_failures_does_so_once_a_run() -> None:
    """Further rows with the same sentences are told what came of it."""
    store, judge = MemoryStore(), CountingJudge(refusing_all_but("r1"))
    labeler.label([row(0), row(99)], judge=CountingJudge(refusing_all_but("r99")), store=store)
    many = [row(0, id="first"), *(row(n) for n in range(1, 30)), row(0, id="later")]
    outcomes = labeler.label(many, judge=judge, store=store, retry_failed=True, concurrency=1)
    assert reasons(outcomes) == ["refusal", "label", *["refusal"] * 29]
    assert len(judge.asked) == 30


def test_a_fatal_error_stops_the_run_and_keeps_what_was_paid() -> None:
    """Labels that came back before a key expires in the middle of a run are in the store."""

    def fatal(request: Task) -> JudgeReply:
        if request.example.id == "r3":
            raise FatalJudgeError("the key is not valid", reason="auth")
        return agreeable(request)

    store = MemoryStore()
    with pytest.raises(FatalJudgeError, match="not valid"):
        labeler.label(rows(100), judge=CountingJudge(fatal), store=store, concurrency=1)
    assert len(store) >= 3


def test_leaving_early_keeps_what_is_in_flight() -> None:
    """Requests that were sent are paid for: they finish and are stored; no thread is left."""
    store, judge, before = MemoryStore(), CountingJudge(seconds=0.05), threading.active_count()
    run = iter_labels(rows(100), judge=judge, store=store, concurrency=4)
    next(run)
    run.close()
    assert len(store) == len(judge.asked) < 20
    assert (judge.closed, threading.active_count()) == (1, before)


ABANDONED = """
import sys, labeler
run = labeler.iter_labels(sys.argv[1], judge="embedded", store=sys.argv[2])
next(run)
raise LookupError("mine")
"""


def test_a_program_ends_though_a_run_was_left(tmp_path: Path) -> None:
    """Python does not wait for a generator that nobody finished or closed."""
    with started(ABANDONED, EXAMPLES, tmp_path / "store") as program:
        _, said = program.communicate(timeout=60)
    assert (program.returncode, "LookupError: mine" in said) == (1, True)


def test_every_row_has_a_label_in_its_place_and_equal_ones_cost_one() -> None:
    """With ids and without; a generator is read before any spend, so that the total is known."""
    judge, watch, one = CountingJudge(seconds=0.05), Watch(), {**row(0), "latency": 3}
    plain = {name: value for name, value in one.items() if name != "id"}
    given = iter([one, plain, one, {**plain, "latency": 4}, row(1), plain])
    found = labeler.label(given, judge=judge, store=MemoryStore(), on_event=watch)
    assert (reasons(found), watch.total) == (["label"] * 6, 6)
    assert [outcome.id == one["id"] for outcome in found] == [True, False, True, *[False] * 3]
    assert len({outcome.id for outcome in found}) == 5
    assert len(judge.asked) == 2


def test_a_limit_that_is_none_makes_no_store(tmp_path: Path) -> None:
    """It is found before the folder is made and its files are opened."""
    with pytest.raises(UsageError, match="budget must be a number above 0"):
        labeler.label(rows(1), judge=CountingJudge(), store=tmp_path / "s", budget=-1)
    assert not (tmp_path / "s").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals between threads")
def test_the_watcher_knows_the_cost_of_a_run_that_was_interrupted_twice() -> None:
    """The second interrupt ends the grace; what was spent until then is told all the same."""

    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    watch, judge = Watch(), CountingJudge(seconds=60)
    interrupts = [threading.Timer(seconds, interrupt) for seconds in (0.3, 0.8)]
    run = iter_labels(rows(3), judge=judge, store=MemoryStore(), on_event=watch)
    for timer in interrupts:
        timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            next(run)
    finally:
        for timer in interrupts:
            timer.join()
    assert (watch.finished, judge.closed) == (1, 1)
