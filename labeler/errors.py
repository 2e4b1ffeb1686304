"""The exception tree. Every error says what, where, what was got, what is allowed, and what to do.

LabelerError
├── UsageError            wrong call: unknown name, bad option, contradictory input (exit code 2)
│   ├── UnknownName       a catalog has no such entry; names the nearest ones
│   └── BadRow            an input row or line that cannot be read as an example
├── JudgeError            the judge gave no usable answer; carries a reason code
│   ├── UnusableAnswer    the same, with what was paid and broken (labeler.judges.judge)
│   └── FatalJudgeError   no record can succeed: stop the run (bad key, no such model)
│       └── RunPaused     the provider asks to wait longer than the run may
└── StoreError            a label store cannot be read or written, or was tampered
    └── UnstorableRecord  one record or failure that no store could keep; the others are saved
"""

from __future__ import annotations


class LabelerError(Exception):
    """Root of everything that this package raises on purpose."""


class UsageError(LabelerError):
    """The call cannot be carried out as it stands; changing it helps, repeating it does not."""


class UnknownName(UsageError):
    """A catalog was asked for a name that it does not hold."""


class BadRow(UsageError):
    """An input row cannot become an example.

    Attributes:
        reason: machine-readable code, such as ``invalid_json`` or ``missing_field``.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class JudgeError(LabelerError):
    """The judge gave no usable answer for one record.

    Attributes:
        reason: machine-readable code that the record's failure carries.
        attempts: how many requests were sent for the record.
    """

    def __init__(self, message: str, *, reason: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.reason = reason
        self.attempts = attempts


class FatalJudgeError(JudgeError):
    """The judge cannot answer any record (bad key, unknown model): the run must stop."""


class RunPaused(FatalJudgeError):
    """The provider asks to wait longer than the run may; running it again later goes on."""


class StoreError(LabelerError):
    """A label store cannot be opened, read or written, or its bytes were changed."""


class UnstorableRecord(StoreError):
    """One record or failure alone is at fault: too large, no JSON, or not sound."""


_KINDS = {
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """What a value is, in the words of JSON where it has any: ``a text``, ``null``, ``bytes``."""
    return _KINDS.get(type(value), type(value).__name__)
