"""The commonest mistakes on the command line, and the files that they are made with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import labeler

ROWS = Path(__file__).parents[2] / "examples" / "rows.jsonl"
EMBEDDED = "label rows.jsonl --judge embedded -o out.jsonl"
MODEL = "label rows.jsonl --judge openai:some-model -o out.jsonl"
KEYED = f"{MODEL} --base-url http://127.0.0.1:9/v1"

MISTAKES = [
    # Rows.
    "label",
    "label nothing.jsonl --judge embedded",
    "label other.jsonl --judge embedded",
    "label empty.jsonl --judge embedded",
    f"{EMBEDDED} --preset ragaas",
    f"{EMBEDDED} --map question=quest",
    f"{EMBEDDED} --map quest=question",
    "label labels.jsonl --judge embedded",
    f"{EMBEDDED} --id nope",
    f"{EMBEDDED} --splitter spacy",
    # Where labels go.
    "label rows.jsonl --judge embedded -o rows.jsonl",
    "label rows.jsonl --judge embedded -o out.csv",
    "label rows.jsonl --judge embedded -o none/out.jsonl",
    f"{EMBEDDED} --store rows.jsonl",
    f"{EMBEDDED} --output-file o",
    # Judges.
    "label rows.jsonl --judge gpt-4o",
    "label rows.jsonl --judge openaii:gpt-4o",
    "label rows.jsonl --judge embeded",
    "label rows.jsonl --judge openai",
    "label rows.jsonl --judge openai:",
    "label rows.jsonl --judge replay",
    "label rows.jsonl --judge no_module:Judge",
    "label rows.jsonl --judges embedded,embedded",
    MODEL,
    f"{EMBEDDED} --model some-model",
    f"{EMBEDDED} --profile referense",
    f"{MODEL} --base-url http://example.com/v1",
    f"{MODEL} --base-url example.com/v1",
    f"{KEYED} --budget abc",
    f"{KEYED} --price 1",
    f"{KEYED} --header X=y",
    f"{KEYED} --header X=@NOT_SET",
    f"{KEYED} --output-mode jsn",
    f"{KEYED} --timeout 0",
    f"{KEYED} --temperature hot",
    f"{KEYED} --extra-body rows.jsonl",
    f"{KEYED} --ca-file none.pem",
    f"{KEYED} --proxy user:pw@host",
    f"{KEYED} --api-key sk-1",
    f"{KEYED} --prompt trace/v9",
    f"{EMBEDDED} --engine spark",
    f"{EMBEDDED} --concurrency 0",
    f"{EMBEDDED} --config bad.toml",
    # Other commands that ask a judge.
    "score rows.jsonl --judge embedded --criteria rubric_faithfulness",
    "score rows.jsonl --model m --base-url http://127.0.0.1:9/v1 --criteria nope",
    "similarity rows.jsonl --judge embedded --embedder openai:e --embedder-url http://127.0.0.1:9/v1",
    "estimate rows.jsonl --judge embedded",
    "batch submit rows.jsonl",
    # Labels.
    "metrics",
    "metrics rows.jsonl",
    "metrics labels.jsonl --metrics adherance",
    "metrics labels.jsonl --metrics no_module:metric",
    "metrics labels.jsonl --by domian",
    "metrics labels.jsonl --level 95",
    "metrics labels.jsonl -o m.xlsx",
    "metrics labels.jsonl labels.jsonl",
    "check labels.jsonl",
    "check labels.jsonl adherence>=0.8",
    "check labels.jsonl --min adherence>=0.8",
    "check labels.jsonl --min adherence=80",
    "check labels.jsonl --max-drop adherence=0.1",
    "compare labels.jsonl",
    "compare labels.jsonl labels.jsonl",
    "agree labels.jsonl",
    "audit labels.jsonl --checks nope",
    "report labels.jsonl -o report.pdf",
    "store verify nowhere",
    "labl rows.jsonl",
    # Options of other judges, in pairs that exclude each other, without a value, or twice.
    f"{EMBEDDED} --seed 7",
    f"{EMBEDDED} --budget 5",
    "label rows.jsonl --judge replay --price 1,2",
    "label rows.parquet --judge embedded --engine ray",
    "label rows.parquet --judge embedded --engine ray -o x.jsonl",
    "label rows.parquet --judge embedded --engine ray -o x --repeat 2",
    "label rows.jsonl --seed x",
    "label rows.jsonl --store=",
    "label rows.jsonl -o a --output b",
    "label rows.jsonl --judge a --judge b",
    "metrics labels.jsonl --rows --json",
    "metrics labels.jsonl --sed",
    "metrics labels.jsonl --metrics a --metrics=b",
    "metrics --list --metrics relevence",
    "score rows.jsonl --criteria a --criteria b --criteria c",
    "batch cancel",
    "import frob",
    "prompt --schema x",
    # Files.
    "label text.jsonl --judge embedded",
    "label sheet.xlsx --judge embedded",
    f"{EMBEDDED} --config broken.toml",
    f"{EMBEDDED} --config missing.toml",
    f"{EMBEDDED} --workers 4",
    "metrics cut.jsonl",
    "agree labels.jsonl --human unjudged.jsonl",
    "show labels.jsonl nope",
    "certify labels.jsonl",
    "thresholds labels.jsonl --human missing.jsonl",
]
"""Command lines, each with one mistake."""


def write_files(folder: Path) -> None:
    """Write rows, labels, and files with a mistake."""
    shutil.copy(ROWS, folder / "rows.jsonl")
    labels = folder / "labels.jsonl"
    labeler.label(ROWS, judge="embedded", store=labeler.MemoryStore(), progress=False).save(labels)
    other = json.dumps({"question": "q", "answer": "r", "texts": ["d"]})
    row = {"question": "q", "documents": "d", "response": "r"}
    texts = {
        "other.jsonl": f"{other}\n{other}\n",
        "empty.jsonl": "\n",
        "text.jsonl": json.dumps(row),
        "sheet.xlsx": "PK\x03\x04",
        "cut.jsonl": labels.read_text(encoding="utf-8")[:300],
        "unjudged.jsonl": '{"id": "r1"}\n',
        "bad.toml": '[judge]\nmodell = "m"\n',
        "broken.toml": '[judge\nmodel = "m"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
