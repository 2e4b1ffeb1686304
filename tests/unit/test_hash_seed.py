"""The embedded judge in processes that iterate over sets of strings in another order."""

from __future__ import annotations

import subprocess
import sys

from wire.runs import settings

PROGRAM = """
from unit import test_embedded_claims, test_judge_embedded
print(test_judge_embedded.probabilities(
    test_judge_embedded.example_of(["The tall tower of Aldmoor costs 12 crowns.", "No."])
))
print(test_embedded_claims.compared(
    ["The tall tower of Aldmoor costs 12 crowns; ferries leave hourly."],
    ["The Kestrel Tower was opened in 1913, but ferries to the island leave hourly."],
).model_dump_json())
reply = test_judge_embedded.judged(
    test_judge_embedded.example_of(["The tall tower of Aldmoor costs 12 crowns, ferries do not."])
)
print(reply.answer.model_dump_json(), reply.scores.model_dump_json())
"""


def test_labels_do_not_depend_on_the_hash_seed() -> None:
    """Claims and probabilities included."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=settings() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
