"""Typical mistakes: each is told what is wrong and what to do instead, before anything is sent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import labeler
from labeler.errors import LabelerError
from labeler.version import install_command
from support.command import Command

EMBEDDED = "label rows.jsonl --judge embedded -o out.jsonl"
MODEL = "label rows.jsonl --judge openai:some-model -o out.jsonl"
KEYED = f"{MODEL} --base-url http://127.0.0.1:9/v1"

COMMANDS: dict[str, tuple[str, ...]] = {
    # Rows.
    "label": ("Missing argument", "--help"),
    "label nothing.jsonl --judge embedded": ("cannot read nothing.jsonl", "check the path"),
    "label other.jsonl --judge embedded": (
        "none of 2 rows has 'documents'",
        "--map response=answer",
    ),
    "label empty.jsonl --judge embedded": ("empty.jsonl holds no rows", "one JSON object a line"),
    f"{EMBEDDED} --preset ragaas": ("unknown preset 'ragaas'", "did you mean 'ragas'"),
    f"{EMBEDDED} --map question=quest": ("no row has 'quest'", "did you mean 'question'"),
    f"{EMBEDDED} --map quest=question": ("no field 'quest'", "did you mean 'question'"),
    "label labels.jsonl --judge embedded": ("a label record, not a row", "'labeler metrics'"),
    f"{EMBEDDED} --id nope": ("column 'nope' of the id (--id) is missing", "columns: id, domain"),
    f"{EMBEDDED} --splitter spacy": ("unknown splitter 'spacy'", "have: general"),
    # Where labels go.
    "label rows.jsonl --judge embedded -o rows.jsonl": ("is an input", "write to another file"),
    "label rows.jsonl --judge embedded -o out.csv": ("not .csv", "labeler metrics"),
    "label rows.jsonl --judge embedded -o none/out.jsonl": ("cannot write", "check the folder"),
    f"{EMBEDDED} --store rows.jsonl": ("is a file", "give a directory"),
    f"{EMBEDDED} --output-file o": ("No such option: --output-file", "--output"),
    # Judges.
    "label rows.jsonl --judge gpt-4o": ("unknown judge 'gpt-4o'", "such as openai:gpt-4o"),
    "label rows.jsonl --judge openaii:gpt-4o": ("openaii:gpt-4o", "did you mean 'openai'?"),
    "label rows.jsonl --judge embeded": ("unknown judge", "did you mean 'embedded'"),
    "label rows.jsonl --judge openai": ("needs --model", "--judge embedded works without one"),
    "label rows.jsonl --judge openai:": ("names no model", "write openai:MODEL"),
    "label rows.jsonl --judge replay": ("replay judge needs", "--recorded LABELS"),
    "label rows.jsonl --judge no_module:Judge": ("cannot import judge", "PYTHONPATH"),
    "label rows.jsonl --judges embedded,embedded": ("twice", "--repeat"),
    "label rows.jsonl --judges embedded,gpt-4o": ("unknown judge 'gpt-4o'", "openai:gpt-4o"),
    MODEL: ("needs a key", "OPENAI_API_KEY"),
    f"{EMBEDDED} --model some-model": ("takes no --model", "only a hosted model does"),
    f"{EMBEDDED} --profile referense": ("did you mean 'reference'", "auto, claims"),
    f"{MODEL} --base-url http://example.com/v1": ("in the clear", "--allow-http example.com"),
    f"{MODEL} --base-url example.com/v1": ("must start with https://", "api.openai.com"),
    f"{KEYED} --budget abc": ("US dollars", "such as 12.50"),
    f"{KEYED} --price 1": ("--price is '1'", "such as 0.25,2,0.025"),
    f"{KEYED} --header X=y": ("--header 'X'", "NAME=@VARIABLE"),
    f"{KEYED} --header X=@NOT_SET": ("no variable 'NOT_SET'",),
    f"{KEYED} --output-mode jsn": ("these settings: output_mode is one of auto, strict",),
    f"{KEYED} --timeout 0": ("these settings: timeout: Input should be greater than 0",),
    f"{KEYED} --temperature hot": ("'--temperature'", "a valid number"),
    f"{KEYED} --extra-body rows.jsonl": ("--extra-body rows.jsonl is no JSON",),
    f"{KEYED} --ca-file none.pem": ("--ca-file none.pem", "-----BEGIN CERTIFICATE-----"),
    f"{KEYED} --proxy user:pw@host": ("everyone can read a command line", "--proxy @VARIABLE"),
    f"{KEYED} --api-key sk-1": ("No such option: --api-key", "--api-key-command"),
    f"{KEYED} --prompt trace/v9": ("no prompt 'trace/v9'", "trace/v1"),
    f"{EMBEDDED} --engine spark": ("'--engine': 'spark' is not one of 'local', 'ray'",),
    f"{EMBEDDED} --concurrency 0": ("'--concurrency'", "greater than or equal to 1"),
    f"{EMBEDDED} --config bad.toml": ("unknown key 'modell' in [judge]", "did you mean 'model'"),
    # Other commands that ask a judge.
    "score rows.jsonl --judge embedded --criteria rubric_faithfulness": (
        "gives labels alone",
        "--judge PROVIDER:MODEL",
    ),
    "score rows.jsonl --model m --base-url http://127.0.0.1:9/v1 --criteria nope": (
        "unknown criterion 'nope'",
        "rubric_",
    ),
    "score rows.jsonl --model m --criteria rubric_faithfulness": ("needs a key", "OPENAI_API_KEY"),
    "similarity rows.jsonl --judge embedded": ("writes no questions", "--model"),
    "estimate rows.jsonl --judge embedded": ("has no price", "only hosted models"),
    "batch submit rows.jsonl": ("a batch needs --model",),
    # Labels.
    "metrics": ("name a label file or a store folder", "--list"),
    "metrics rows.jsonl": ("rows.jsonl:1: not a label record", "labeler label"),
    "metrics labels.jsonl --metrics adherance": ("did you mean 'adherence'", "metrics --list"),
    "metrics labels.jsonl --metrics no_module:metric": ("cannot import metric", "PYTHONPATH"),
    "metrics labels.jsonl --by domian": ("no row has a column 'domian'", "columns: domain"),
    "metrics labels.jsonl --level 95": ("level 95", "such as 0.95"),
    "metrics labels.jsonl -o m.xlsx": ("m.xlsx", ".csv, .parquet or .jsonl"),
    "metrics labels.jsonl labels.jsonl": ("the same file", "name each file once"),
    "check labels.jsonl": ("no gate is given", "--min adherence=0.9"),
    "check labels.jsonl adherence>=0.8": ("a gate is an option", "--min METRIC=NUMBER"),
    "check labels.jsonl --min adherence>=0.8": ("METRIC=NUMBER", "adherence=0.9"),
    "check labels.jsonl --min adherence=80": ("80 is no threshold", "from 0 to 1"),
    "check labels.jsonl --max-drop adherence=0.1": ("goes with --against",),
    "check rows.jsonl --min adherence=0.8": ("not a label record", "labeler label"),
    "compare labels.jsonl": ("sets of labels to compare: 1", "give 2"),
    "compare labels.jsonl labels.jsonl": ("compared with itself", "--b-trial"),
    "agree labels.jsonl": ("second label file", "--human"),
    "audit labels.jsonl --checks nope": ("unknown check 'nope'", "labeler audit --list"),
    "report labels.jsonl -o report.pdf": ("a report is a page", "report.html"),
    "report labels.jsonl": ("Missing option '--output'", "--help"),
    "store verify nowhere": ("no label store in nowhere",),
    "labl rows.jsonl": ("No such command 'labl'", "Did you mean 'label'"),
}
"""A command line, and parts of the message: what is wrong, then what to do."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows, labels, and files with a mistake."""
    folder = tmp_path_factory.mktemp("mistakes")
    rows = Path(__file__).parents[2] / "examples" / "rows.jsonl"
    shutil.copy(rows, folder / "rows.jsonl")
    labeler.label(rows, judge="embedded", progress=False).save(folder / "labels.jsonl")
    other = {"question": "q", "answer": "r", "texts": ["d"]}
    (folder / "other.jsonl").write_text((json.dumps(other) + "\n") * 2)
    (folder / "empty.jsonl").write_text("\n")
    (folder / "bad.toml").write_text('[judge]\nmodell = "m"\n')
    return folder


@pytest.mark.parametrize("line", COMMANDS)
def test_a_mistake_is_told_with_its_remedy(
    line: str, files: Path, tmp_path: Path, labeler_command: Command
) -> None:
    """Exit code 2, one short message, nothing on standard output, no file written."""
    for file in files.iterdir():
        shutil.copy(file, tmp_path)
    before = sorted(tmp_path.iterdir())
    code, out, err = labeler_command(*line.split())
    assert (code, out) == (2, "")
    for part in COMMANDS[line]:
        assert part in err
    assert len(err) < 500
    assert [path for path in sorted(tmp_path.iterdir()) if path.suffix] == before


def test_a_metric_of_another_profile_names_it(
    files: Path, monkeypatch: pytest.MonkeyPatch, labeler_command: Command
) -> None:
    """The labels have no value, for every row: a gate is missed, and says which profile has it."""
    monkeypatch.chdir(files)
    for line in ("check labels.jsonl --min claim_recall=0.8", "metrics labels.jsonl --metrics"):
        asked = f"{line} claim_recall" if line.endswith("--metrics") else line
        _, out, _ = labeler_command(*asked.split())
        assert "14 needs_reference; labels of --profile reference have what it needs" in out


PYTHON: dict[str, tuple[Callable[[labeler.Labels], object], str]] = {
    "a path for labels": (lambda _: labeler.metrics("nothing.jsonl"), "cannot read nothing.jsonl"),
    "an unknown judge": (
        lambda _: labeler.label([{"question": "q"}], judge="gpt-4o"),
        "such as openai:gpt-4o",
    ),
    "no key": (lambda _: labeler.OpenAIJudge("m"), "OPENAI_API_KEY"),
    "an unknown id": (lambda labels: labels["tide-gate-heigth"], "did you mean 'tide-gate-height'"),
    "an unknown metric": (lambda labels: labels.summary("adherance"), "did you mean 'adherence'"),
    "a metric that was not asked for": (
        lambda labels: labels.summary("adherence")["relevance"],
        "unknown metric 'relevance'",
    ),
    "a gate without a metric": (lambda labels: labels.check(), "no gate is given"),
    "a threshold in percent": (lambda labels: labels.check(adherence=80), "from 0 to 1"),
    "a file name for rows": (lambda _: labeler.label("nothing.jsonl", judge="embedded"), "nothing"),
    "a comparison with rows": (
        lambda labels: labels.compare([{"question": "q"}]),  # type: ignore[list-item]
        "outcome 1 is a dict, not a label: rows are labeled first",
    ),
    "names for paths": (
        lambda _: labeler.compare("a.jsonl", "b.jsonl"),  # type: ignore[arg-type]
        "read_labels",
    ),
}


@pytest.mark.parametrize("mistake", PYTHON)
def test_a_mistake_in_python_is_told_with_its_remedy(
    mistake: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of this library, short, with what to do."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    make, part = PYTHON[mistake]
    labels = labeler.load(files / "labels.jsonl")
    with pytest.raises(LabelerError, match=part) as caught:
        make(labels)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("installed", "source"),
    [
        (None, "rag-labeler[ray]"),
        ({"url": "file:///a/checkout", "dir_info": {"editable": True}}, "-e '/a/checkout[ray]'"),
        ({"url": "file:///a/it-1.whl", "archive_info": {}}, "'/a/it-1.whl[ray]'"),
        (
            {"url": "https://our.example/it.zip", "archive_info": {}},
            "@ https://our.example/it.zip'",
        ),
    ],
)
def test_an_extra_is_installed_from_where_the_package_came(
    installed: dict[str, object] | None, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a checkout, a wheel or an address, as pip has noted it; else by its name."""

    class Found:
        def read_text(self, _: str) -> str | None:
            return None if installed is None else json.dumps(installed)

    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Found())
    assert source in install_command("ray")
    assert install_command("ray").startswith("pip ")
