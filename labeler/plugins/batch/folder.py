"""The state of batches on disk: every step is saved before its result is awaited.

A store's batches are in its folder ``batches``, one folder each::

    20261122T104500Z-3f9a1c02/
        batch.json              model, address, limits and parts: the only file that changes
        part-0001.asked.jsonl   the sentences of each request: the rows are not needed again
        part-0001.lines.jsonl   the file of requests that is uploaded
        part-0001.output.jsonl  the answers exactly as received, because they were paid for
        part-0001.errors.jsonl

A folder gets its name when it is complete. Requests that have to be sent again form further parts,
which count once ``batch.json`` lists them: from the moment that the first part is ``collected``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError, WrapValidator

from labeler.data.lines import BOM, flush_directory, replacing
from labeler.data.options import given
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError, describe_faults
from labeler.judges.openai.address import OFFICIAL_URL
from labeler.judges.options import CapField, ServerOptions
from labeler.labels.record import Usage
from labeler.sentences.example import Frozen

FOLDER = "batches"
BATCH_FILE = "batch.json"

PartState = Literal["prepared", "uploaded", "created", "collected", "dropped"]
"""``uploaded``: a batch may have been started; ``dropped``: canceled by its user without asking the
provider."""
UNSENT: frozenset[PartState] = frozenset({"prepared", "uploaded"})
CLOSED: frozenset[PartState] = frozenset({"collected", "dropped"})

_GOING = Literal["validating", "in_progress", "finalizing", "cancelling", "unknown"]
_ENDED = Literal["completed", "expired", "cancelled", "failed"]
ENDED: frozenset[str] = frozenset(get_args(_ENDED))
"""A provider's statuses of a batch that gets no more answers."""

_DEFAULT_STORE = ".labeler"
_NAME = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}", re.ASCII)
_KEY = re.compile(rb'(?:%b)?\{"key":"([0-9a-f]{64})"' % BOM)
_MOST_COUNTED = 10**9
"""No batch has more requests: a larger count is invalid."""


def _or(default: object) -> WrapValidator:
    """Return a validator that replaces an invalid value: a server may write anything."""

    def validate(value: Any, handler: Any) -> Any:  # noqa: ANN401 - any value of a server
        try:
            return handler(value)
        except ValidationError:
            return default

    return WrapValidator(validate)


_Count = Annotated[int, Field(strict=True, ge=0, le=_MOST_COUNTED), _or(0)]
_FileId = Annotated[str | None, Field(min_length=1), _or(None)]


class RemoteBatch(Frozen):
    """A batch as its provider describes it."""

    id: str = Field(min_length=1)
    status: Annotated[_GOING | _ENDED, _or("unknown")] = "unknown"
    """``unknown`` stands for a word that we do not know."""
    total: _Count = 0
    """Requests in it; 0 while they are not counted yet."""
    completed: _Count = 0
    failed: _Count = 0
    output_file: _FileId = None
    error_file: _FileId = None
    problems: tuple[str, ...] = ()
    """Short codes of why it was rejected, with line numbers; never the provider's words."""

    @property
    def is_whole(self) -> bool:
        """True if the batch has ended and the file of its answers, if any, is named.

        A server may report the end of a batch a moment before it names the file.
        """
        return self.status in ENDED and (self.output_file is not None or not self.completed)


class Results(Frozen, frozen=False):
    """Counts of the results of one part, or of several; mutable while a part is collected."""

    labelled: int = 0
    failed: Counter[str] = Field(default_factory=Counter)
    """Requests without a usable answer, by reason."""
    released: Counter[str] = Field(default_factory=Counter)
    """Requests without an answer that are not sent again here, by reason: the next run buys
    them."""
    again: Counter[str] = Field(default_factory=Counter)
    """Requests that are sent again in a further part, by reason."""
    odd: Counter[str] = Field(default_factory=Counter)
    """Lines of the answer files that made no sense, by kind."""
    broken: Counter[str] = Field(default_factory=Counter)
    """Contract violations by kind."""
    answered: int = 0
    unmetered: int = 0
    """Answers whose usage the server does not report."""
    usage: Usage = Usage()
    cost: Decimal | None = None
    """US dollars for the metered answers; ``None`` if no price is known."""


def total(results: list[Results]) -> Results:
    """Return the sum of the results of several parts; the cost is unknown if any is."""
    found = Results(cost=Decimal(0))
    for one in results:
        for name, count in one:
            mine = getattr(found, name)
            is_unknown = mine is None or count is None
            setattr(found, name, None if is_unknown else mine + count)
    return found


class BatchPart(Frozen):
    """One file of requests and the batch that was started for it."""

    name: str = Field(pattern=r"^[0-9]{4,}$")
    round: int = 1
    """How often its requests were sent: 1 for the first time."""
    lines: int
    size: int
    """Bytes of the file of requests."""
    prepared: float
    """Unix time."""
    state: PartState = "prepared"
    crowded_out: int = 0
    """How often it was rejected because the account's queue was full."""
    file_id: str | None = None
    batch_id: str | None = None
    remote: RemoteBatch | None = None
    """Its latest known description."""
    results: Results | None = None

    @property
    def is_open(self) -> bool:
        """True if answers are still to be collected."""
        return self.state not in CLOSED

    @property
    def status(self) -> str:
        """The provider's status of a batch that is not collected yet, otherwise our state."""
        return self.remote.status if self.remote and self.batch_id and self.is_open else self.state


@dataclass(frozen=True)
class FileLimits:
    """Limits of one file of requests; by default slightly less than OpenAI's."""

    lines: int = 50_000
    size: int = 190_000_000
    """In bytes."""


class BatchState(Frozen):
    """The state of a batch: facts that hold for all of it, and its parts."""

    version: Literal[1] = 1
    model: str
    base_url: str
    created: float
    """Unix time."""
    cap_field: CapField = "max_completion_tokens"
    """Name that the server has for the cap."""
    reasks: int = 1
    """How often an answer may be sent back."""
    limits: FileLimits = FileLimits()
    network: ServerOptions = ServerOptions()
    """How the server was reached, for commands; neither an address nor a program: a store may come
    from elsewhere, and commands are copied."""
    parts: tuple[BatchPart, ...] = ()


class BatchFolder:
    """One batch on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        file = path / BATCH_FILE
        try:
            self.state = BatchState.model_validate_json(file.read_bytes().removeprefix(BOM))
        except OSError as error:
            raise _unreadable(file, str(error)) from error
        except ValidationError as error:
            raise _unreadable(file, describe_faults(error, whole="the whole")) from error
        if not self.state.parts:
            raise _unreadable(file, "it names no part")

    def open_parts(self) -> list[BatchPart]:
        """Return the parts whose answers are still to be collected."""
        return [part for part in self.state.parts if part.is_open]

    @property
    def server(self) -> ServerOptions:
        """How its server is reached."""
        return replace(self.state.network, base_url=self.state.base_url, api_key_command=None)

    def command(self, action: str, *options: str) -> str:
        """Return the command line that applies an action to this batch."""
        store = self.path.parent.parent
        return command(action, self.name, *options, store=store, server=self.server)

    def file(self, part: BatchPart, kind: str) -> Path:
        """Return a file of a part: ``lines``, ``output`` and so on."""
        return part_file(self.path, part.name, kind)

    def files(self, part: BatchPart) -> list[Path]:
        """Return the files of a part; last the saved requests, which alone tell rows."""
        asked = self.file(part, "asked")
        others = sorted({*self.path.glob(f"part-{part.name}.*")} - {asked})
        return [*others, asked]

    def save(self, part: BatchPart, *further: BatchPart, **changes: object) -> BatchPart:
        """Save the state of a part with changes, and return it; further parts join the batch."""
        changed = part.model_copy(update=changes)
        parts = (changed if one.name == part.name else one for one in self.state.parts)
        state = self.state.model_copy(update={"parts": (*parts, *further)})
        write_state(self.path, state)
        self.state = state
        return changed

    def offsets(self, part: BatchPart) -> dict[str, int]:
        """Return the label keys that a part asks for, and where each saved request begins.

        Raises:
            StoreError: the file of saved requests does not hold those of the part.
        """
        path, found, start = self.file(part, "asked"), dict[str, int](), 0
        try:
            with path.open("rb") as lines:
                for line in lines:
                    if key := _KEY.match(line):
                        found[key[1].decode()] = start
                    start += len(line)
        except OSError as error:
            raise _unreadable(path, str(error)) from error
        if len(found) != part.lines:
            raise _unreadable(path, f"it holds {len(found)} of the {part.lines} saved requests")
        return found

    def remove_strays(self) -> None:
        """Remove files of parts that a collect prepared before it was stopped; they hold texts."""
        known = {part.name for part in self.state.parts}
        for path in self.path.glob("part-*"):
            if path.name.partition(".")[0].removeprefix("part-") not in known:
                path.unlink()

    def marker(self, part: BatchPart) -> str:
        """Return our name of a part's batch, which the provider keeps."""
        again = f"/{part.crowded_out}" if part.crowded_out else ""
        return f"{self.name}/{part.name}{again}"

    @contextlib.contextmanager
    def naming(self, part: BatchPart) -> Iterator[None]:
        """Add to errors of the provider the name of the part, and how to let go of its rows."""
        try:
            yield
        except JudgeError as error:
            kind = FatalJudgeError if isinstance(error, FatalJudgeError) else JudgeError
            message = f"{self.name}, part {part.name}: {error}"
            if part.state in UNSENT or error.reason in {"not_found", "unclear", "incomplete"}:
                drop = self.command("cancel", "--drop")
                message += f"; `{drop}` gives up its answers, so that its rows can be bought again"
            raise kind(message, reason=error.reason) from None


def batches(store: Path) -> list[BatchFolder]:
    """Return every batch of a store, the oldest first.

    Raises:
        StoreError: the state of a batch cannot be read.
    """
    found = [BatchFolder(store / FOLDER / name) for name in _names(store)]
    return sorted(found, key=lambda folder: folder.state.created)


def _names(store: Path) -> list[str]:
    try:
        return sorted(filter(_NAME.fullmatch, os.listdir(store / FOLDER)))  # noqa: PTH208 - asked for each row
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(store / FOLDER, str(error)) from error


def batch(store: Path, name: str) -> BatchFolder:
    """Return a batch of a store by its name.

    Raises:
        UsageError: there is no batch of this name.
    """
    found = {folder.name: folder for folder in batches(store)}
    if name not in found:
        have = ", ".join(found) or "none"
        raise UsageError(f"the store {store} has no batch {name!r}; it has {have}")
    return found[name]


def pending_keys(store: str | Path) -> dict[str, str]:
    """Return the label keys that a batch of this store may still answer, each with its batch.

    Excludes collected and dropped parts.

    Args:
        store: the store's folder; it need not exist.

    Raises:
        StoreError: the state of a batch cannot be read: asking would risk paying twice.
    """
    found: dict[str, str] = {}
    for folder in batches(Path(store)):
        for part in folder.open_parts():
            found.update(dict.fromkeys(folder.offsets(part), folder.name))
    return found


class PendingKeys:
    """Looks up label keys that a batch of a store may still answer, now and later.

    Notices batches submitted meanwhile, because each call lists the store's batches. A caller that
    holds the lease of a key cannot miss a batch for it, because batches are submitted under leases.

    Args:
        store: the store's folder.
    """

    def __init__(self, store: str | Path) -> None:
        self._store = Path(store)
        self._names: list[str] = []
        self._keys: dict[str, str] = {}

    def __call__(self, key: str) -> str | None:
        """Return the name of the batch that may still answer a key, or ``None``.

        Raises:
            StoreError: the state of a batch cannot be read.
        """
        self._update()
        return self._keys.get(key)

    def __len__(self) -> int:
        """Return the number of these keys."""
        self._update()
        return len(self._keys)

    def _update(self) -> None:
        if (names := _names(self._store)) != self._names:
            self._keys, self._names = pending_keys(self._store), names


def command(action: str, *words: str, store: str | Path, server: ServerOptions) -> str:
    """Return a complete ``labeler batch`` command line, quoted for a shell.

    Args:
        action: such as ``collect``.
        words: further arguments.
        store: the store's folder.
        server: as it was given, with the address of its batches.
    """
    line = ["labeler", "batch", action, *words]
    if str(store) != _DEFAULT_STORE or "LABELER_STORE" in os.environ:
        line += ["--store", str(store)]
    for name, value in given(server, ServerOptions).items():
        for one in value if isinstance(value, list) else [value]:
            if one != OFFICIAL_URL:
                line += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(line)


def servers(folders: Iterable[BatchFolder]) -> dict[str, ServerOptions]:
    """Return how the servers of open batches are reached, by their sorted addresses."""
    found = {folder.state.base_url: folder.server for folder in folders if folder.open_parts()}
    return dict(sorted(found.items()))


def batches_at(
    store: str | Path, base_url: str | None, action: str, *words: str, name: str | None = None
) -> tuple[list[BatchFolder], dict[str, ServerOptions]]:
    """Return the batches of a store at an address, and the servers of its other open ones.

    A key is never sent to an address that only a folder names.

    Args:
        store: the store's folder.
        base_url: the given address; by default OpenAI's.
        action: the command that is about to run, such as ``collect``.
        words: further arguments of the command.
        name: the batch that it applies to; by default all.

    Raises:
        UsageError: there is no such folder or batch, or all open batches are elsewhere; the message
            names the address and the command.
        StoreError: the state of a batch cannot be read.
    """
    store, base_url = Path(store), base_url or OFFICIAL_URL
    if not store.is_dir():
        raise UsageError(f"there is no label store in {store}; name the one that batches belong to")
    chosen = [batch(store, name)] if name else batches(store)
    here = [folder for folder in chosen if folder.state.base_url == base_url]
    elsewhere = servers(folder for folder in chosen if folder not in here)
    if elsewhere and not any(folder.open_parts() for folder in here):
        subject = f"batch {name} of {store} is" if name else f"the open batches of {store} are"
        given = [name, *words] if name else words
        go_on = command(action, *given, store=store, server=next(iter(elsewhere.values())))
        raise UsageError(
            f"{subject} at {', '.join(elsewhere)}, not at {base_url}: a key is sent only to an "
            f"address that you give: `{go_on}`, or base_url in Python"
        )
    return here, elsewhere


@contextlib.contextmanager
def new_folder(store: Path, name: str) -> Iterator[Path]:
    """Make a folder that gets its name when it is complete; drop it if it has no batch file."""
    parent = store / FOLDER
    for leftover in parent.glob(".new-*"):  # of a killed process; the lock is ours
        shutil.rmtree(leftover)
    temporary = parent / f".new-{name}"
    temporary.mkdir(mode=0o700, parents=True)
    try:
        yield temporary
        if (temporary / BATCH_FILE).exists():
            flush_directory(temporary)
            temporary.rename(parent / name)
            flush_directory(parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def locked(store: Path) -> Iterator[None]:
    """Keep other processes from changing a store's batches; the lock ends with its process.

    Raises:
        StoreError: another process is changing them.
    """
    parent = store / FOLDER
    parent.mkdir(mode=0o700, exist_ok=True)
    with contextlib.ExitStack() as stack:
        try:
            lock = sqlite3.connect(parent / ".lock", timeout=0, isolation_level=None)
            stack.callback(lock.close)
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            raise StoreError(
                f"another command is at work on the batches of {store} ({error}); "
                "wait until it ends, then run this again"
            ) from error
        yield


def part_file(directory: Path, name: str, kind: str) -> Path:
    """Return a file of a part in the folder of its batch."""
    return directory / f"part-{name}.{kind}.jsonl"


def write_state(directory: Path, state: BatchState) -> None:
    """Replace the state in a batch's folder: after a crash it is the old one or the new."""
    path = directory / BATCH_FILE
    with replacing(path) as partial, partial.open("wb") as file:
        file.write(state.model_dump_json().encode())
        file.flush()
        os.fsync(file.fileno())
    flush_directory(directory)


def _unreadable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path}: cannot be read: {why}; restore it from a copy: without it labels might be paid "
        "for twice"
    )
