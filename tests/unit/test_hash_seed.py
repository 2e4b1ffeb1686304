"""The embedded judge in processes that iterate over sets of strings in another order."""

from __future__ import annotations

import subprocess
import sys

from wire.runs import settings

PROGRAM = """
from support.samples import keyed_example
from unit.test_embedded_claims import TOWER, judged
reference = ["The Kestrel Tower was opened in 1913, but ferries to the island leave hourly."]
for more in (".", "; ferries leave hourly.", ", ferries do not."):
    response = [f"The tall tower of Aldmoor costs 12 crowns{more}", "No."]
    example = keyed_example(documents=TOWER, response=response, reference=reference)
    reply = judged(example, "reference")
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
