"""Answers of judges that are functions, as mappings with the fields of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
