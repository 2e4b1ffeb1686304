"""Where vectors are kept: durable, checked, and each made once."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import stat
import zlib
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from labeler.errors import (
    FatalJudgeError,
    JudgeError,
    RunPaused,
    StoreError,
    UnstorableRecord,
    UsageError,
)
from labeler.integrations.embeddings.cache import EmbeddingCache, Found
from labeler.integrations.embeddings.embedder import Embedded
from labeler.integrations.embeddings.lexical import LexicalEmbedder
from labeler.integrations.embeddings.prices import FREE
from labeler.integrations.embeddings.vector_store import (
    FOLDER,
    DiskVectors,
)
from labeler.integrations.embeddings.vectors import EmbedderSpec, Vector, stored_vector, vector_key
from labeler.judges.judge import UnusableAnswer
from labeler.judges.pricing import Price
from labeler.labels.record import ReplyFacts, Usage
from labeler.store.checksums import encode
from labeler.store.disk import DiskStore
from support.records import sample_record

SPEC = EmbedderSpec(embedder="test", model="t")
ONE = stored_vector("one", SPEC, (1.0, 2.0), served_model="t-1")
TWO = stored_vector("two", SPEC, (3.0, 4.0))


@pytest.fixture
def store(tmp_path: Path) -> Iterable[DiskVectors]:
    """A store, closed in the end."""
    with DiskVectors(tmp_path) as made:
        yield made


# One store


def test_a_vector_comes_back_as_it_was_put(store: DiskVectors) -> None:
    """Bit by bit, and a key without one has none."""
    assert store.put(ONE).result(10) is True
    assert store.get(ONE.key) == ONE
    assert store.get(TWO.key) is None


def test_the_first_vector_of_a_key_stays(store: DiskVectors) -> None:
    """A later one is told that it was not kept."""
    store.put(ONE).result(10)
    later = stored_vector("one", SPEC, (9.0, 9.0))
    assert store.put(later).result(10) is False
    assert store.get(ONE.key) == ONE


def test_an_unsound_vector_is_not_stored(store: DiskVectors) -> None:
    """One that is not of its text fails alone."""
    wrong, sound = ONE.model_copy(update={"text": "other"}), store.put(TWO)
    with pytest.raises(UnstorableRecord, match="its key is not that"):
        store.put(wrong).result(10)
    assert sound.result(10) is True
    assert store.get(ONE.key) is None


def test_a_lease_is_had_by_one_at_a_time(store: DiskVectors) -> None:
    """Until it is released."""
    lease = store.lease(ONE.key)
    assert lease is not None
    assert store.lease(ONE.key) is None
    lease.release()
    again = store.lease(ONE.key)
    assert again is not None
    again.release()


def test_a_closed_store_says_so(store: DiskVectors) -> None:
    """In each of its methods."""
    store.close()
    uses: list[Callable[[], object]] = [
        lambda: store.get(ONE.key),
        lambda: store.put(ONE),
        lambda: store.lease(ONE.key),
    ]
    for use in uses:
        with pytest.raises(UsageError, match="closed"):
            use()


# On disk


def kept(folder: Path) -> Path:
    """A store of two vectors beside the labels, closed."""
    with DiskVectors(folder) as vectors:
        for saved in [vectors.put(ONE), vectors.put(TWO)]:
            saved.result(10)
    return folder


def change(folder: Path, statement: str, *values: object) -> None:
    """Run one SQL statement on the file of vectors, behind its store's back."""
    file = folder / FOLDER / "cache.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(statement, values)


def test_vectors_outlive_their_process(tmp_path: Path) -> None:
    """What was put is there when the store is opened again."""
    with DiskVectors(kept(tmp_path)) as vectors:
        assert [vectors.get(v.key) for v in (ONE, TWO)] == [ONE, TWO]
        assert len(vectors) == 2


def test_vectors_and_labels_keep_out_of_each_others_way(tmp_path: Path) -> None:
    """They lie in one folder, in files of their own; without its vectors it is whole."""
    kept(tmp_path)
    with DiskStore(tmp_path) as labels:
        labels.put(sample_record(1)).result(10)
        assert list(labels) == [sample_record(1)]
        assert labels.get(ONE.key) is None
    with DiskVectors(tmp_path) as vectors:
        assert len(vectors) == 2
        assert vectors.get(sample_record(1).key) is None


def test_the_folder_of_vectors_is_private(tmp_path: Path) -> None:
    """As that of labels is; one that others may write to is refused."""
    kept(tmp_path)
    folder = tmp_path / FOLDER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="can be written by others"):
        DiskVectors(tmp_path)


def sealed(text: str, magic: bytes = b"LBV1") -> bytes:
    """Bytes with a sound seal round any text, as a forger would make them."""
    packed = zlib.compress(text.encode())
    return magic + hashlib.sha256(packed).digest() + packed


def cut(stored: bytes) -> bytes:
    """All but the last byte."""
    return stored[:-1]


def forged(**changes: object) -> Callable[[bytes], object]:
    """The vector with other contents, under a sound seal."""
    return lambda _: sealed(ONE.model_copy(update=changes).model_dump_json())


TAMPERED: dict[str, tuple[Callable[[bytes], object], str]] = {
    "cut short": (cut, "checksum"),
    "a bit turned": (lambda b: b[:-1] + bytes([b[-1] ^ 1]), "checksum"),
    "a newer version": (lambda b: b"LBV2" + b[4:], "format"),
    "a label": (lambda _: encode(sample_record(1)), "sealed vector"),
    "another text": (forged(text="other"), "its key is not that"),
    "another embedder": (forged(embedder=SPEC.model_copy(update={"model": "u"})), "its key is not"),
    "another key": (forged(key=TWO.key), "another key"),
    "no numbers": (forged(numbers="AAA="), "no vector"),
    "not finite": (forged(numbers="AADAfw=="), "no vector"),
    "no JSON": (lambda _: sealed("{"), "not a label vector"),
    "a pickle's name": (lambda _: "text", "plain bytes"),
    "null": (lambda _: None, "plain bytes"),
}


@pytest.mark.parametrize(("tamper", "reason"), TAMPERED.values(), ids=TAMPERED.keys())
def test_a_changed_vector_is_refused(
    tmp_path: Path, tamper: Callable[[bytes], object], reason: str
) -> None:
    """The error names store, key, reason and what to do; the others stay readable."""
    kept(tmp_path)
    file = tmp_path / FOLDER / "cache.db"
    with closing(sqlite3.connect(file)) as connection:
        ((stored,),) = connection.execute("SELECT value FROM Cache WHERE key = ?", (ONE.key,))
    change(tmp_path, "UPDATE Cache SET value = ? WHERE key = ?", tamper(stored), ONE.key)
    with DiskVectors(tmp_path) as vectors:
        with pytest.raises(StoreError, match=reason) as caught:
            vectors.get(ONE.key)
        for part in (str(tmp_path / FOLDER), ONE.key, "remove the folder"):
            assert part in str(caught.value)
        assert vectors.get(TWO.key) == TWO


def test_a_vector_moved_under_another_key_is_refused(tmp_path: Path) -> None:
    """Its text and embedder say whose it is."""
    kept(tmp_path)
    change(tmp_path, "DELETE FROM Cache WHERE key = ?", TWO.key)
    change(tmp_path, "UPDATE Cache SET key = ? WHERE key = ?", TWO.key, ONE.key)
    with DiskVectors(tmp_path) as vectors, pytest.raises(StoreError, match="another key"):
        vectors.get(TWO.key)


# What is made once


class CountingEmbedder:
    """Spells texts, and remembers which it was given.

    Args:
        model: enters the vectors' keys.
        gate: awaited before each answer, where there is one.
    """

    def __init__(self, model: str = "t", gate: asyncio.Event | None = None) -> None:
        self.spec = EmbedderSpec(embedder="test", model=model)
        self.price: Price | None = FREE
        self.given: list[list[str]] = []
        self.twice = asyncio.Event()
        self._gate = gate

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """As the lexical one does; a text that begins with ``bad`` has no vector."""
        self.given.append(list(texts))
        if len(self.given) > 1:
            self.twice.set()
        if self._gate:
            await self._gate.wait()
        (spelled,) = [portion async for portion in LexicalEmbedder().embed(texts)]
        fault = UnusableAnswer("too long", reason="context_length", attempts=1)
        vectors = tuple(
            fault if text.startswith("bad") else vector
            for text, vector in zip(texts, spelled.vectors, strict=True)
        )
        facts = ReplyFacts(usage=Usage(prompt_tokens=len(texts)))
        yield Embedded(tuple(texts), vectors, facts)

    async def aclose(self) -> None:
        """Nothing to release."""


def fetch(shelf: EmbeddingCache, *texts: str) -> Found:
    """Vectors of texts by a run of its own."""
    return asyncio.run(shelf.vectors(texts))


def test_a_text_is_embedded_once(store: DiskVectors) -> None:
    """In a call and over calls; what is new is asked for together."""
    embedder = CountingEmbedder()
    first = fetch(EmbeddingCache(embedder, store), "one", "two", "one")
    shelf = EmbeddingCache(embedder, store)
    second = fetch(shelf, "two", "three", "one")
    assert embedder.given == [["one", "two"], ["three"]]
    assert second["one"] == first["one"]
    assert (shelf.work.stored, shelf.work.embedded, shelf.work.tokens) == (2, 1, 1)


def test_vectors_of_another_model_are_others(store: DiskVectors) -> None:
    """Nothing that one made answers for the other."""
    one, other = CountingEmbedder("t"), CountingEmbedder("u")
    fetch(EmbeddingCache(one, store), "text")
    fetch(EmbeddingCache(other, store), "text")
    assert other.given == [["text"]]
    made = [store.get(vector_key("text", each.spec)) for each in (one, other)]
    assert [stored.embedder.model for stored in made if stored] == ["t", "u"]


def test_a_text_without_a_vector_is_not_stored(store: DiskVectors) -> None:
    """It says why, the others are kept, and it is asked for again another time."""
    embedder = CountingEmbedder()
    shelf = EmbeddingCache(embedder, store)
    found = fetch(shelf, "bad text", "good text")
    assert isinstance(found["bad text"], JudgeError)
    assert isinstance(found["good text"], tuple)
    fetch(shelf, "bad text", "good text")
    assert embedder.given == [["bad text", "good text"], ["bad text"]]
    assert (shelf.work.failed, shelf.work.embedded, shelf.work.stored) == (2, 1, 1)


def test_two_jobs_that_want_the_same_text_make_it_once(store: DiskVectors) -> None:
    """The second waits for the first and takes what is stored."""

    async def both() -> tuple[list[list[str]], list[Found]]:
        gate = asyncio.Event()
        embedder = CountingEmbedder(gate=gate)
        shelf = EmbeddingCache(embedder, store)
        first = asyncio.create_task(shelf.vectors(["one", "two"]))
        await asyncio.sleep(0)
        second = asyncio.create_task(shelf.vectors(["two", "three"]))
        await embedder.twice.wait()
        gate.set()
        return embedder.given, list(await asyncio.gather(first, second))

    given, found = asyncio.run(asyncio.wait_for(both(), 30))
    assert given == [["one", "two"], ["three"]]
    assert found[0]["two"] == found[1]["two"]


def test_a_failed_job_lets_go_of_its_texts(store: DiskVectors) -> None:
    """Whoever comes next may have them made."""

    class Fatal(CountingEmbedder):
        async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
            if texts:
                raise FatalJudgeError(f"no {len(texts)} texts", reason="authentication")
            yield Embedded((), ())

    with pytest.raises(FatalJudgeError):
        fetch(EmbeddingCache(Fatal(), store), "one")
    assert isinstance(fetch(EmbeddingCache(CountingEmbedder(), store), "one")["one"], tuple)


def raises() -> Embedded:
    """A bug that knows a key."""
    raise RuntimeError("sk-SENTINEL")


BROKEN: dict[str, Callable[[], Embedded]] = {
    "raises": raises,
    "too few": lambda: Embedded((), ()),
    "too many": lambda: Embedded(("one",), ((1.0,), (2.0,))),
    "another text": lambda: Embedded(("two",), ((1.0,),)),
    "one text twice": lambda: Embedded(("one", "one"), ((1.0,), (2.0,))),
    "not finite": lambda: Embedded(("one",), ((float("nan"),),)),
    "empty": lambda: Embedded(("one",), ((),)),
    "no vector": lambda: Embedded(("one",), (cast("Vector", None),)),
    "no portion": lambda: cast("Embedded", (1.0,)),
    "no facts": lambda: Embedded(("one",), ((1.0,),), cast("ReplyFacts", {})),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
def test_an_embedders_bug_costs_its_texts_and_not_the_run(
    store: DiskVectors, answer: Callable[[], Embedded]
) -> None:
    """Nothing is stored, and its words are not repeated."""

    class Broken(CountingEmbedder):
        async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
            del texts
            yield answer()

    fault = fetch(EmbeddingCache(Broken(), store), "one")["one"]
    assert isinstance(fault, JudgeError)
    assert fault.reason == "embedder_error"
    assert "SENTINEL" not in str(fault)
    assert store.get(vector_key("one", SPEC)) is None


class Portions(CountingEmbedder):
    """Gives portions that were prepared, and an error in the end where there is one.

    Args:
        given: the portions.
        end: what it raises after the last.
        told: called before each portion but the first: "the next request".
    """

    def __init__(
        self,
        given: Sequence[Embedded],
        end: Exception | None = None,
        told: Callable[[], object] = list,
    ) -> None:
        super().__init__()
        self._portions, self._end, self._told = given, end, told

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """They are what the texts are."""
        self.given.append(list(texts))
        for portion in self._portions:
            yield portion
            self._told()
        if self._end:
            raise self._end


NINE = ReplyFacts(attempts=1, usage=Usage(prompt_tokens=9), served_model="t-1")


def test_one_bad_vector_spoils_no_other(store: DiskVectors) -> None:
    """The text says why; the others are kept, and what all of them took is counted."""
    vectors = ((1.0, 0.0), (float("nan"), 1.0), (0.0, 1.0))
    shelf = EmbeddingCache(Portions([Embedded(("a", "b", "c"), vectors, NINE)]), store)
    found = fetch(shelf, "a", "b", "c")
    assert (found["a"], found["c"]) == (vectors[0], vectors[2])
    fault = found["b"]
    assert isinstance(fault, JudgeError)
    assert fault.reason == "embedder_error"
    assert (shelf.work.embedded, shelf.work.failed) == (2, 1)
    assert (shelf.work.requests, shelf.work.tokens, shelf.work.models) == (1, 9, {"t-1"})


def test_vectors_are_durable_before_the_next_request(store: DiskVectors) -> None:
    """Whoever asks for the next portion has saved the last."""
    kept: list[bool] = []
    given = [Embedded((text,), ((1.0,),), NINE) for text in ("one", "two")]
    keys = [vector_key(text, SPEC) for text in ("one", "two")]
    embedder = Portions(given, told=lambda: kept.extend(store.get(key) is not None for key in keys))
    fetch(EmbeddingCache(embedder, store), "one", "two")
    assert kept == [True, False, True, True]


ENDS: dict[str, Exception] = {
    "for good": FatalJudgeError("no credit", reason="quota"),
    "for now": RunPaused("wait", reason="rate_limit"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_what_came_before_a_run_ended_is_not_bought_again(
    store: DiskVectors, end: Exception
) -> None:
    """Its vectors are stored and what it took is counted; the next run asks for the rest."""
    shelf = EmbeddingCache(Portions([Embedded(("one",), ((1.0,),), NINE)], end), store)
    with pytest.raises(type(end)):
        fetch(shelf, "one", "two")
    assert (shelf.work.embedded, shelf.work.requests, shelf.work.tokens) == (1, 1, 9)
    later = CountingEmbedder()
    assert fetch(EmbeddingCache(later, store), "one", "two")["one"] == (1.0,)
    assert later.given == [["two"]]


def test_a_bug_after_some_vectors_costs_only_the_texts_that_are_left(store: DiskVectors) -> None:
    """What was given before it is kept."""
    shelf = EmbeddingCache(
        Portions([Embedded(("one",), ((1.0,),), NINE)], KeyError("sk-SENTINEL")), store
    )
    found = fetch(shelf, "one", "two")
    assert found["one"] == (1.0,)
    fault = found["two"]
    assert isinstance(fault, JudgeError)
    assert "raised KeyError" in str(fault)
    assert "SENTINEL" not in str(fault)


def test_a_portion_of_unclear_order_is_counted_and_not_taken(store: DiskVectors) -> None:
    """Two vectors for three texts: nobody knows whose they are."""
    shelf = EmbeddingCache(Portions([Embedded(("a", "b", "c"), ((1.0,), (2.0,)), NINE)]), store)
    found = fetch(shelf, "a", "b", "c")
    assert [getattr(each, "reason", None) for each in found.values()] == ["embedder_error"] * 3
    assert (shelf.work.failed, shelf.work.embedded, shelf.work.tokens) == (3, 0, 9)
