"""What is known of batches on the disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labeler.errors import StoreError, UsageError
from labeler.judges.openai.request import OpenAISpec
from labeler.labeling.cache import LabelCache
from labeler.plugins.batch.folder import (
    Batch,
    FileLimits,
    batches,
    locked,
    pending_keys,
)
from labeler.plugins.batch.pending import PendingKeys
from labeler.plugins.batch.requests import BatchRequest, place, read_request, write_batches
from labeler.store import MemoryStore
from support import samples
from support.records import sample_record

SUBMISSION = "20261122T104500Z-0123abcd"
NAME = f"{SUBMISSION}-0001"


def asked(number: int = 0) -> BatchRequest:
    """A request of its own."""
    example = samples.keyed_example(id=f"r{number}", question=f"What is {number}?")
    return BatchRequest.of(samples.request(example))


def none_too_large(_: BatchRequest) -> None:
    """Accept every request."""
    pytest.fail("too large")


def written(store: Path, count: int = 3) -> list[Batch]:
    """A batch that has no name yet."""
    spec = OpenAISpec(model="m", base_url="http://127.0.0.1/v1")
    path = store / "batches" / SUBMISSION
    like = Batch(path=path, created=0.0, spec=spec, limits=FileLimits(), lines=0, size=0)
    return write_batches(like, map(asked, range(count)), none_too_large)


def prepared(store: Path, count: int = 3) -> Batch:
    """A batch that is prepared and not sent."""
    place(written(store, count))
    return Batch.read(store / "batches" / NAME)


def keys(count: int = 3) -> list[str]:
    """The keys of the requests."""
    return [asked(number).task.key for number in range(count)]


# What is pending


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("prepared", 3), ("uploaded", 3), ("created", 3), ("collected", 0), ("dropped", 0),
    ],
)  # fmt: skip
def test_what_may_still_be_answered_is_pending(tmp_path: Path, state: str, expected: int) -> None:
    """From the moment that it is written down until it is collected or dropped."""
    prepared(tmp_path).save(state=state)
    found = pending_keys(tmp_path)
    assert found == dict.fromkeys(keys()[:expected], NAME)


def test_what_is_begun_counts_for_nothing(tmp_path: Path) -> None:
    """A folder that has not its name yet is no batch, and is cleared away."""
    assert pending_keys(tmp_path) == pending_keys(tmp_path / "none") == {}
    written(tmp_path)
    assert batches(tmp_path) == []
    with locked(tmp_path):
        assert list((tmp_path / "batches").iterdir()) == []


def test_a_batch_that_is_handed_in_meanwhile_is_noticed(tmp_path: Path) -> None:
    """A run that has looked already sees it with the next key, and takes output modes of it."""
    batch_of = PendingKeys(tmp_path)
    assert batch_of(keys()[0]) is None
    prepared(tmp_path)
    assert batch_of(keys()[0]) == NAME
    assert batch_of("0" * 64) is None
    assert LabelCache(MemoryStore()).is_new
    assert not LabelCache(MemoryStore(), pending=[batch_of]).is_new


def test_a_label_that_is_collected_meanwhile_is_found() -> None:
    """A batch stores its labels before it closes; between both look-ups nothing is lost."""
    store, record = MemoryStore(), sample_record()

    class Collected(dict[str, str]):
        def __call__(self, _: str) -> None:
            store.put(record)

    task: Any = SimpleNamespace(key=record.key)
    assert LabelCache(store, pending=[Collected()]).find(task) == record


# What is damaged


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("batch.json", None),
        ("batch.json", b""),
        ("batch.json", b"[]"),
        ("batch.json", b'{"version": 2}'),
        ("batch.json", b'{"spec": {"model": "m"}, "created": 0}'),
        ("batch.json", b"\xff"),
        ("asked.jsonl", None),
        ("asked.jsonl", b""),
        ("asked.jsonl", b"not a key\n" * 3),
    ],
)
def test_a_damaged_batch_is_refused_and_named(
    tmp_path: Path, file: str, content: bytes | None
) -> None:
    """Nothing is taken for free that may be paid for already; ``None`` for a file that is gone."""
    folder = prepared(tmp_path)
    (folder.path / file).unlink(missing_ok=True)
    if content is not None:
        (folder.path / file).write_bytes(content)
    with pytest.raises(StoreError, match=file):
        pending_keys(tmp_path)


def _edited(text: str) -> str:
    return text.replace("What is 1?", "What is 2?")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (_edited, "not what its key says"),
        (lambda text: text.replace("trace/v1", "trace/v9"), "trace/v9"),
        (lambda text: text.replace('"example"', '"story"'), "Field required"),
        (lambda text: text.splitlines(keepends=True)[1], "1 of the 3"),
    ],
)
def test_a_request_that_was_changed_is_refused(
    tmp_path: Path, edit: Callable[[str], str], said: str
) -> None:
    """An answer is never stored for sentences that were not shown."""
    folder = prepared(tmp_path)
    path = folder.file("asked")
    path.write_text(edit(path.read_text()))
    with pytest.raises(StoreError, match=said), path.open("rb") as file:
        read_request(file, folder.offsets()[keys()[1]], keys()[1])


def test_requests_come_back_as_they_were(tmp_path: Path) -> None:
    """Sentences, signature and history, each by its key."""
    folder = prepared(tmp_path)
    offsets = folder.offsets()
    assert list(offsets) == keys()
    with folder.file("asked").open("rb") as file:
        for number in (2, 0):
            task = asked(number).task
            found = read_request(file, offsets[task.key], task.key).task
            assert (found.example, found.messages) == (task.example, task.messages)


# Names, locks


def test_an_unknown_batch_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    """A path is no name either; the name of a submission stands for its batches."""
    prepared(tmp_path)
    for name in ("x", "..", f"../batches/{NAME}", NAME[:-1]):
        with pytest.raises(UsageError, match=NAME):
            batches(tmp_path, name)
    assert [[one.name for one in batches(tmp_path, name)] for name in (SUBMISSION, NAME)] == [
        [NAME],
        [NAME],
    ]
