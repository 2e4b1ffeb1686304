"""A gate on the models that answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from labeler.comparing.gates import RecordValue


@dataclass(frozen=True)
class ModelVerdict:
    """The result of the gate that one model answered, the one asked for.

    Attributes:
        faults: other models and hosts that answered, in words; see
            :meth:`labeler.labels.answering.AnsweringModels.faults`.
    """

    faults: tuple[str, ...]
    demand: ClassVar[str] = "one model"
    group: ClassVar[None] = None
    label: ClassVar[None] = None
    value: ClassVar[None] = None
    records: ClassVar[tuple[RecordValue, ...]] = ()

    @property
    def passed(self) -> bool:
        """True if no other model or host answered."""
        return not self.faults

    @property
    def finding(self) -> str:
        """The result in words."""
        return "; ".join(self.faults) or "no other model or host is named"
