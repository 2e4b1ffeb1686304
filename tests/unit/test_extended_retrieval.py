"""Retrieval labels that extend a stored one: only the added document is judged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import labeler
from command import Command
from fakes import CountingJudge, peeking
from labeler.audit import audit_labels
from labeler.errors import StoreError, UsageError
from labeler.judges.judge import UnusableAnswer
from labeler.judges.task import JudgeReply, Task
from labeler.labels.record import AnyRecord, LabelFailure, LabelRecord, parse_outcome
from labeler.labels.retrieval_record import RetrievalRecord
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.memory import MemoryStore
from labeler.store.protocol import LabelStore

LAMP, CHAIR = "The Aria lamp is red. It weighs 2 kg.", "Chairs are made of wood."
TABLE, HALL = "A table is in our hall. The lamp stands there.", "The hall is wide."


def rows(*documents: str, answers: int = 1, name: str = "r") -> list[dict[str, Any]]:
    """Rows of one retrieval."""
    base = {"question": "What about the lamp?", "documents": documents}
    return [{"id": f"{name}{n}", "response": f"It is {n}.", **base} for n in range(answers)]


class Asked(CountingJudge):
    """Keeps the documents of the retrievals that it is asked about; names a key in each answer."""

    def __init__(self, refused: str = "nothing") -> None:
        self.retrievals: list[str] = []

        def answer(task: Task[Any]) -> JudgeReply[Frozen]:
            if task.kind.name != "retrieval":
                return peeking(task)
            text = " | ".join(" ".join(s.text for s in one) for one in task.example.documents)
            self.retrievals.append(text)
            if refused in text:
                raise UnusableAnswer("refused", reason="refusal", attempts=1, lasting=True)
            found: Any = peeking(task).answer
            named = " ".join(found.all_relevant_sentence_keys) or "nothing"
            return JudgeReply(found.model_copy(update={"relevance_explanation": named}))

        super().__init__(answer)


def label(given: object, store: LabelStore, judge: Asked | None = None, **options: Any) -> Any:
    """Label and extend; return the outcomes and the retrievals that were asked about."""
    judge = judge or Asked()
    options = {"relevance": "blind", "extend_retrieval": True, **options}
    found = list(labeler.label(given, judge=judge, store=store, **options))
    return found, judge.retrievals


def relevant(record: LabelRecord) -> set[str]:
    """The relevant sentences, as texts."""
    texts = {s.key: s.text for s in record.example.document_sentences()}
    return {texts[key] for key in record.label.all_relevant_sentence_keys}


def stored(*documents: str) -> MemoryStore:
    """A store with the retrieval label of a row with some documents."""
    store = MemoryStore()
    label(rows(*documents, name="before"), store)
    return store


def test_only_the_added_document_is_judged() -> None:
    """The label names all relevant sentences and the label that it extends; a rerun is free."""
    store = stored(LAMP, CHAIR)
    [base] = [one for one in store if isinstance(one, RetrievalRecord)]
    given = rows(CHAIR, TABLE, LAMP, answers=2)
    found, asked = label(given, store)
    assert asked == [TABLE]
    for record in found:
        assert relevant(record) == {"The Aria lamp is red.", "The lamp stands there."}
        assert record.retrieval.extends == base.key
        assert record.label.relevance_explanation == (
            "[judged before] 2a\n[1a to 1b, added and judged alone] 1b"
        )
        assert record.fault() is None
        assert parse_outcome(record.model_dump_json()) == record
    again, asked = label([*given, *rows(LAMP, TABLE, CHAIR, name="new")], store)
    assert (again[:2], asked) == (found, [])
    whole, asked = label(given, store, extend_retrieval=False)
    assert len(asked) == 1
    assert whole[0].retrieval.extends is None
    assert whole[0].retrieval.key != found[0].retrieval.key
    full, asked = label(given, store)
    assert (full, asked) == (whole, [])  # all documents together come first
    assert len(audit_labels(found).same_documents) == 1
    assert not audit_labels([found[0], whole[1]]).same_documents


def test_a_rerun_chooses_the_same_of_several() -> None:
    """Though more labels are known by then; a known document is not bought again."""
    store = stored(LAMP, CHAIR)
    label(rows(CHAIR, TABLE, name="other"), store, extend_retrieval=False)
    label(rows(TABLE, name="alone"), store)
    found, asked = label(rows(LAMP, CHAIR, TABLE), store)
    assert asked == []
    killed = MemoryStore()  # before the joined label was stored
    for one in store:
        if not (isinstance(one, RetrievalRecord) and one.extends):
            killed.put(one)
    assert label(rows(LAMP, CHAIR, TABLE), killed) == (found, [])
    label(rows(LAMP, name="alone"), store)
    assert label(rows(LAMP, CHAIR, TABLE), store) == (found, [])


def test_labels_of_the_same_run_are_not_extended() -> None:
    """Whatever the pace of the answers: each run with an empty store asks about all documents."""
    given = [*rows(LAMP, CHAIR), *rows(LAMP, CHAIR, TABLE, name="more")]
    found, asked = label(given, MemoryStore(), concurrency=1)
    assert [text.count("|") for text in asked] == [1, 2]
    assert [one.retrieval.extends for one in found] == [None, None]


def test_the_row_fails_with_the_added_document() -> None:
    """It is asked about again on request only; two more documents are judged with the rest."""
    store, judge = stored(LAMP, CHAIR), Asked(refused=HALL)
    given = [*rows(TABLE, name="other"), *rows(LAMP, CHAIR, HALL)]
    for options, asked in ({}, 2), ({}, 2), ({"retry_failed": True}, 3):
        [*_, failed], retrievals = label(given, store, judge, **options)
        assert isinstance(failed, LabelFailure)
        assert "retrieval label: the added document: refused" in failed.message
        assert (failed.reason, len(retrievals)) == ("refusal", asked)
    [record], asked_now = label(rows(LAMP, CHAIR, TABLE, HALL), store)
    assert record.retrieval.extends is None
    assert asked_now[0].count("|") == 3


class Damaged(MemoryStore):
    """A store in which one record is damaged."""

    key = ""

    def get(self, key: str) -> AnyRecord | None:
        """Raise for that record."""
        if key == self.key:
            raise StoreError("damaged")
        return super().get(key)


def test_a_damaged_label_is_not_extended() -> None:
    """All documents are judged; the damage is reported with its own row."""
    store = Damaged()
    label(rows(LAMP, CHAIR, name="before"), store)
    [store.key] = [one.key for one in store if isinstance(one, RetrievalRecord)]
    [record], asked = label(rows(LAMP, CHAIR, TABLE), store)
    assert record.retrieval.extends is None
    assert asked[0].count("|") == 2


def test_votes_extend_those_of_their_trials() -> None:
    """The majority names the labels that its votes extend."""
    store = MemoryStore()
    label(rows(LAMP, CHAIR, name="before"), store, repeat=3)
    [record], asked = label(rows(LAMP, CHAIR, TABLE), store, repeat=3)
    assert asked == [TABLE] * 3
    assert len(record.retrieval.extends.split(" + ")) == 3
    assert record.fault() is None


def test_people_see_import_and_delete_extended_labels(
    tmp_path: Path, labeler_command: Command
) -> None:
    """A deleted row takes the label of its added document; imported labels cost nothing."""
    folder = tmp_path / "store"
    given: Any = rows(LAMP, CHAIR, name="before") + rows(LAMP, CHAIR, TABLE)
    made: Any = {"judge": "embedded", "relevance": "blind", "extend_retrieval": True}
    made["store"] = folder
    labeler.label(given[:1], **made)
    [_, record] = labeler.label(given, **made)
    file, other = tmp_path / "labels.jsonl", tmp_path / "other"
    file.write_text(record.model_dump_json() + "\n")
    assert "which extends" in " ".join(labeler_command("show", file, "r0")[1].split())
    assert labeler_command("import", "labels", file, "--store", other)[0] == 0
    again = labeler.label(given[1:], **{**made, "store": other})
    assert (again.cost.requests, list(again)) == (0, [record])
    assert labeler_command("store", "delete", folder, "--id", "r0", "--yes")[0] == 0
    with DiskStore(folder) as store:
        assert Counter(one.kind for one in store) == {"label": 1, "retrieval": 1}
        assert "table" not in json.dumps([one.model_dump(mode="json") for one in store])


def test_the_option_needs_blind_relevance() -> None:
    """A label with relevance of its own has nothing to extend."""
    with pytest.raises(UsageError, match="add --relevance blind"):
        label(rows(LAMP), MemoryStore(), relevance="with-response")
