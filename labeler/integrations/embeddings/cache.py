"""The embedding cache: each text is embedded once and its vector is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Container, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from labeler.errors import JudgeError, LabelerError
from labeler.integrations.embeddings.embedder import Embedded, Embedder
from labeler.integrations.embeddings.vector_store import DiskVectors
from labeler.integrations.embeddings.vectors import Vector, as_vector, stored_vector, vector_key
from labeler.judges.limits import Budget
from labeler.judges.pace import Stopped, current
from labeler.labels.record import ReplyFacts
from labeler.store.protocol import Lease

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
"""Seconds between two attempts to lease a text that another run holds."""

Found = dict[str, Vector | JudgeError]
"""Vectors by text; an error if a text has none."""


@dataclass
class EmbeddingWork:
    """Counts and cost of embedding in a run, updated while it runs."""

    stored: int = 0
    """Texts found in the store, counted once for each batch."""
    embedded: int = 0
    """Texts embedded in this run."""
    failed: int = 0
    requests: int = 0
    tokens: int = 0
    """Charged tokens, if the server reports them."""
    models: set[str] = field(default_factory=set)
    """Models that answered, as their server names them."""
    spent: Budget = field(default_factory=Budget)
    """Cost of the requests, if the price is known."""

    def add(self, facts: ReplyFacts) -> None:
        """Add the facts of one request."""
        self.requests += facts.attempts
        self.tokens += facts.usage.prompt_tokens if facts.usage else 0
        if facts.served_model:
            self.models.add(facts.served_model)


@dataclass
class EmbeddingCache:
    """Finds or makes vectors for the jobs of one run, all on one event loop."""

    embedder: Embedder
    store: DiskVectors
    work: EmbeddingWork = field(default_factory=EmbeddingWork)

    async def vectors(self, texts: Iterable[str]) -> Found:
        """Return the vector or the error of each text.

        Raises:
            FatalJudgeError: no text can be embedded.
            StoreError: the store cannot be read or written.
            Stopped: the run is being stopped.
        """
        found: Found = {}
        spec, pause = self.embedder.spec, _FIRST_PAUSE
        wanted = {vector_key(text, spec): text for text in texts}
        while wanted:
            self._take_stored(wanted, found)
            # Leases are released before waiting for other runs: two runs never wait for each other.
            async with self._leased(wanted) as (mine, saving):
                self._take_stored(mine, found)
                if mine:
                    await self._make(mine, found, saving)
            wanted = {key: text for key, text in wanted.items() if text not in found}
            if wanted:
                await current().unless_stopped(asyncio.sleep(pause))
                pause = min(_LONGEST_PAUSE, pause * 1.5)
        return found

    def _take_stored(self, wanted: dict[str, str], found: Found) -> None:
        """Move stored vectors from ``wanted`` to ``found``."""
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
        """Lease the free keys until their vectors are saved, even if cancelled."""
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
                    saving[key].add_done_callback(partial(_release, lease))
                else:
                    lease.release()

    async def _make(
        self, wanted: Mapping[str, str], found: Found, saving: dict[str, Future[bool]]
    ) -> None:
        """Embed texts; each request waits until the vectors of the one before are durable."""
        traffic = current()
        keys = {text: key for key, text in wanted.items()}
        async with traffic.slot(), aclosing(self._results(list(keys))) as results:
            async for result in results:
                self.work.add(result.facts)
                begun = len(saving)
                for text, vector in zip(result.texts, result.vectors, strict=True):
                    found[text] = vector
                    if isinstance(vector, JudgeError):
                        self.work.failed += 1
                        continue
                    self.work.embedded += 1
                    saving[keys[text]] = self._put(text, vector, result.facts)
                for saved in list(saving.values())[begun:]:
                    await traffic.result_of(saved)

    def _put(self, text: str, vector: Vector, facts: ReplyFacts) -> Future[bool]:
        """Start saving a vector."""
        served = facts.served_model
        return self.store.put(stored_vector(text, self.embedder.spec, vector, served_model=served))

    async def _results(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Yield the embedder's results; a bug of it costs the remaining texts, not the run."""
        left, bug = dict.fromkeys(texts), "gave no vector"
        try:
            async with aclosing(self.embedder.embed(texts)) as given:
                async for result in given:
                    checked = self._checked(result, left)
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
        """Check one result; a bad vector becomes an error and spoils no other.

        If vectors and texts do not match, all of them are dropped and their cost is counted.

        Raises:
            TypeError: the embedder yielded another class.
        """
        if not isinstance(given, Embedded) or not isinstance(given.facts, ReplyFacts):
            raise TypeError("an embedder gives results")
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
            return self._fault("returned something other than lists of finite numbers")

    def _fault(self, bug: str) -> JudgeError:
        return JudgeError(
            f"embedder {self.embedder.spec} {bug}: a fault of the embedder's code, not of the text",
            reason="embedder_error",
        )


def _release(lease: Lease, _saved: Future[bool]) -> None:
    lease.release()
