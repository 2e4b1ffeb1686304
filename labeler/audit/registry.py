"""What a finding and a check are, and the catalog that every list of checks is read from."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from labeler.audit.subject import Judgment, Subject
from labeler.catalog import Catalog
from labeler.errors import UnknownName, UsageError

Severity = Literal["contradiction", "suspicion", "note"]
"""``contradiction``: the label says two things that cannot both be true. ``suspicion``: it may
well be right, but the texts or the explanation speak against it. ``note``: worth knowing."""

WEIGHTS: dict[Severity, float] = {"contradiction": 0.5, "suspicion": 0.25, "note": 0.05}
"""How much one finding of a severity adds to the doubt about a record, unless its check says."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a check saw in one record.

    Attributes:
        message: what is odd, in one sentence for a person; may quote keys, never whole texts.
        keys: the sentences concerned, of documents, response or reference, in reading order.
    """

    message: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found in one record.

    Attributes:
        check: the check's id.
        severity: how bad it is.
        message: what is odd, in one sentence.
        keys: the sentences concerned, in reading order.
    """

    check: str
    severity: Severity
    message: str
    keys: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The published form."""
        return {
            "check": self.check,
            "severity": self.severity,
            "message": self.message,
            "keys": list(self.keys),
        }


Look = Callable[[Subject], Iterable[Found]]
Applies = Callable[[Subject], bool]
CompareFunction = Callable[[Judgment, Sequence[Judgment]], Iterable[Found]]
"""Looks at a judgement beside the others of the very same sentences, never at those alone."""


def _are_keys(keys: object) -> bool:
    """Whether they are keys in a row; a text alone would be read as its letters."""
    return isinstance(keys, (tuple, list)) and all(isinstance(key, str) for key in keys)


def _always(_: Subject) -> bool:
    return True


def _never(_: Subject) -> bool:
    return False


def _nothing(_: Subject) -> Iterable[Found]:
    return ()


@dataclass(frozen=True)
class Check:
    """A named, versioned look at one record.

    Attributes:
        id: such as ``overall_against_sentences``.
        version: counts up when it finds other things in any label.
        severity: of all that it finds.
        title: what it finds, in a few words.
        why: one sentence: why that is odd, and what to do about it.
        look: the function itself; yields what it sees, mostly nothing.
        applies: whether it has anything to look at in a record: the base of its rate.
        weight: what a record with such a finding gains in doubt, between 0 and 1.
    """

    id: str
    version: int
    severity: Severity
    title: str
    why: str
    look: Look
    applies: Applies
    weight: float

    def findings(self, subject: Subject) -> list[Finding]:
        """What it finds in a record that it applies to.

        Raises:
            UsageError: the function gave something else than :class:`Found` values.
        """
        return self._read(self.look(subject), f"record {subject.record.id!r:.80}")

    def _read(self, given: object, where: str) -> list[Finding]:
        """What the function gave, which a third party wrote."""
        if not isinstance(given, Iterable):
            raise UsageError(
                f"check {self.id!r} returned {type(given).__name__} for {where}: yield a "
                "labeler.Found(message, keys) for each thing that it finds, or return a list of "
                "them, which may be empty"
            )
        return [self._finding(found, where) for found in given]

    def _finding(self, found: object, where: str) -> Finding:
        if not isinstance(found, Found):
            raise UsageError(
                f"check {self.id!r} gave {type(found).__name__} for {where}: each thing that it "
                "finds is a labeler.Found(message, keys)"
            )
        if not isinstance(found.message, str) or not _are_keys(found.keys):
            raise UsageError(
                f"check {self.id!r} gave a Found for {where} with a message that is no text, or "
                "keys that are no tuple of texts: write labeler.Found('What is odd.', ('0a', 'b'))"
            )
        return Finding(self.id, self.severity, found.message, tuple(found.keys))


@dataclass(frozen=True)
class RepeatCheck(Check):
    """A look at one judgement beside the others of the very same sentences.

    It applies where the stream holds such others; in a record alone it finds nothing.

    Attributes:
        across: the function itself; yields what it sees in the first of its arguments.
    """

    across: CompareFunction

    def findings_across(self, judgement: Judgment, others: Sequence[Judgment]) -> list[Finding]:
        """What it finds in a judgement that has others beside it.

        Raises:
            UsageError: the function gave something else than :class:`Found` values.
        """
        where = f"a repeated judgement by {judgement.signature}"
        return self._read(self.across(judgement, others), where)


CHECKS: Catalog[Check] = Catalog("check")


def check(
    name: str,
    *,
    severity: Severity,
    title: str,
    why: str,
    version: int = 1,
    applies: Applies = _always,
    weight: float | None = None,
) -> Callable[[Look], Look]:
    """Register the decorated function as a check; see :class:`Check` for what is given."""

    def register(look: Look) -> Look:
        made = WEIGHTS[severity] if weight is None else weight
        CHECKS.add(name, Check(name, version, severity, title, why, look, applies, made))
        return look

    return register


def repeat_check(
    name: str,
    *,
    severity: Severity,
    title: str,
    why: str,
    version: int = 1,
    weight: float | None = None,
) -> Callable[[CompareFunction], CompareFunction]:
    """Register the decorated function as a :class:`RepeatCheck`; what is given is as there."""

    def register(across: CompareFunction) -> CompareFunction:
        made = WEIGHTS[severity] if weight is None else weight
        facts = (name, version, severity, title, why, _nothing, _never, made)
        CHECKS.add(name, RepeatCheck(*facts, across))
        return across

    return register


def select_checks(ids: str | Iterable[str | Check] | None = None) -> tuple[Check, ...]:
    """The checks of the given ids, in order; all of them where none are.

    An id is a name of the catalog, or ``package.module:name`` for a third party's check. One text
    may hold several ids, parted by commas. A check stands for itself.

    Raises:
        UnknownName: an id is in no catalog; the message names the nearest ones.
    """
    if ids is None:
        return tuple(CHECKS.values())
    wanted = ids.split(",") if isinstance(ids, str) else ids
    return tuple(dict.fromkeys(map(_find, wanted)))


def _find(wanted: str | Check) -> Check:
    if isinstance(wanted, Check):
        return wanted
    name = wanted.strip()
    try:
        found: object = CHECKS[name]
    except UnknownName as error:
        raise UnknownName(_unknown(name, error)) from error
    # A third party's name may lead to anything; its decorator has put the check in the catalog.
    for known in CHECKS.values():
        if found in (known, known.look, getattr(known, "across", None)):
            return known
    raise UnknownName(f"{name!r} is no check: decorate the function with @labeler.check(...)")


def _unknown(name: str, error: UnknownName) -> str:
    """What to do about a name; there are too many checks to list them in a message."""
    near = difflib.get_close_matches(name, CHECKS, n=3)
    hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ";"
    shown = f"'labeler audit --list' shows all {len(CHECKS)}"
    if error.__cause__ is None:
        own = "a check of your own is named package.module:name"
        return f"unknown check {name!r}{hint} {shown}, {own}"
    if isinstance(error.__cause__.__cause__, ModuleNotFoundError):
        where = "install the module, or put its folder on PYTHONPATH (PYTHONPATH=. labeler audit …)"
    else:
        where = "name the decorated function behind the colon, as package.module:name"
    return f"{error.__cause__}: {where}; {shown}"
