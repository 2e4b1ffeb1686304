"""Scores in the store: sealed under a mark of their own, checked when they are read."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import jsonschema
import pytest

from labeler.data.label_files import read_outcomes
from labeler.errors import UnstorableRecord, UsageError
from labeler.labels.record import AnyRecord
from labeler.labels.schemas import read_resource
from labeler.plugins.scores.records import ScoreAnswer, StepsAnswer, StepsRecord, steps_key
from labeler.store.checksums import DamagedRecord, decode, encode
from labeler.store.disk import DiskStore
from labeler.store.maintenance import merge_stores
from labeler.store.memory import MemoryStore
from support.records import sample_failure, sample_record
from support.scored import criterion, record

SCORE = record(distribution={3: 0.25, 4: 0.7}, logprobs=True)


def steps_record() -> StepsRecord:
    """Sound evaluation steps."""
    asked = criterion(steps=None)
    key = steps_key(asked, SCORE.signature)
    answer = StepsAnswer(steps=("Read it.", "Weigh it."))
    return StepsRecord(key=key, criterion=asked, answer=answer, signature=SCORE.signature)


@pytest.mark.parametrize("stored", [SCORE, steps_record(), sample_record()], ids=lambda r: r.kind)
def test_every_kind_reads_back_as_it_was(stored: AnyRecord) -> None:
    """Through its seal."""
    assert decode(stored.key, encode(stored)) == stored


def test_labels_are_sealed_as_ever() -> None:
    """Four bytes, a checksum, compressed JSON: what an earlier version wrote is read."""
    label = sample_record()
    body = zlib.compress(label.model_dump_json().encode(), 1)
    assert encode(label) == b"LBL1" + hashlib.sha256(body).digest() + body


def test_a_record_is_of_its_key() -> None:
    """And a failure is no record."""
    with pytest.raises(DamagedRecord, match=r"it holds the score .* of key"):
        decode("0" * 64, encode(SCORE))
    failure = sample_failure(1)
    with pytest.raises(DamagedRecord, match=r"it holds the failure .* of key failure:"):
        decode(str(failure.key), encode(failure))


def test_a_score_off_its_scale_is_not_stored() -> None:
    """Nor one under a key that is not its own."""
    off = SCORE.model_copy(update={"answer": ScoreAnswer(reasoning="so", score=9)})
    strange = SCORE.model_copy(update={"key": "0" * 64})
    for broken in (off, strange):
        with pytest.raises(UnstorableRecord):
            encode(broken)
        assert isinstance(MemoryStore().put(broken).exception(), UnstorableRecord)


def test_a_store_keeps_every_kind_and_merges_it(tmp_path: Path) -> None:
    """In the order of keys; the first record of a key stays."""
    every: list[AnyRecord] = [SCORE, steps_record(), sample_record()]
    stored = sorted(every, key=lambda one: one.key)
    with DiskStore(tmp_path / "s") as store:
        for one in stored:
            assert store.put(one).result()
        other = SCORE.model_copy(update={"answer": ScoreAnswer(reasoning="no", score=1)})
        assert not store.put(other).result()
    with DiskStore(tmp_path / "s", create=False) as store:
        assert list(store) == stored
        assert store.get(SCORE.key) == SCORE
        assert len(store) == 3
    assert merge_stores([tmp_path / "s"], tmp_path / "new").new == 3
    with DiskStore(tmp_path / "new") as rescued:
        assert list(rescued) == stored


def test_an_edited_line_is_refused(tmp_path: Path) -> None:
    """With file, line and what does not fit."""
    line = json.loads(SCORE.model_dump_json())
    line["criterion"]["criteria"] = "Is it rude?"
    path = tmp_path / "scores.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(UsageError, match=r"scores\.jsonl:1: record 'r1' was damaged or edited"):
        list(read_outcomes(path))


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("score-record/v1", SCORE),
        ("score-record/v1", SCORE.model_copy(update={"normalised": {"fence": 1}})),
        ("steps-record/v1", steps_record()),
    ],
)
def test_records_are_as_their_schemas_say(name: str, stored: AnyRecord) -> None:
    """What we write is what is published."""
    schema = json.loads(read_resource("schemas", name, ".json"))
    jsonschema.validate(stored.model_dump(mode="json"), schema)
