"""Answers of judges that are functions, as mappings with the fields of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


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
    return {
        "relevance_explanation": said,
        "all_relevant_sentence_keys": list(relevant),
        "overall_supported_explanation": said,
        "overall_supported": all(support.values()),
        "sentence_support_information": [
            {
                "response_sentence_key": key,
                "explanation": said,
                "supporting_sentence_keys": list(keys),
                "fully_supported": bool(keys),
            }
            for key, keys in support.items()
        ],
        "all_utilized_sentence_keys": list(used),
    }
