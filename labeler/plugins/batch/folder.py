"""The state of batches on disk: every step is saved before its result is awaited.

A batch is one file of requests. A store's batches are in its folder ``batches``, one folder each::

    20261122T104500Z-3f9a1c02-0001/
        batch.json     judge, server and state: the only file that changes
        asked.jsonl    the sentences of each request: the rows are not needed again
        lines.jsonl    the file of requests that is uploaded
        output.jsonl   the answers exactly as received, because they were paid for
        errors.jsonl

A folder gets its name when it is complete. A submission has as many batches as the limits of files
force; all that are open are at one address. Requests that are sent again form further batches,
named after theirs, which are sent once it is ``collected``.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import re
import shlex
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from labeler.data.lines import (
    durable,
    flush_directory,
    replacing,
    rewrite_without,
)
from labeler.data.options import DEFAULT_STORE, given
from labeler.errors import (
    BadRow,
    FatalJudgeError,
    JudgeError,
    LabelerError,
    StoreError,
    UsageError,
    describe_faults,
    path_in,
)
from labeler.judges.openai.address import OFFICIAL_URL
from labeler.judges.openai.request import OpenAISpec, Request, request_body, spec_of
from labeler.judges.options import ServerOptions
from labeler.judges.prompting import OWN, Prompt, load_prompt
from labeler.judges.task import Messages, Task, judged_task
from labeler.labels.answers import family_of
from labeler.labels.record import RetrievalBasis, Usage
from labeler.labels.signature import Signature, load_schema
from labeler.plugins.batch import FOLDER, names_in, unreadable
from labeler.plugins.batch.remote import RemoteBatch
from labeler.sentences.characters import plain_json
from labeler.sentences.example import Frozen, KeyedExample
from labeler.store.leases import lock_files

BATCH_FILE = "batch.json"
NEW = ".new-"
"""Begins the name of a folder that is not complete."""
State = Literal["prepared", "uploaded", "created", "collected", "dropped"]
UNSENT: frozenset[State] = frozenset({"prepared", "uploaded"})

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
MOST_LINES, MOST_BYTES = 50_000, 190_000_000
"""Limits of one file of requests: slightly less than OpenAI's."""
_OF_BATCH = frozenset({"not_found", "unclear", "incomplete", "overdue"})
"""Reasons that may keep a batch open for good."""
_ANY_KEY = re.compile(rb"[0-9a-f]{64}")
_KEY = re.compile(rb'\{"key":"([0-9a-f]{64})"')


class Results(Frozen, frozen=False):
    """Counts of the results of one batch, or of several; mutable while a batch is collected."""

    labeled: int = 0
    failed: Counter[str] = Field(default_factory=Counter)
    """Requests without a usable answer, by reason."""
    released: Counter[str] = Field(default_factory=Counter)
    """Requests without an answer that are not sent again here, by reason: the next run buys
    them."""
    again: Counter[str] = Field(default_factory=Counter)
    """Requests that are sent again in a further batch, by reason."""
    odd: Counter[str] = Field(default_factory=Counter)
    """Lines of the answer files that made no sense, by kind."""
    answered: int = 0
    unmetered: int = 0
    """Answers whose usage the server does not report."""
    usage: Usage = Usage()
    cost: Decimal | None = None
    """US dollars for the metered answers; ``None`` if no price is known."""

    def add(self, other: Self) -> None:
        """Add the results of another batch; the cost is unknown if either is."""
        for name, count in other:
            mine = getattr(self, name)
            is_unknown = mine is None or count is None
            setattr(self, name, None if is_unknown else mine + count)


class Batch(Frozen, frozen=False):
    """One file of requests, and the provider's batch that was started for it."""

    path: Path = Field(Path(), exclude=True)
    version: Literal[1] = 1
    created: float
    """Unix time."""
    spec: OpenAISpec
    """The judge and its server."""
    lines: int
    """Requests in it."""
    crowded_out: int = 0
    """How often it was rejected because the account's queue was full."""
    file_id: str | None = None
    """The uploaded file."""
    remote: RemoteBatch | None = None
    """The provider's latest known description."""
    results: Results | None = None
    """Counts of the collected answers; ``None`` before that."""
    is_dropped: bool = False
    """True if its user canceled it without asking the provider."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a batch from its folder."""
        file = path / BATCH_FILE
        try:
            found = cls.model_validate_json(file.read_bytes())
        except OSError as error:
            raise unreadable(file, str(error)) from error
        except ValidationError as error:
            raise unreadable(file, describe_faults(error, whole="the whole")) from error
        found.path = path
        return found

    @property
    def name(self) -> str:
        """Name of the batch and its folder."""
        return self.path.name

    @property
    def round(self) -> int:
        """How often its requests were sent: 1 for the first time."""
        return self.name.count("-") - 1

    @property
    def is_open(self) -> bool:
        """True if answers are still to be collected."""
        return self.results is None and not self.is_dropped

    @property
    def state(self) -> State:
        """Its last step; ``uploaded``: a batch may have been started."""
        if not self.is_open:
            return "dropped" if self.is_dropped else "collected"
        if self.remote is not None:
            return "created"
        return "prepared" if self.file_id is None else "uploaded"

    @property
    def status(self) -> str:
        """The provider's status of a batch that is not collected yet, otherwise our state."""
        return self.remote.status if self.remote and self.is_open else self.state

    @property
    def marker(self) -> str:
        """Our name of the batch, which the provider keeps."""
        return f"{self.name}/{self.crowded_out}" if self.crowded_out else self.name

    @property
    def server(self) -> ServerOptions:
        """How its server is reached; without a program, since a store may come from elsewhere."""
        return replace(self.spec.server, api_key_command=None)

    def command(self, action: str, *words: str) -> str:
        """Return a command line for the store and the server of this batch."""
        return command(action, *words, store=self.path.parent.parent, server=self.server)

    def file(self, kind: str) -> Path:
        """Return a file of the batch: ``lines``, ``output`` and so on."""
        return self.path / f"{kind}.jsonl"

    def save(self, **changes: object) -> None:
        """Save the state with changes: after a crash it is the old one or the new."""
        for name, value in changes.items():
            setattr(self, name, value)
        with replacing(self.path / BATCH_FILE) as partial, durable(partial) as file:
            file.write(self.model_dump_json().encode())
        flush_directory(self.path)

    def label_keys(self) -> set[str]:
        """Return the label keys that the batch asks for, without reading more of its requests."""
        path = self.file("asked")
        try:
            with path.open("rb") as lines:
                found = {key[1].decode() for key in map(_KEY.match, lines) if key}
        except OSError as error:
            raise unreadable(path, str(error)) from error
        if len(found) != self.lines:
            raise unreadable(path, f"it holds {len(found)} of the {self.lines} saved requests")
        return found

    def requests(self) -> Iterator[BatchRequest]:
        """Yield the requests; a damaged one is an error."""
        path = self.file("asked")
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield BatchRequest.model_validate_json(line)
                except ValidationError as error:
                    raise StoreError(
                        f"{path}:{number}: not a saved request ({describe_faults(error)}); restore "
                        f"it from a copy, or remove {self.path} if its answers are collected"
                    ) from error

    def delete(self, keys: set[str]) -> None:
        """Delete the lines with a key from every file; last the requests, which name rows."""
        asked, named = self.file("asked"), {key.encode() for key in keys}
        others = {path for path in self.path.iterdir() if path.name != BATCH_FILE} - {asked}
        for path in (*others, asked):
            rewrite_without(path, lambda line: not named.isdisjoint(_ANY_KEY.findall(line)))

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Add to errors of the provider the name of the batch, and how to let go of its rows."""
        try:
            yield
        except JudgeError as error:
            kind = FatalJudgeError if isinstance(error, FatalJudgeError) else JudgeError
            message = f"{self.name}: {error}"
            if self.state in UNSENT or error.reason in _OF_BATCH:
                drop = self.command("cancel", self.name, "--drop")
                message += f"; `{drop}` gives up its answers, so that its rows can be bought again"
            raise kind(message, reason=error.reason) from None


def batches(store: str | Path, name: str | None = None) -> list[Batch]:
    """Return the batches of a store, the oldest first.

    Args:
        store: the store's folder.
        name: of a batch or a submission; by default all.

    Raises:
        UsageError: no batch has this name, or ``store`` is not a path.
        StoreError: the state of a batch cannot be read.
    """
    folder = path_in("store", store) / FOLDER
    every = sorted(
        map(Batch.read, map(folder.joinpath, names_in(folder))), key=lambda batch: batch.created
    )
    found = [one for one in every if name is None or f"{one.name}-".startswith(f"{name}-")]
    if name is not None and not found:
        have = ", ".join(one.name for one in every) or "none"
        raise UsageError(f"the store {store} has no batch {name!r}; it has {have}")
    return found


def pending_keys(store: Path) -> dict[str, str]:
    """Return the label keys that a batch of this store may still answer, each with its batch."""
    opened = [batch for batch in batches(store) if batch.is_open]
    return {key: batch.name for batch in opened for key in batch.label_keys()}


def command(action: str, *words: str, store: str | Path, server: ServerOptions) -> str:
    """Return a complete ``labeler batch`` command line, quoted for a shell."""
    line = ["labeler", "batch", action, *words]
    if str(store) != DEFAULT_STORE or "LABELER_STORE" in os.environ:
        line += ["--store", str(store)]
    for name, value in given(server, ServerOptions).items():
        for one in value if isinstance(value, list) else [value]:
            if one != OFFICIAL_URL:
                line += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(line)


class Busy(StoreError):
    """Another process is changing a store's batches."""


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Keep other processes from changing a store's batches; the lock ends with its process.

    Raises:
        Busy: another process is changing them.
    """
    leases, holder = lock_files(store), object()
    try:
        if leases.acquire(FOLDER, holder) is None:
            raise Busy(
                f"another command is at work on the batches of {store}; wait until it ends, then "
                "run this again"
            )
        (store / FOLDER).mkdir(mode=0o700, exist_ok=True)
        for leftover in (store / FOLDER).glob(f"{NEW}*"):  # of a killed process
            shutil.rmtree(leftover)
        yield
    finally:
        leases.release_all(holder)


class BatchRequest(Frozen):
    """A task and the answers to it so far: all that is needed to judge these and to ask again."""

    key: str
    example: KeyedExample
    signature: Signature
    retrieval: RetrievalBasis | None = Field(default=None, exclude_if=operator.not_)
    """The retrieval label that a label rests on."""
    prompt: Prompt | None = Field(default=None, exclude_if=operator.not_)
    """The prompt, if it is the user's own."""
    answers: tuple[str, ...] = ()
    """Lines of answer files."""

    @classmethod
    def of(cls, task: Task[Any]) -> Self:
        """Return the request of a task."""
        return cls(
            key=task.key,
            example=task.example,
            signature=task.signature,
            retrieval=getattr(task.kind, "basis", None),
            prompt=task.prompt if family_of(task.prompt.name) == OWN else None,
        )

    @cached_property
    def task(self) -> Task[Any]:
        """The task, rebuilt; an error if the request, its prompt or its schema has changed."""
        signature = self.signature
        try:
            prompt = self.prompt or load_prompt(signature.prompt.name if signature.prompt else "")
            prompt = prompt.with_instructions(signature.instructions)
            schema = load_schema(signature.response_schema.name)
        except LabelerError as error:
            raise StoreError(f"request {self.key}: {error}") from error
        same = (prompt.artifact, schema.artifact) == (signature.prompt, signature.response_schema)
        task = judged_task(self.example, signature, prompt, schema, self.retrieval)
        if not same or task.key != self.key:
            raise StoreError(
                f"request {self.key} is not what its key says: it was damaged or edited, or "
                "written by a version of labeler with other prompts"
            )
        return task

    def line(
        self, spec: OpenAISpec, messages: Messages | None = None, cap: int | None = None
    ) -> bytes:
        """Return the line of the uploaded file; its body equals the next online request's.

        Args:
            spec: the judge.
            messages: other than the task's own, as of a re-ask.
            cap: most tokens of the answer, if other than the judge's.

        Raises:
            BadRow: no file can hold it.
        """
        own = {**self.signature.sampling, "cap_field": spec.cap_field}
        asked = spec_of(self.signature.model, own)
        # A server that refuses the fields for caching would refuse every line of a file.
        request = Request(asked, self.task, messages, cap or spec.max_output_tokens, cached=False)
        body = request_body(request)
        line = {"custom_id": self.key, "method": "POST", "url": ENDPOINT, "body": body}
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # Some servers would take a line separator inside a text for the end of the line.
        written = plain_json(text).encode() + b"\n"
        if len(written) > MOST_BYTES:
            raise BadRow(
                f"{self.example.id!r}: its request alone is more than the {MOST_BYTES} bytes that "
                "a file may have; shorten its documents",
                reason="oversize",
            )
        return written


def write_batches(
    path: Path, spec: OpenAISpec, requests: Iterable[tuple[BatchRequest, bytes]]
) -> list[Batch]:
    """Write requests aside to as many batches as the limits of files force; make them durable.

    Args:
        path: begins the path of each, which ends in its number.
        spec: the judge and its server.
        requests: each with its line, which fits into a file.
    """
    rest, found = iter(requests), list[Batch]()
    following = next(rest, None)
    while following:
        aside = path.with_name(f"{NEW}{path.name}-{len(found) + 1:04d}")
        aside.mkdir(mode=0o700, parents=True)
        batch, count, size = Batch(path=aside, created=time.time(), spec=spec, lines=0), 0, 0
        with durable(batch.file("asked")) as saved, durable(batch.file("lines")) as uploaded:
            while following and count < MOST_LINES and size + len(following[1]) <= MOST_BYTES:
                saved.write(following[0].model_dump_json().encode() + b"\n")
                uploaded.write(following[1])
                count, size = count + 1, size + len(following[1])
                following = next(rest, None)
        batch.save(lines=count)
        found.append(batch)
    return found


def place(found: Iterable[Batch]) -> None:
    """Give new batches their names: from now on others can see them."""
    for batch in found:
        batch.path = batch.path.rename(batch.path.with_name(batch.name.removeprefix(NEW)))
        flush_directory(batch.path.parent)
