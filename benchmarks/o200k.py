"""Tokens of o200k_base, by the vocabulary that LiteLLM brings; nothing of it is in this package."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

_COUNT = """
import json, os, sys
import litellm
os.environ["TIKTOKEN_CACHE_DIR"] = os.path.join(
    os.path.dirname(litellm.__file__), "litellm_core_utils", "tokenizers")
import tiktoken
encoding = tiktoken.get_encoding("o200k_base")
texts = json.load(sys.stdin)
print(json.dumps([len(encoding.encode(one, disallowed_special=())) for one in texts]))
"""


def tokens(python: str, texts: Sequence[str]) -> list[int]:
    """Count the tokens of texts, of o200k_base."""
    found = subprocess.run(
        [python, "-c", _COUNT], input=json.dumps(texts), capture_output=True, text=True, check=True
    )
    counts: list[int] = json.loads(found.stdout)
    return counts


def words(value: object) -> str:
    """Join all texts of a request, names of fields left out, those of questions included."""
    if isinstance(value, dict):
        return " ".join(
            f"{key} {words(one)}" if key not in _FIELDS else words(one)
            for key, one in value.items()
            if key not in {"model", "type", "path"}
        )
    if isinstance(value, list):
        return " ".join(map(words, value))
    return "" if value is None else str(value)


_FIELDS = frozenset({"input", "state", "questions", "instructions", "criteria", "name", "choices",
                     "value", "description"})  # fmt: skip
