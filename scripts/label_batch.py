"""Label every JSON Lines file of a folder; after an interruption, run it again to continue.

    python scripts/label_batch.py ROWS_FOLDER LABELS_FOLDER [MODEL]

Without a model the embedded judge labels; with one, an OpenAI-compatible server is asked, with the
key in OPENAI_API_KEY. Copy this file and change it.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import labeler


def main(rows: Path, labels: Path, model: str | None = None) -> int:
    """Write one label file for each row file, and say how each went."""
    if rows.resolve() == labels.resolve():
        sys.exit("give the labels a folder of their own: they would replace the rows")
    if model and "OPENAI_API_KEY" not in os.environ:
        sys.exit("set OPENAI_API_KEY, or leave the model out to use the embedded judge")
    judge = (
        labeler.OpenAIJudge(model, api_key=os.environ["OPENAI_API_KEY"])
        if model
        else labeler.EmbeddedJudge()
    )
    labels.mkdir(parents=True, exist_ok=True)
    failed = 0
    for file in sorted(rows.glob("*.jsonl")):
        # All files share one store: no row is ever paid for twice.
        outcomes = list(labeler.iter_labels(file, judge=judge, store=labels / "store"))
        labeler.api.write_labels(outcomes, labels / file.name)
        kinds = Counter(outcome.kind for outcome in outcomes)
        print(f"{file.name}: {kinds['label']} labels, {kinds['failure']} failures", flush=True)
        failed += kinds["failure"]
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
