"""Vectors of texts: from the store where it has them, and made and stored once where not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from labeler.embedding import Embedded, Embedder
from labeler.errors import JudgeError, LabelerError
from labeler.record import ReplyFacts
from labeler.stores import Lease
from labeler.stores.vectors import VectorStore
from labeler.traffic import Stopped, current
from labeler.traffic.budget import Budget
from labeler.vectors import Vector, as_vector, stored_vector, vector_key

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
        """Have vectors made, and wait until they are durable, or the run is stopped."""
        texts = list(wanted.values())
        traffic = current()
        async with traffic.place():
            embedded = await self._embedded(texts)
            self.work.add(embedded.facts)
            for key, text, vector in zip(wanted, texts, embedded.vectors, strict=True):
                found[text] = vector
                if isinstance(vector, JudgeError):
                    self.work.failed += 1
                    continue
                self.work.embedded += 1
                made = stored_vector(
                    text, self.embedder.spec, vector, served_model=embedded.facts.served_model
                )
                saving[key] = self.store.put(made)
            for saved in saving.values():
                await traffic.unless_stopped(asyncio.wrap_future(saved))

    async def _embedded(self, texts: Sequence[str]) -> Embedded:
        """Ask the embedder; a bug of it costs these texts, not the run."""
        try:
            embedded = await self.embedder.embed(texts)
            return Embedded(_checked(embedded.vectors, len(texts)), embedded.facts)
        except (LabelerError, Stopped):
            raise
        except Exception as error:  # noqa: BLE001 - its words may hold a key or a text
            fault = JudgeError(
                f"embedder {self.embedder.spec} raised {type(error).__name__}: a fault of the "
                "embedder's code, not of the text",
                reason="embedder_error",
            )
            return Embedded((fault,) * len(texts), ReplyFacts(attempts=0))


def _let_go(lease: Lease, _saved: Future[bool]) -> None:
    lease.release()


def _checked(vectors: Sequence[Vector | JudgeError], count: int) -> tuple[Vector | JudgeError, ...]:
    """Vectors as they can be stored.

    Raises:
        ValueError: there is not one for each text, or one is no vector.
    """
    if len(vectors) != count:
        raise ValueError("an embedder gives one vector for each text")
    return tuple(v if isinstance(v, JudgeError) else as_vector(v) for v in vectors)
