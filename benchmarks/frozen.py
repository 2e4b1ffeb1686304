"""Compare present outputs with frozen digests of the outputs before a rebuilding.

    python benchmarks/frozen.py [--sets embedded-trace,…] [--keep FOLDER] [--write]

For RAGBench's 3,017 rows and ``examples/rows.jsonl``: labels, metrics, summaries, findings,
suspicion scores, the record view of ``show``, and request bodies, for every profile; and the power
of suspicion scores to find wrong verdicts. Names of versions, keys and signatures are left out: see
``RENAMED`` and ``DROPPED``. One digest covers one part of one set of labels. ``--keep`` writes the
lines under the digests, so that the folders of two commits can be compared with ``diff -r``.
Without ``--write`` the digests are compared with ``frozen.json`` and the exit code is 1 where one
differs.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import labeler
from audit_ragbench import KINDS, Planted, Ranked, figures, plant
from labeler.audit import Subject, examine, suspicion_score
from labeler.audit.auditing import SecondJudge
from labeler.cli import run
from labeler.judges.embedded import second_opinion
from labeler.labels.answers import judged_sentences
from labeler.labels.record import LabelRecord
from published import area, judged
from ragbench_data import ragbench_rows
from wire.provider import Provider

FROZEN = Path(__file__).with_suffix(".json")
EXAMPLES = Path(__file__).parents[1] / "examples" / "rows.jsonl"
PROFILES = ("trace", "claims", "reference")
RENAMED = {
    r"\blexical[-/]\d": "lexical",
    r"\bgeneral/\d": "general",
    r"\b(trace|claims|reference|retrieval|label)([a-z-]*)[/_-]v\d": r"\1\2",
    r"/\S*/rows\.jsonl\b": "rows.jsonl",
}
"""Names of versions, which one rebuilding changes once, and the folder of a run."""
DROPPED = {
    *("key", "version", "signature", "reply", "splitter", "answered", "hosts"),
    *("prompt_cache_key", "labeler_version", "checksum"),
}
"""Fields of JSON that name versions, keys and circumstances."""
WITNESS = {"second_opinion_disagrees", "general_makes_a_claim"}
"""Checks that compare a label with a second judge's."""
Json = Any


def command(*arguments: object) -> str:
    """Run a command in this process and return its standard output."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["labeler", *map(str, arguments)]
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", argv),
    ):
        code = run()
    if code not in {0, 1}:  # 1: some rows have no label
        raise SystemExit(f"{' '.join(argv)} ended with {code}: {err.getvalue()}")
    return out.getvalue()


def neutral(text: str) -> str:
    """Return a text without names of versions."""
    for old, new in RENAMED.items():
        text = re.sub(old, new, text)
    return text


def without(value: Json) -> Json:
    """Return JSON without the dropped fields."""
    if isinstance(value, dict):
        return {name: without(part) for name, part in value.items() if name not in DROPPED}
    return [without(part) for part in value] if isinstance(value, list) else value


def as_line(value: Json) -> str:
    """Return JSON as a comparable line."""
    return neutral(json.dumps(without(value), ensure_ascii=False, sort_keys=True))


# -- sets of labels ----------------------------------------------------------------------------


def write_rows(folder: Path) -> Path:
    """Write all rows with ids of their own, and with a reference where they have none."""
    path = folder / "rows.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(ragbench_rows()):
            example = {
                "id": f"{row['dataset_name']}:{row['id']}:{row['generation_model_name']}",
                "question": row["question"],
                "documents": row["documents"],
                "response": row["response"],
                "reference": row["documents"][number % len(row["documents"])][:300],
                "dataset": row["dataset_name"],
            }
            file.write(json.dumps(example) + "\n")
        file.write(EXAMPLES.read_text(encoding="utf-8"))
    return path


def published(_: Path, folder: Path) -> Path:
    """Import the published labels."""
    out = folder / "published.jsonl"
    rows = folder / "published-rows.jsonl"
    with rows.open("w", encoding="utf-8") as file:
        for row in ragbench_rows():
            file.write(json.dumps(row) + "\n")
    command("import", "ragbench", rows, "-o", out)
    return out


def embedded(profile: str) -> Callable[[Path, Path], Path]:
    """Return what labels all rows with the embedded judge."""

    def label(rows: Path, folder: Path) -> Path:
        out = folder / f"embedded-{profile}.jsonl"
        asked = ("--judge", "embedded", "--profile", profile, "--store", folder / profile)
        command("label", rows, *asked, "-o", out)
        return out

    return label


SETS: dict[str, Callable[[Path, Path], Path]] = {
    "published": published,
    **{f"embedded-{profile}": embedded(profile) for profile in PROFILES},
}


# -- parts of a set ----------------------------------------------------------------------------


def labels(path: Path) -> Iterator[str]:
    """Yield the labels."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield as_line(json.loads(line))


def metrics(path: Path) -> Iterator[str]:
    """Yield each metric of each record, one a line, by id."""
    rows = command("metrics", path, "--rows", "--metrics", "all").splitlines()
    for row in map(json.loads, rows):
        for metric, ratio in sorted(row.get("metrics", row).items()):
            yield as_line([row["id"], metric, ratio])


def summaries(path: Path) -> Iterator[str]:
    """Yield each row of the summaries of all metrics, pooled and by data set."""
    for how in ((), ("--by", "dataset" if "embedded" in path.name else "dataset_name")):
        for row in json.loads(command("metrics", path, "--metrics", "all", "--json", *how)):
            yield as_line(row)


def read(path: Path) -> list[LabelRecord]:
    """Return the labels of a file."""
    return [one for one in labeler.api.read_labels(path) if isinstance(one, LabelRecord)]


def suspicions(path: Path) -> Iterator[str]:
    """Yield the findings, the suspicion score of each record, and that of each verdict."""
    for record in read(path):
        found = [one for one in examine(record)[0] if one.check not in WITNESS]
        yield as_line([record.id, suspicion_score(found)])
        for one in found:
            yield as_line([record.id, one.check, list(one.keys), one.message])
        for entry in record.label.sentence_support_information:
            key = entry.response_sentence_key
            yield as_line([record.id, key, suspicion_score(f for f in found if key in f.keys)])


def views(path: Path) -> Iterator[str]:
    """Yield what ``show`` prints of a record, without its signature."""
    one = path.with_name("one.jsonl")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["kind"] == "label":
                one.write_text(line, encoding="utf-8")
                shown = command("show", one, record["example"]["id"])
                yield as_line(re.sub(r"(?ms)^ +judge:.*?^\s*$", "", shown))


PARTS: dict[str, Callable[[Path], Iterator[str]]] = {
    "labels": labels,
    "metrics": metrics,
    "summaries": summaries,
    "suspicions": suspicions,
    "views": views,
}


# -- requests ----------------------------------------------------------------------------------


def requests(rows: Path, folder: Path) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the bodies that a hosted judge is sent, for each profile and for blind relevance."""
    for name, options in {
        **{profile: ["--profile", profile] for profile in PROFILES},
        "blind": ["--relevance", "blind"],
        "schema": ["--output-mode", "schema"],
        "prompt": ["--output-mode", "prompt"],
    }.items():
        modes = {"schema": ("schema",), "prompt": ("prompt",)}.get(name, ("strict",))
        with Provider(modes=modes) as provider, mock.patch.dict("os.environ", OPENAI_API_KEY="k"):
            where = ("--base-url", f"{provider.url}", "--store", folder / f"requests-{name}")
            judge = ("--judge", "openai:m", "--temperature", 0, "--seed", 7)
            command("label", rows, *judge, *where, *options, "-o", folder / "asked.jsonl")
            yield f"requests-{name}", sorted(as_line(call.body) for call in provider.calls)


# -- the power of suspicion scores -------------------------------------------------------------


def powers(truth: Iterable[LabelRecord]) -> Iterator[tuple[str, Json]]:
    """Yield how well suspicion finds wrong verdicts: AUROC over records, and over verdicts.

    Wrong verdicts are planted errors, and those of the embedded judge that published labels
    contradict; the witness is the embedded judge, so it says nothing about the latter.
    """
    records = list(truth)
    for name, planter in KINDS.items():
        got = figures(records, planter)
        yield f"{name}: found", got.found[0]
        yield f"{name}: AUROC of records", got.ranked[0]
        yield f"{name}: AUROC of records, with the witness", got.ranked[1]
        for title, second in (("", lambda _: None), (", with the witness", second_opinion)):
            rows = list(verdicts(plant(records, planter), second))
            yield f"{name}: AUROC of verdicts{title}", area(rows)
    made = {one.id: one for one in judged(records)[0]}
    wrong = [
        (made[one.id], one.label.overall_supported != made[one.id].label.overall_supported)
        for one in records
    ]
    yield "embedded judge: AUROC of records", area([Ranked(doubt(one), w) for one, w in wrong])
    rows = [
        Ranked(doubt(made[one.id], key), supported[0] != supported[1])
        for one in records
        for key, supported in both_verdicts(one, made[one.id])
    ]
    yield "embedded judge: AUROC of verdicts", area(rows)


def verdicts(planted: Iterable[Planted], second: SecondJudge) -> Iterator[Ranked]:
    """Yield the suspicion of one verdict of each label, before and after an error was planted."""
    for one in planted:
        for record, wrong in ((one.before, False), (one.after, True)):
            subject = Subject(record, second(record))
            found = [f for f in examine(record, second(record))[0] if one.key in f.keys]
            yield Ranked(suspicion_score(found, subject.disagreements.get(one.key, 0.0)), wrong)


def doubt(record: LabelRecord, key: str | None = None) -> float:
    """Return the suspicion score of a label, or of one verdict of it."""
    found = examine(record)[0]
    return suspicion_score(one for one in found if key is None or key in one.keys)


def both_verdicts(
    truth: LabelRecord, judged: LabelRecord
) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Yield the two verdicts on each response sentence that both labels judge."""
    true = judged_sentences(truth.label)
    for key, entry in judged_sentences(judged.label).items():
        if key in true:
            yield key, (bool(true[key].fully_supported), bool(entry.fully_supported))


# -- all of it ---------------------------------------------------------------------------------


def digest(lines: Iterable[str], kept: Path | None) -> str:
    """Return the number of lines and their digest; also write them into a file."""
    count, total = 0, hashlib.sha256()
    with gzip.open(kept, "wt") if kept else contextlib.nullcontext(None) as file:
        for line in lines:
            count += 1
            total.update(f"{line}\n".encode())
            if file:
                file.write(f"{line}\n")
    return f"{count} {total.hexdigest()[:16]}"


def measured(folder: Path, keep: Path | None, sets: Iterable[str]) -> Iterator[tuple[str, Json]]:
    """Yield each part's name and digest."""

    def named(name: str, lines: Iterable[str]) -> tuple[str, str]:
        return name, digest(lines, keep and keep / f"{name.replace('/', '-')}.gz")

    rows = write_rows(folder)
    for name in sets:
        if name in SETS:
            path = SETS[name](rows, folder)
            for part, lines in PARTS.items():
                yield named(f"{name}/{part}", lines(path))
    if "requests" in sets:
        for name, bodies in requests(rows, folder):
            yield named(name, bodies)
    if "powers" in sets:
        yield from powers(read(published(rows, folder)))


def main() -> int:
    """Compute, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", help=f"{', '.join(SETS)}, requests, powers; by default all")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the compared lines")
    parser.add_argument("--write", action="store_true", help="replace the frozen digests")
    options = parser.parse_args()
    if not any(True for _ in ragbench_rows()):
        print("no RAGBench rows here: nothing was compared")
        return 0
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    sets = options.sets.split(",") if options.sets else [*SETS, "requests", "powers"]
    frozen = json.loads(FROZEN.read_text()) if FROZEN.exists() else {}
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measured(Path(folder), options.keep, sets):
            equal = frozen.get(name) == value
            different += not equal
            print(f"{'equal' if equal else 'DIFFERENT':11}{name}: {value}", flush=True)
            if options.write:
                frozen[name] = value
    if options.write:
        FROZEN.write_text(json.dumps(frozen, indent=1) + "\n")
        return 0
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
