"""Scores records with ragchecker against a given server; runs in ragchecker's own environment.

    python ragchecker_run.py --url URL --records RECORDS --out OUT --form all

It writes what the other runs write. All its metrics come from one run over the records; those that
are named are kept. It has no limit of requests in flight: their number is the size of a batch.
"""

# mypy: disable-error-code="import-not-found"
# ragchecker is installed in an environment of its own only.

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched when litellm is imported

NAMES = {
    "faithfulness": "faithfulness",
    "context-precision": "context_precision",
    "context-recall": "claim_recall",
    "noise-sensitivity": "noise_sensitivity_in_relevant",
    "hallucination": "hallucination",
}


def score_rows(rows: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """``RAGChecker.evaluate`` with all metrics."""
    from ragchecker import RAGChecker, RAGResults  # noqa: PLC0415 - takes half a minute
    from ragchecker.metrics import all_metrics  # noqa: PLC0415

    results = RAGResults.from_dict({"results": [example(row) for row in rows]})
    checker = RAGChecker(
        extractor_name=f"openai/{options.model}",
        checker_name=f"openai/{options.model}",
        extractor_api_base=options.url,
        checker_api_base=options.url,
        openai_api_key="none",
        batch_size_extractor=options.concurrency,
        batch_size_checker=options.concurrency,
    )
    began, cpu, ended_by = time.perf_counter(), time.process_time(), None
    try:
        checker.evaluate(results, all_metrics)
    except Exception as error:  # noqa: BLE001 - whatever the framework raises is the finding
        ended_by = type(error).__name__
    whole = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    names = [NAMES[name] for name in options.metrics.split(",")]
    lines = [
        {
            "id": one.query_id,
            "values": {name: (one.metrics or {}).get(name) for name in names},
            "errors": {},
        }
        for one in results.results
    ]
    return [{**whole, "ended_by": ended_by}, *lines]


def example(row: dict[str, Any]) -> dict[str, Any]:
    """A record as ragchecker reads it."""
    texts = enumerate(row["documents"])
    return {
        "query_id": row["id"],
        "query": row["question"],
        "gt_answer": row["reference"],
        "response": row["response"],
        "retrieved_context": [{"doc_id": str(place), "text": text} for place, text in texts],
    }


def main() -> None:
    """Read, score, write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--form", choices=["all"], required=True)
    parser.add_argument("--timeout", type=float, help="nothing: it has no such setting")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--metrics", default=",".join(NAMES))
    parser.add_argument("--model", default="gpt-4o-mini")
    parser.add_argument("--threshold", type=float, help="nothing: its metrics have none")
    parser.add_argument("--keep", action="store_true", help="nothing: it keeps no answers")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.records.read_text(encoding="utf-8").splitlines()]
    lines = score_rows(rows, options)
    options.out.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
