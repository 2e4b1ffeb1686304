"""Taking in: every answer is stored before its part counts as collected, in whatever order."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from labeler.errors import FatalJudgeError, JudgeError, UnstorableRecord, UsageError
from labeler.integrations.batch.addresses import require_address
from labeler.integrations.batch.commands import command
from labeler.integrations.batch.folder import (
    CLOSED,
    BatchFolder,
    Part,
    Results,
    batches,
    locked,
    told_of,
)
from labeler.integrations.batch.lines import AskedFile, FileLimits, PartWriter
from labeler.integrations.batch.service import (
    OVER,
    Again,
    Asked,
    BatchService,
    GivenUp,
    RemoteBatch,
    Verdict,
)
from labeler.integrations.batch.submitting import send
from labeler.judges.pricing import Price
from labeler.judges.task import JudgeReply
from labeler.labeling.pipeline import UNSTORABLE, admit_reply, row_failure
from labeler.labels.record import LabelFailure, Usage
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.protocol import LabelStore

MOST_ROUNDS = 3
"""How often a request is handed in at most, re-asks included."""
_FOR_ITS_USER = frozenset({"not_found", "unclear"})
"""Reasons for which another look finds the same, until someone has seen to it."""
_LONGEST_LINE = 64 * 2**20
_OK = 200

Say = Callable[[str], None]
Pricing = Callable[[str], Price | None]
"""Finds the price of a model's tokens in a batch."""


@dataclass(frozen=True)
class Waiting:
    """How to wait for batches that are not over."""

    first: float = 15.0
    """Seconds before the second look."""
    longest: float = 60.0
    """Seconds that the pauses grow to."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True)
class Collection:
    """What one call has brought in."""

    parts: int
    """Parts that were collected by it."""
    results: Results
    still_open: int
    """Parts that are not over, those that ask again included."""
    failures: tuple[LabelFailure, ...] = ()
    """The first few records that were given up."""
    stuck: int = 0
    """Parts among the open ones that waiting does not help; what helps was said."""


async def collect(
    service: BatchService,
    store: DiskStore,
    *,
    name: str | None = None,
    resubmit: bool = True,
    waiting: Waiting | None = None,
    limits: FileLimits | None = None,
    price: Pricing = lambda _: None,
    say: Say = lambda _: None,
) -> Collection:
    """Store what the batches of a store have answered, and ask again where that is due.

    Args:
        service: where the batches are; those of another address are left alone.
        store: where the batches are kept and the labels go.
        name: one batch; by default all.
        resubmit: whether what expired, failed on the way, or broke the contract once is handed in
            again; otherwise it is left for the next run to buy.
        waiting: wait until every batch is over; by default look once.
        limits: how large a file may be that asks again.
        price: what the tokens of a model cost in a batch, where that is known.
        say: told what happens, and of lines that make no sense.

    Raises:
        FatalJudgeError: the provider lets nobody in; what was collected until then is stored.
        StoreError: the store or a batch cannot be read or written.
        UsageError: there is no such batch, or all open ones are at another address.
    """
    words = ["--wait"] if waiting else []
    require_address(store.directory, service.base_url, "collect", *words, name=name)
    run = _Run(
        service, store, name, limits=limits or FileLimits(), price=price, say=say, resubmit=resubmit
    )
    pause = waiting.first if waiting else 0.0
    while True:
        await run.once()
        if waiting is None or not run.still_open:
            return run.collection()
        # Full jitter on the upper half, so that many who wait do not ask together.
        await waiting.sleep(random.uniform(pause / 2, pause))  # noqa: S311 - no secret
        pause = min(pause * 1.5, waiting.longest)


class _Run:
    """One call of :func:`collect`, over as many looks as it takes."""

    def __init__(
        self,
        service: BatchService,
        store: DiskStore,
        name: str | None,
        *,
        limits: FileLimits,
        price: Pricing,
        say: Say,
        resubmit: bool,
    ) -> None:
        self.still_open = self._stuck = 0
        self._service, self._store, self._name = service, store, name
        self._limits, self._price = limits, price
        self._say, self._resubmit = say, resubmit
        self._results: list[Results] = []
        self._failures: list[LabelFailure] = []
        self._told: set[str] = set()
        self._fatal: list[FatalJudgeError] = []

    def collection(self) -> Collection:
        """All of it so far."""
        return Collection(
            parts=len(self._results),
            results=total(self._results),
            still_open=self.still_open,
            failures=tuple(self._failures),
            stuck=self._stuck,
        )

    async def once(self) -> None:
        """Look at every open part once."""
        self.still_open = self._stuck = 0
        with locked(self._store.directory):
            for folder in self._folders():
                await self._folder(folder)
        if self._fatal:
            raise self._fatal[0]

    def _folders(self) -> list[BatchFolder]:
        found = batches(self._store.directory)
        chosen = [folder for folder in found if self._name in {None, folder.name}]
        if self._name and not chosen:
            raise UsageError(f"{self._store.directory} has no batch {self._name!r}")
        here = [folder for folder in chosen if folder.facts.base_url == self._service.base_url]
        left = {f.facts.base_url for f in chosen if f not in here and f.is_open}
        for address in sorted(left):
            go_on = command("collect", store=self._store.directory, base_url=address)
            self._tell(
                f"batches at {address} are left alone, for this key is for "
                f"{self._service.base_url}: `{go_on}` collects them, or base_url in Python"
            )
        return here

    async def _folder(self, folder: BatchFolder) -> None:
        for part in folder.parts():
            if part.state in CLOSED:
                continue
            try:
                await self._part(folder, part)
            except FatalJudgeError as error:
                # What others have answered is paid for, and is brought in first.
                self._fatal.append(error)
            except JudgeError as error:
                # A look that fails loses nothing: the next one may do.
                self._tell(str(error))
                self._stuck += error.reason in _FOR_ITS_USER
        self.still_open += sum(part.state not in CLOSED for part in folder.parts())

    async def _part(self, folder: BatchFolder, part: Part) -> None:
        """Bring one part as far as it goes now."""
        if part.batch_id is None:
            await send(folder, self._service)
            return
        remote = part.remote
        if part.state == "created" or remote is None or not remote.is_whole:
            with told_of(folder, part):
                remote = await self._service.look(part.batch_id)
            if remote.status not in OVER:
                return
            if not remote.is_whole:
                folder.save(part.model_copy(update={"state": "created", "remote": remote}))
                raise _nameless(folder, part, remote)
            if _is_crowded_out(remote) and _others_under_way(folder, part):
                again: dict[str, Any] = {
                    "state": "prepared",
                    "batch_id": None,
                    "file_id": None,
                    "remote": None,
                    "crowded_out": part.crowded_out + 1,
                }
                folder.save(part.model_copy(update=again))
                self._tell(f"{folder.name}, part {part.name}: the queue is full; it waits")
                return
            part = part.model_copy(update={"state": "ended", "remote": remote})
            folder.save(part)
        with told_of(folder, part):
            files = await self._fetch(folder, part, remote)
        taken = _Intake(self._service, self._store, folder, part, self._price(folder.facts.model))
        try:
            part = taken.take_in(files, self._limits, resubmit=self._resubmit)
        except JudgeError:
            # The batch is looked at anew, which may name other files; these are fetched anew.
            folder.save(part.model_copy(update={"state": "created"}))
            raise
        folder.save(part)
        self._results.append(part.results or Results())
        self._failures += taken.failures[: _SHOWN - len(self._failures)]
        self._report(folder, part)
        await send(folder, self._service)

    def _report(self, folder: BatchFolder, part: Part) -> None:
        """Say what is out of the ordinary about a part."""
        where = f"{folder.name}, part {part.name}"
        if part.remote and part.remote.problems:
            self._tell(f"{where}: refused by the provider: {', '.join(part.remote.problems)}")
        for kind, count in (part.results or Results()).odd.items():
            self._tell(f"{where}: {count} times {kind}")

    def _tell(self, message: str) -> None:
        """Say something, once."""
        if message not in self._told:
            self._told.add(message)
            self._say(message)

    async def _fetch(self, folder: BatchFolder, part: Part, remote: RemoteBatch) -> list[Path]:
        """The files of answers, fetched where they are not yet; they are kept."""
        files = []
        for kind, file_id in (
            ("output.jsonl", remote.output_file),
            ("errors.jsonl", remote.error_file),
        ):
            if file_id is not None:
                path = folder.file(part.name, kind)
                if not path.exists():
                    await self._service.download(file_id, path)
                files.append(path)
        return files


def _nameless(folder: BatchFolder, part: Part, remote: RemoteBatch) -> JudgeError:
    return JudgeError(
        f"{folder.name}, part {part.name}: the provider says that the batch is {remote.status} and "
        f"counts {remote.completed} answers, and does not name their file yet: collect again "
        "later, to look again; nothing is asked again meanwhile. If it never does: "
        f"{_giving_up(folder)}",
        reason="incomplete",
    )


def _giving_up(folder: BatchFolder) -> str:
    return (
        f"`{folder.command('cancel', '--drop')}` gives up the answers that are missing, so that "
        "their rows can be bought again"
    )


def _is_crowded_out(remote: RemoteBatch) -> bool:
    """Whether a batch was refused only because too much is enqueued; nothing of it was asked."""
    return remote.status == "failed" and any("token_limit" in said for said in remote.problems)


def _others_under_way(folder: BatchFolder, part: Part) -> bool:
    return any(other.state == "created" and other.name != part.name for other in folder.parts())


_SHOWN = 3


class _Line(NamedTuple):
    """One line of a file of answers."""

    key: str
    status: int
    body: Mapping[str, Any] | None
    error: str
    """The code of why it was not even sent, such as ``batch_expired``."""


class _Intake:
    """Takes in the answers of one part."""

    def __init__(
        self,
        service: BatchService,
        store: LabelStore,
        folder: BatchFolder,
        part: Part,
        price: Price | None,
    ) -> None:
        self._price = price
        self.failures: list[LabelFailure] = []
        self._service, self._store, self._folder, self._part = service, store, folder, part
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("failed", "released", "again", "odd", "broken")
        }
        self._labelled = self._answered = self._unmetered = 0
        self._completed = 0
        """Answers of the kind that the provider counts as completed."""
        self._usage, self._cost = Usage(), Decimal(0)
        self._saved: list[tuple[str, Future[bool]]] = []
        """Labels on their way to the disk, by key."""
        self._failing: list[Future[bool]] = []

    def take_in(self, files: list[Path], limits: FileLimits, *, resubmit: bool) -> Part:
        """Store every answer; returns the part as it is once all of it is durable."""
        self._folder.remove_children(self._part)
        writer = PartWriter(
            self._folder.path,
            self._service.line,
            limits=limits,
            now=time.time(),
            parent=self._part.name,
            round_=self._part.round + 1,
        )
        stopped = self._part.remote is not None and self._part.remote.status in _STOPPED
        may_ask = resubmit and not stopped and self._part.round < MOST_ROUNDS
        again = writer if may_ask else None
        with AskedFile(self._folder, self._part) as asked, writer:
            unanswered, unheard = dict.fromkeys(asked), set(asked)
            for line in self._lines(files):
                unheard.discard(line.key)
                if line.key not in asked:
                    self._counts["odd"]["a line that was not asked for"] += 1
                elif line.key not in unanswered:
                    self._counts["odd"]["a second line of one request"] += 1
                elif not line.error:
                    del unanswered[line.key]
                    self._settle(asked[line.key], line, again)
            for key in unanswered:
                self._without_answer(asked[key], again)
            self._await_saved(asked)
        self._require_all(files, unheard)
        return self._part.model_copy(update={"state": "collected", "results": self._results()})

    def _require_all(self, files: list[Path], unheard: set[str]) -> None:
        """Refuse files that lack answers, which were paid for: asked again they would be twice.

        A file that says something of every request lacks none, whatever the provider counts.

        Args:
            files: the files of answers.
            unheard: keys of which they say nothing.

        Raises:
            JudgeError: there are fewer than the provider counts; the files are put aside.
        """
        counted = self._part.remote.completed if self._part.remote else 0
        counted = min(counted, self._part.lines)
        if self._completed >= counted or not unheard:
            return
        for file in files:
            file.replace(file.with_suffix(".short"))
        raise JudgeError(
            f"{self._folder.name}, part {self._part.name}: its files hold {self._completed} "
            f"answers, and the provider counts {counted}: those are stored; collect again later, "
            "to fetch the files again; nothing is asked again meanwhile. If they stay as they "
            f"are: {_giving_up(self._folder)}",
            reason="incomplete",
        )

    def _lines(self, files: list[Path]) -> Iterator[_Line]:
        for path in files:
            with path.open("rb") as file:
                while content := file.readline(_LONGEST_LINE):
                    line = _parsed(content)
                    if line is not None:
                        yield line
                    elif content.strip():
                        self._counts["odd"]["a line that cannot be read"] += 1

    def _settle(self, asked: Asked, line: _Line, writer: PartWriter | None) -> None:
        """Store what one answer comes to."""
        verdict = self._service.read(asked, line.status, line.body, worked=self._labelled > 0)
        self._meter(asked, line, verdict)
        result = verdict.result
        if isinstance(result, JudgeReply):
            self._label(asked, result)
        elif isinstance(result, GivenUp):
            self._give_up(asked, verdict, result)
        elif writer is None or not self._ask_again(asked, result, writer):
            self._release(asked, result.reason)

    def _meter(self, asked: Asked, line: _Line, verdict: Verdict) -> None:
        self._answered += 1
        self._completed += line.status == _OK
        # No answer is without a prompt: a count of none is a count that made no sense.
        if verdict.usage is not None and verdict.usage.prompt_tokens:
            self._usage += verdict.usage
            if self._price is not None:
                self._cost += self._price.cost(verdict.usage)
        elif line.status == _OK:
            self._unmetered += 1
        broken = Counter(verdict.history.broken)
        broken.subtract(asked.history.broken)
        malformed = (verdict.history.answers - verdict.history.readable) - (
            asked.history.answers - asked.history.readable
        )
        self._counts["broken"].update({**+broken, **({"malformed": 1} if malformed else {})})

    def _await_saved(self, asked: AskedFile) -> None:
        """Wait until all is durable; what no store could keep is a failure of its row alone."""
        for key, future in self._saved:
            try:
                future.result()
            except UnstorableRecord as error:
                self._labelled -= 1
                attempts = asked[key].history.attempts + 1
                self._fail(
                    row_failure(
                        asked[key].request, UNSTORABLE, str(error), attempts=attempts, lasting=True
                    )
                )
        for written in self._failing:
            with suppress(UnstorableRecord):
                written.result()

    def _label(self, asked: Asked, reply: JudgeReply[Frozen]) -> None:
        outcome = admit_reply(asked.request, reply)
        if not isinstance(outcome, LabelFailure):
            self._labelled += 1
            self._saved.append((outcome.key, self._store.put(outcome)))
        else:
            self._fail(outcome)

    def _give_up(self, asked: Asked, verdict: Verdict, why: GivenUp) -> None:
        failure = row_failure(
            asked.request,
            why.reason,
            why.message,
            attempts=verdict.history.attempts,
            reasks=verdict.history.reasks,
            usage=verdict.history.usage,
            violations=why.violations,
            lasting=why.lasting,
        )
        self._fail(failure)

    def _fail(self, failure: LabelFailure) -> None:
        self._counts["failed"][failure.reason] += 1
        if len(self.failures) < _SHOWN:
            self.failures.append(failure)
        if failure.lasting:
            self._failing.append(self._store.put_failure(failure))

    def _without_answer(self, asked: Asked, writer: PartWriter | None) -> None:
        """A request that expired, or was never answered for another reason."""
        status = self._part.remote.status if self._part.remote else "unknown"
        reason = "not_answered" if status == "completed" else status
        if writer is None or not self._ask_again(asked, Again(reason, asked.history), writer):
            self._release(asked, reason)

    def _ask_again(self, asked: Asked, again: Again, writer: PartWriter) -> bool:
        """Have a request handed in again, unless its label has come from elsewhere."""
        if self._store.get(asked.request.key) is not None:
            return True
        added = writer.add(Asked(asked.request, again.history, asked.reasks))
        self._counts["again"][again.reason] += added
        return added

    def _release(self, asked: Asked, reason: str) -> None:
        if self._store.get(asked.request.key) is None:
            self._counts["released"][reason] += 1

    def _results(self) -> Results:
        return Results(
            labelled=self._labelled,
            answered=self._answered,
            unmetered=self._unmetered,
            usage=self._usage,
            cost=self._cost if self._price else None,
            **{name: dict(counter) for name, counter in self._counts.items()},
        )


_STOPPED = frozenset({"cancelled", "failed"})


def _parsed(content: bytes) -> _Line | None:
    """A line made plain; ``None`` where it is none."""
    try:
        line: object = json.loads(content, parse_int=_whole)
        if b"\\ud" in content.lower():
            line = _writable(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    response, error = line.get("response"), line.get("error")
    if isinstance(response, dict) and type(response.get("status_code")) is int:
        body = response.get("body")
        known = body if isinstance(body, dict) else None
        return _Line(line["custom_id"], response["status_code"], known, "")
    if isinstance(error, dict):
        code = error.get("code")
        return _Line(line["custom_id"], 0, None, code if isinstance(code, str) and code else "none")
    return None


_MOST_DIGITS = 20


def _whole(digits: str) -> int | None:
    """A number of a line; none where it is so long that it means nothing.

    Python refuses to read the longest: an answer that was paid for would be lost with its line.
    """
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def _writable(value: object) -> object:
    """The same value without lone surrogates, which no file can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_writable(item) for item in value]
    if isinstance(value, dict):
        return {_writable(name): _writable(item) for name, item in value.items()}
    return value


def total(results: list[Results]) -> Results:
    """Several parts together."""
    counters: dict[str, Counter[str]] = {
        name: Counter() for name in ("failed", "released", "again", "odd", "broken")
    }
    usage = Usage()
    costs = [one.cost for one in results]
    for one in results:
        usage += one.usage
        for name, counter in counters.items():
            counter.update(getattr(one, name))
    return Results(
        labelled=sum(one.labelled for one in results),
        answered=sum(one.answered for one in results),
        unmetered=sum(one.unmetered for one in results),
        usage=usage,
        cost=None if None in costs else sum((cost for cost in costs if cost), Decimal(0)),
        **{name: dict(counter) for name, counter in counters.items()},
    )
