"""Vectors of texts: from the store where it has them, and made and stored once where not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Container, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from labeler.errors import JudgeError, LabelerError
from labeler.integrations.embeddings.embedder import Embedded, Embedder
from labeler.integrations.embeddings.vector_store import VectorStore
from labeler.integrations.embeddings.vectors import Vector, as_vector, stored_vector, vector_key
from labeler.judges.traffic.limits import Budget
from labeler.judges.traffic.traffic import Stopped, current
from labeler.labels.record import ReplyFacts
from labeler.store.protocol import Lease

_FIRST_LOOK, _RARE_LOOK = 0.02, 1.0
"""Seconds between looks at whether someone else has let go of a text."""

Found = dict[str, Vector | JudgeError]
"""By text; in a vector's place why there is none."""


@dataclass
class EmbeddingWork:
    """What embedding took in a run; filled while it goes on."""

    stored: int = 0
    """Texts whose vectors the store had, counted once for each time that some were asked for."""
    embedded: int = 0
    """Texts whose vectors were made."""
    failed: int = 0
    requests: int = 0
    tokens: int = 0
    """Charged, as far as the server says."""
    models: set[str] = field(default_factory=set)
    """That answered, as their server names them."""
    spent: Budget = field(default_factory=Budget)
    """What the requests cost, where a price is known."""

    def add(self, facts: ReplyFacts) -> None:
        """Count what one call of an embedder took."""
        self.requests += facts.attempts
        self.tokens += facts.usage.prompt_tokens if facts.usage else 0
        if facts.served_model:
            self.models.add(facts.served_model)


@dataclass
class Shelf:
    """Finds or makes vectors for the jobs of one run, all on one event loop."""

    embedder: Embedder
    store: VectorStore
    work: EmbeddingWork = field(default_factory=EmbeddingWork)

    async def vectors(self, texts: Iterable[str]) -> Found:
        """The vector of each text, or why there is none; equal texts are one.

        Raises:
            FatalJudgeError: no text can be embedded.
            StoreError: the store cannot be read or written.
            Stopped: the run is being stopped.
        """
        found: Found = {}
        spec, pause = self.embedder.spec, _FIRST_LOOK
        wanted = {vector_key(text, spec): text for text in texts}
        while wanted:
            self._look(wanted, found)
            # What others are making is waited for with nothing in hand, so that no two wait for
            # one another.
            async with self._leased(wanted) as (mine, saving):
                self._look(mine, found)
                if mine:
                    await self._make(mine, found, saving)
            wanted = {key: text for key, text in wanted.items() if text not in found}
            if wanted:
                await current().unless_stopped(asyncio.sleep(pause))
                pause = min(_RARE_LOOK, pause * 1.5)
        return found

    def _look(self, wanted: dict[str, str], found: Found) -> None:
        """Move what the store has from what is wanted to what is found."""
        for key, text in list(wanted.items()):
            stored = self.store.get(key)
            if stored is not None:
                found[text] = stored.vector
                self.work.stored += 1
                del wanted[key]

    @asynccontextmanager
    async def _leased(
        self, wanted: Mapping[str, str]
    ) -> AsyncIterator[tuple[dict[str, str], dict[str, Future[bool]]]]:
        """Hold what nobody else holds until it is saved, also if this is cancelled."""
        leases: dict[str, Lease] = {}
        saving: dict[str, Future[bool]] = {}
        try:
            for key in wanted:
                lease = self.store.lease(key)
                if lease is not None:
                    leases[key] = lease
            yield {key: wanted[key] for key in leases}, saving
        finally:
            for key, lease in leases.items():
                if key in saving:
                    saving[key].add_done_callback(partial(_let_go, lease))
                else:
                    lease.release()

    async def _make(
        self, wanted: Mapping[str, str], found: Found, saving: dict[str, Future[bool]]
    ) -> None:
        """Have vectors made; none is paid for before the last are durable, or the run stopped."""
        traffic = current()
        keys = {text: key for key, text in wanted.items()}
        async with traffic.slot(), aclosing(self._portions(list(keys))) as portions:
            async for portion in portions:
                self.work.add(portion.facts)
                begun = len(saving)
                for text, vector in zip(portion.texts, portion.vectors, strict=True):
                    found[text] = vector
                    if isinstance(vector, JudgeError):
                        self.work.failed += 1
                        continue
                    self.work.embedded += 1
                    saving[keys[text]] = self._put(text, vector, portion.facts)
                for saved in list(saving.values())[begun:]:
                    await traffic.unless_stopped(asyncio.wrap_future(saved))

    def _put(self, text: str, vector: Vector, facts: ReplyFacts) -> Future[bool]:
        """Begin to save a vector."""
        served = facts.served_model
        return self.store.put(stored_vector(text, self.embedder.spec, vector, served_model=served))

    async def _portions(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """What the embedder gives; a bug of it costs the texts that are left, not the run."""
        left, bug = dict.fromkeys(texts), "gave no vector"
        try:
            async with aclosing(self.embedder.embed(texts)) as given:
                async for portion in given:
                    checked = self._checked(portion, left)
                    for text in checked.texts:
                        del left[text]
                    yield checked
        except (LabelerError, Stopped):
            raise
        except Exception as error:  # noqa: BLE001 - its words may hold a key or a text
            bug = f"raised {type(error).__name__}"
        if left:
            yield Embedded(tuple(left), (self._fault(bug),) * len(left), ReplyFacts(attempts=0))

    def _checked(self, given: Embedded, left: Container[str]) -> Embedded:
        """A portion as it can be stored: one bad vector spoils no other.

        Where it is not clear which vector is whose, none is taken; what they took is counted.

        Raises:
            TypeError: it is none.
        """
        if not isinstance(given, Embedded) or not isinstance(given.facts, ReplyFacts):
            raise TypeError("an embedder gives portions")
        distinct = len(set(given.texts)) == len(given.texts) == len(given.vectors)
        if not distinct or not all(text in left for text in given.texts):
            return Embedded((), (), given.facts)
        return Embedded(tuple(given.texts), tuple(map(self._usable, given.vectors)), given.facts)

    def _usable(self, vector: Vector | JudgeError) -> Vector | JudgeError:
        if isinstance(vector, JudgeError):
            return vector
        try:
            return as_vector(vector)
        except (TypeError, ValueError):
            return self._fault("gave what is no list of finite numbers")

    def _fault(self, bug: str) -> JudgeError:
        return JudgeError(
            f"embedder {self.embedder.spec} {bug}: a fault of the embedder's code, not of the text",
            reason="embedder_error",
        )


def _let_go(lease: Lease, _saved: Future[bool]) -> None:
    lease.release()
