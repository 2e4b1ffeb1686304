"""Answers of judges that are functions, as mappings with the fields of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labeler.judges.task import Task
from support.labeled import output


def answer(
    support: Mapping[str, Sequence[str]],
    *,
    relevant: Sequence[str] = (),
    used: Sequence[str] = (),
    said: str = "",
) -> dict[str, Any]:
    """A label of the profile trace.

    Args:
        support: keys that support each response sentence; none for an unsupported one.
        relevant: keys of relevant document sentences.
        used: keys of used document sentences.
        said: every explanation.
    """
    found = output(relevant=relevant, utilized=used, support=support, explanation=said)
    return found.model_dump(mode="json")


def trusting(task: Task, said: str = "It is so.", **changes: Any) -> dict[str, Any]:
    """The label of a judge that trusts everything, with other values of some fields."""
    keys = task.example.document_keys()
    support = dict.fromkeys(task.example.response_keys(), keys)
    return answer(support, relevant=keys, used=keys, said=said) | changes
