"""Relevance that is judged once for each question and documents, without any response."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.calculators.outcomes import read_labels
from labeler.data.corrections.applying import corrected
from labeler.data.label_files import outcome_of
from labeler.data.lines import Line
from labeler.errors import UnknownName, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.labels.record import LabelRecord, parse_outcome
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.report.views import record_view
from labeler.sentences.example import Frozen
from labeler.store import LabelStore, MemoryStore
from labeler.store.disk import DiskStore
from labeler.store.maintenance import Imported
from support.command import Command
from support.fakes import Behavior, CountingJudge, peeking

LAMP = "The Aria lamp is red. It weighs 2 kg."
CHAIR = "Chairs are made of wood."
ANSWERS = ("The lamp is red.", "It weighs 3 kg.", "Chairs are wooden.")


def rows(*responses: str, **changes: object) -> list[dict[str, Any]]:
    """Rows of one retrieval."""
    base = {"question": "What about the lamp?", "documents": [LAMP, CHAIR], **changes}
    return [{"id": f"r{n}", "response": text, **base} for n, text in enumerate(responses)]


class Asked(CountingJudge):
    """Counts the tasks that it is asked by kind."""

    def __init__(self, behavior: Behavior = peeking) -> None:
        super().__init__(behavior)

    def kinds(self) -> Counter[str]:
        """Count the tasks by kind, and forget them."""
        found = Counter(task.kind.name for task in self.tasks)
        self.tasks.clear()
        return found


def label(given: object, judge: Asked, store: LabelStore | None = None, **options: Any) -> Any:
    """Label with blind relevance."""
    options = {"relevance": "blind", "store": MemoryStore() if store is None else store, **options}
    return labeler.label(given, judge=judge, **options)


def relevant(outcomes: Iterable[LabelRecord]) -> list[tuple[str, ...]]:
    """The relevant sentences of labels, as texts."""
    found = []
    for record in outcomes:
        texts = {s.key: s.text for s in record.example.document_sentences()}
        found.append(tuple(sorted({texts[k] for k in record.label.all_relevant_sentence_keys})))
    return found


def saying(**relevance: object) -> Behavior:
    """A behavior whose answers about documents alone say something else."""

    def answer(task: Task[Any]) -> JudgeReply[Frozen]:
        found = peeking(task).answer
        is_blind = task.kind.name == "retrieval"
        return JudgeReply(found.model_copy(update=relevance if is_blind else {}))

    return answer


REFUSED = UnusableAnswer("refused", reason="refusal", attempts=1, lasting=True)


def test_answers_over_one_retrieval_cost_one_call_more_than_their_number() -> None:
    """The relevance does not depend on the response, which its request does not show."""
    judge = Asked()
    found = label(rows(*ANSWERS), judge)
    assert set(relevant(found)) == {("The Aria lamp is red.",)}
    shown = [task for task in judge.tasks if task.kind.name == "retrieval"]
    assert not any(text in str(one.messages) for one in shown for text in ANSWERS)
    assert judge.kinds() == {"retrieval": 1, "trace": 3}
    seen = label(rows(*ANSWERS), judge, relevance="with-response")
    assert len(set(relevant(seen))) == 3
    assert judge.kinds() == {"trace": 3}


@pytest.mark.parametrize("profile", ["trace", "claims", "auto"])
def test_labels_of_every_profile_rest_on_a_retrieval_label(profile: str) -> None:
    """They are sound, read back as written, and equal in expected relevance."""
    given = rows(*ANSWERS, reference="It is red.")
    options: dict[str, Any] = {"judge": "embedded", "store": MemoryStore(), "relevance": "blind"}
    found: Any = labeler.label(given, profile=profile, **options)
    for record in found:
        assert record.retrieval is not None
        assert record.fault() is None
        assert "response" not in record.label.relevance_explanation
        assert parse_outcome(record.model_dump_json().encode()) == record
    values = [row["relevance:expected"] for row in labeler.metrics(found, ["relevance:expected"])]
    assert (values[0].value is not None, values.count(values[0])) == (True, 3)


def test_order_repeats_and_empty_documents_are_no_other_retrieval() -> None:
    """Each row has the keys of its own documents, also in the explanation."""
    given = [
        {"id": str(n), "question": "Red?", "response": "Yes.", "documents": documents}
        for n, documents in enumerate([[LAMP, CHAIR], [CHAIR, LAMP], [CHAIR, "", LAMP, LAMP]])
    ]
    # The lamp is document 1 of the retrieval, whose documents are distinct and sorted.
    judge = Asked(saying(relevance_explanation="1a says so, 2kg does not"))
    found = list(label(given, judge))
    assert judge.kinds() == {"retrieval": 1, "trace": 3}
    for record, keys in zip(found, (("0a",), ("1a",), ("2a", "3a")), strict=True):
        assert record.label.all_relevant_sentence_keys == keys
        assert record.label.relevance_explanation == f"{keys[0]} says so, 2kg does not"
    assert len({record.retrieval.relevance_explanation for record in found}) == 1
    label([{**given[0], "documents": [LAMP, CHAIR, "Tables too."]}], judge)
    assert judge.kinds()["retrieval"] == 1


def test_both_kinds_are_stored_and_not_bought_again() -> None:
    """Nor for new responses, nor by another row's id."""
    judge, store = Asked(), MemoryStore()
    label(rows(*ANSWERS[:2]), judge, store)
    assert Counter(record.kind for record in store) == {"label": 2, "retrieval": 1}
    assert judge.kinds() == {"retrieval": 1, "trace": 2}
    label([{**row, "id": f"other-{row['id']}"} for row in rows(*ANSWERS)], judge, store)
    assert judge.kinds() == {"trace": 1}


def test_imported_labels_bring_their_retrieval_labels(tmp_path: Path) -> None:
    """In the numbering of the retrieval, whatever that of the row is: nothing is bought again."""
    judge, file = Asked(), tmp_path / "labels.jsonl"
    given = rows(*ANSWERS, documents=[CHAIR, "", LAMP, CHAIR, LAMP])
    first = list(label(given, judge))
    labeler.api.write_labels(first, file)
    judge.tasks.clear()
    assert labeler.store.import_labels(read_labels(file), tmp_path / "store") == Imported(3)
    with DiskStore(tmp_path / "store") as store:
        [kept] = [record for record in store if isinstance(record, RetrievalRecord)]
        assert kept.fault() is None
        found = list(label([*given, *rows("A new answer.", id="new")], judge, store))
    assert found[:3] == first
    assert set(relevant(found)) == {("The Aria lamp is red.",)}
    assert judge.kinds() == {"trace": 1}


def test_a_stored_label_takes_the_relevance_of_the_run() -> None:
    """Rows of one retrieval have one relevance, however old their labels are."""
    judge, store = Asked(), MemoryStore()
    label(rows(*ANSWERS[:2]), judge, store)
    kept = MemoryStore()
    for record in (one for one in store if one.kind == "label"):
        kept.put(record)
    again = Asked(saying(all_relevant_sentence_keys=()))
    found = label(rows(*ANSWERS), again, kept)
    assert again.kinds() == {"retrieval": 1, "trace": 1}
    assert set(relevant(found)) == {()}
    assert not any(record.fault() for record in found)


def test_rows_fail_with_their_retrieval_label() -> None:
    """Their responses are not asked about; the refusal is repeated on request only."""

    def refusing(task: Task[Any]) -> JudgeReply[Frozen]:
        if task.kind.name == "retrieval" and CHAIR in str(task.example.documents):
            raise REFUSED
        return peeking(task)

    judge, store = Asked(refusing), MemoryStore()
    given = [*rows(*ANSWERS), {**rows("Yes.", documents=[LAMP])[0], "id": "x"}]
    found = list(label(given, judge, store))
    assert judge.kinds() == {"retrieval": 2, "trace": 1}
    assert [(one.reason, one.lasting) for one in found[:3]] == [("refusal", True)] * 3
    assert "'r1': its retrieval label: refused" in found[1].message
    for more, kinds in (({}, {}), ({"retry_failed": True}, {"retrieval": 1})):
        label(given, judge, store, **more)
        assert judge.kinds() == kinds


def test_votes_rest_on_the_retrieval_labels_of_their_trials() -> None:
    """A vote that is missing for one response changes no relevance."""

    def unsure(task: Task[Any]) -> JudgeReply[Frozen]:
        if task.kind.name == "trace" and task.signature.trial == 2 and "kg" in str(task.messages):
            raise REFUSED
        says_all = task.kind.name == "retrieval" and task.signature.trial > 0
        answer = peeking(task).answer
        keys = tuple(task.example.document_keys())
        change = {"all_relevant_sentence_keys": keys} if says_all else {}
        return JudgeReply(answer.model_copy(update=change))

    judge = Asked(unsure)
    found = label(rows(*ANSWERS), judge, repeat=3)
    assert judge.kinds() == {"retrieval": 3, "trace": 9}
    assert len(set(relevant(found))) == 1
    assert len(relevant(found)[0]) == 3
    for record in found:
        assert record.fault() is None
        assert record.retrieval.signature.judge == "majority"


def test_a_label_and_its_retrieval_label_must_fit() -> None:
    """Another relevance, key or order, a repeated document, and a missing basis are damage."""
    store = MemoryStore()
    [record] = label(rows(ANSWERS[0]), Asked(), store)
    edits: tuple[Callable[[Any], object], ...] = (
        lambda value: value["label"].update(all_relevant_sentence_keys=["1a"]),
        lambda value: value["retrieval"].update(key="0" * 64),
        lambda value: value.pop("retrieval"),
    )
    for edit in edits:
        value = json.loads(record.model_dump_json())
        edit(value)
        with pytest.raises(UsageError, match="retrieval label"):
            outcome_of(Line("labels.jsonl:1", json.dumps(value).encode()))
    [kept] = [one for one in store if isinstance(one, RetrievalRecord)]
    documents = kept.example.documents
    turned = kept.example.model_copy(update={"documents": (*documents, *documents)})
    assert kept.fault() is None
    assert kept.model_copy(update={"example": turned}).fault()
    # A label that people correct is one with relevance, whatever was asked for.
    made = corrected(record, [])
    assert (made.signature.response_schema.name, made.fault()) == ("label-trace/v1", None)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"relevance": "Blind"}, UnknownName, "blind"),
        ({"relevance": "blind", "prompt": "trace/v1"}, UsageError, "trace-support/v1"),
        ({"relevance": "with-response", "prompt": "trace-support/v1"}, UsageError, "relevance"),
        ({"relevance": "with-response", "prompt": "retrieval/v1"}, UsageError, "relevance"),
        # A judge of whole labels answers with relevance that was judged with the response.
        ({}, UsageError, "with the response alone"),
    ],
)
def test_contradictory_options_are_refused(
    options: dict[str, Any], error: type[Exception], words: str
) -> None:
    """Before anything is asked."""
    judge = Asked()
    if not options:
        judge.answers = frozenset({"trace"})  # type: ignore[attr-defined]
    with pytest.raises(error, match=words):
        label(rows(ANSWERS[0]), judge, **options)
    assert not judge.tasks


def test_people_see_what_relevance_rests_on(labeler_command: Command) -> None:
    """In the store the first row's id is also that of the retrieval label; the row comes first."""
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows(*ANSWERS)))

    def run(store: str) -> str:
        asked = ("label", "rows.jsonl", "--judge", "embedded", "--relevance", "blind")
        code, _, err = labeler_command(*asked, "--store", store, "-o", f"{store}.jsonl")
        assert code == 0
        return err

    run("store")
    _, shown, notices = labeler_command("show", "store", "r0")
    assert "response as a whole" in shown
    assert "different ways" not in notices
    assert "judged without the response: retrieval label" in " ".join(shown.split())
    verified = labeler_command("store", "verify", "store")[2]
    assert "3 of kind 'label', 1 of kind 'retrieval'" in verified
    first: Any = next(iter(read_labels("store.jsonl")))
    assert record_view(first)["made"]["relevance"].startswith("judged without the response")
    assert labeler_command("store", "export", "--store", "store", "-o", "export.jsonl")[0] == 0
    assert labeler_command("store", "import", "export.jsonl", "--store", "other")[0] == 0
    assert "0 labeled by" in run("other")


def test_deleting_rows_takes_the_retrieval_label(tmp_path: Path, labeler_command: Command) -> None:
    """Once no other row rests on it."""
    given = [{**one, "user": name} for one, name in zip(rows(*ANSWERS), "abc", strict=True)]
    folder = tmp_path / "store"
    with DiskStore(folder) as store:
        label(given, Asked(), store)

    def delete(*which: str) -> Counter[str]:
        assert labeler_command("store", "delete", folder, *which, "--yes")[0] == 0
        with DiskStore(folder) as store:
            return Counter(record.kind for record in store)

    assert delete("--id", "r0")["retrieval"] == 1
    assert delete("--where", "user=b")["retrieval"] == 1
    assert not delete("--where", "user=c")
