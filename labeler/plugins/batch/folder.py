"""The state of batches on disk: every step is saved before its result is awaited.

A store's batches are in its folder ``batches``, one folder each::

    20261122T104500Z-3f9a1c02/
        batch.json              model, address, limits
        part-0001.json          the state of the part: its only file that changes
        part-0001.keys          the label keys that it asks for
        part-0001.asked.jsonl   the sentences of each, so that the rows are not needed again
        part-0001.lines.jsonl   the file of requests that is uploaded
        part-0001.output.jsonl  the answers exactly as received, because they were paid for
        part-0001.errors.jsonl

A folder gets its name when it is complete. Requests that have to be sent again form further parts,
such as ``part-0001-01``, which are valid once the first part is ``collected``.
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
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError, WrapValidator

from labeler.data.lines import BOM
from labeler.data.options import given
from labeler.errors import FatalJudgeError, JudgeError, StoreError, UsageError, describe_faults
from labeler.judges.openai.address import OFFICIAL_URL
from labeler.judges.options import CapField, ServerOptions
from labeler.labels.record import Usage
from labeler.sentences.example import Frozen
from labeler.store.disk import flush_directory

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
_PART = re.compile(r"part-(\d{4}(?:-\d{2})*)\.", re.ASCII)
_KEY = re.compile(r"[0-9a-f]{64}", re.ASCII)
_MOST_COUNTED = 10**9
"""No batch has more requests: a larger count is invalid."""

_Model = TypeVar("_Model", bound=Frozen)


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

    version: Literal[1] = 1
    name: str
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


class BatchInfo(Frozen):
    """Facts that hold for every part of a batch."""

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


class BatchFolder:
    """One batch on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        self.info = _read(path / BATCH_FILE, BatchInfo)

    def parts(self) -> list[BatchPart]:
        """Return every valid part, in order; others are remains of an interrupted collection."""
        found: dict[str, BatchPart] = {}
        matches = filter(None, (_PART.match(file.name) for file in self.path.iterdir()))
        for name in sorted({match[1] for match in matches}):  # a parent before its children
            parent = name.rpartition("-")[0]
            if not parent or (parent in found and found[parent].state == "collected"):
                file = self.path / f"part-{name}.json"
                found[name] = _read(file, BatchPart)
                if found[name].name != name:
                    raise _unreadable(file, "it names another part")
        return list(found.values())

    def open_parts(self) -> list[BatchPart]:
        """Return the parts whose answers are still to be collected."""
        return [part for part in self.parts() if part.is_open]

    @property
    def server(self) -> ServerOptions:
        """How its server is reached."""
        return replace(self.info.network, base_url=self.info.base_url, api_key_command=None)

    def command(self, action: str, *options: str) -> str:
        """Return the command line that applies an action to this batch."""
        store = self.path.parent.parent
        return command(action, self.name, *options, store=store, server=self.server)

    def file(self, part: BatchPart, kind: str) -> Path:
        """Return a file of a part: ``keys``, ``lines.jsonl`` and so on."""
        return self.path / f"part-{part.name}.{kind}"

    def save(self, part: BatchPart, **changes: object) -> BatchPart:
        """Save the state of a part with changes, and return it."""
        changed = part.model_copy(update=changes)
        write_durably(self.file(part, "json"), changed.model_dump_json().encode())
        return changed

    def keys(self, part: BatchPart) -> list[str]:
        """Return the label keys that a part asks for."""
        path = self.file(part, "keys")
        keys = _content(path).decode("ascii", "replace").split()
        if len(keys) != part.lines or not all(map(_KEY.fullmatch, keys)):
            raise _unreadable(path, f"it should hold {part.lines} label keys")
        return keys

    def remove_children(self, part: BatchPart) -> None:
        """Remove further parts that an interrupted collection began to prepare."""
        for file in self.path.glob(f"part-{part.name}-*"):
            file.unlink()

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
    return sorted(found, key=lambda folder: folder.info.created)


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

    Excludes collected and dropped parts. Reads one small file for each part and 65 bytes for each
    key of an open one.

    Args:
        store: the store's folder; it need not exist.

    Raises:
        StoreError: the state of a batch cannot be read: asking would risk paying twice.
    """
    found: dict[str, str] = {}
    for folder in batches(Path(store)):
        for part in folder.open_parts():
            found.update(dict.fromkeys(folder.keys(part), folder.name))
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
    found = {folder.info.base_url: folder.server for folder in folders if folder.open_parts()}
    return dict(sorted(found.items()))


def require_address(
    store: str | Path, base_url: str | None, action: str, *words: str, name: str | None = None
) -> None:
    """Reject an address if the store's open batches are all at other addresses.

    This keeps the API key from being sent to an address that only a folder names.

    Args:
        store: the store's folder.
        base_url: the given address; by default OpenAI's.
        action: the command that is about to run, such as ``collect``.
        words: further arguments of the command.
        name: the batch that it applies to; by default all.

    Raises:
        UsageError: there is no such folder, or the open batches are elsewhere; the message names
            the address and the command.
        StoreError: the state of a batch cannot be read.
    """
    store, base_url = Path(store), base_url or OFFICIAL_URL
    if not store.is_dir():
        raise UsageError(f"there is no label store in {store}; name the one that batches belong to")
    addresses = servers(one for one in batches(store) if name in {None, one.name})
    if not addresses or base_url in addresses:
        return
    subject = f"batch {name} of {store} is" if name else f"the open batches of {store} are"
    where = f"at {', '.join(addresses)}, not at {base_url}"
    go_on = command(
        action, *([name] if name else []), *words, store=store, server=addresses[min(addresses)]
    )
    raise UsageError(
        f"{subject} {where}: a key is sent only to an address that you give: `{go_on}`, or "
        "base_url in Python"
    )


@contextlib.contextmanager
def new_folder(store: Path, name: str) -> Iterator[Path]:
    """Make a folder that gets its name when it is complete; drop it if it has no batch file."""
    parent = store / FOLDER
    parent.mkdir(mode=0o700, exist_ok=True)
    for leftover in parent.glob(".new-*"):  # of a killed process; the lock is ours
        shutil.rmtree(leftover)
    temporary = parent / f".new-{name}"
    temporary.mkdir(mode=0o700)
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


def write_durably(path: Path, content: bytes) -> None:
    """Replace a small file atomically: after a crash it holds the old content or the new."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    flush_directory(path.parent)


def _read(path: Path, model: type[_Model]) -> _Model:
    try:
        return model.model_validate_json(_content(path))
    except ValidationError as error:
        raise _unreadable(path, describe_faults(error, whole="the whole")) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes().removeprefix(BOM)  # an editor may have added it
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _unreadable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path}: cannot be read: {why}; restore it from a copy: without it labels might be paid "
        "for twice"
    )
