"""Configuration files: defaults of options, from the working directory or by name."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import openai  # noqa: F401 - before a test puts a module of its name into the way
import pytest
from typer import Context
from typer.main import get_command

from labeler.cli import app
from labeler.cli.config import _COMMANDS, _key, _options
from support.command import Command

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
EMBEDDED = '[judge]\njudge = "embedded"\nprofile = "claims"\n'


def judged_by(labeler_command: Command, *options: object) -> tuple[str, str]:
    """The schema that labels were made with, and the messages."""
    code, out, err = labeler_command("label", EXAMPLES, *options)
    assert code == 0, err
    signature = json.loads(out.splitlines()[0])["signature"]
    return str(signature["response_schema"]["name"]), err


def test_a_file_gives_defaults(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line wins, then the environment, labeler.toml, pyproject.toml; no parent's."""
    own = EMBEDDED.replace("[judge]", "[tool.labeler.judge]")
    (tmp_path / "pyproject.toml").write_text(own)
    schema, err = judged_by(labeler_command)
    assert (schema, "[tool.labeler]" in err) == ("label-claims/v1", True)
    assert judged_by(labeler_command, "--profile", "trace")[0] == "label-trace/v1"
    (tmp_path / "labeler.toml").write_text(EMBEDDED + '[run]\nstore = "ours"\n')
    (tmp_path / "pyproject.toml").write_text("[tool.labeler.nonsense]\n")
    monkeypatch.setenv("LABELER_STORE", "theirs")
    schema, err = judged_by(labeler_command)
    assert (schema, "labeler.toml" in err) == ("label-claims/v1", True)
    assert [(tmp_path / name).exists() for name in ("ours", "theirs")] == [False, True]
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert "claims" not in labeler_command("label", "--show-config")[1]
    Path("empty.toml").write_text("")
    code, _, err = labeler_command("label", EXAMPLES, "--config", "empty.toml")
    assert (code, "--config empty.toml has none of the tables [rows]" in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[judges]", "unknown table [judges]; did you mean 'judge'?"),
        ("[judge]\nmodell = 'm'", "unknown key 'modell' in [judge]; did you mean 'model'?"),
        ("[judge]\nconcurrency = 4", "unknown key 'concurrency' in [judge]; it belongs to [run]"),
        ("[run]\noutput = 'x'", "unknown key 'output'"),
        ("[run]\notel_events = 'rows.jsonl'", "files to write are named on the command line"),
        ("[gates]\njunit = 'x'", "files to write are named on the command line"),
        ("judge = 'embedded'", "'judge' must be a table: write [judge]"),
        ("[judge", "cannot be read as TOML"),
        ("a = " + "[" * 50_000, "cannot be read as TOML"),
        ("[run]\nconcurrency = 'many'", "Invalid value for '--concurrency'"),
        ("concurrency = 4", "'concurrency' stands outside of all tables; it belongs to [run]"),
        ("[run]\nconcurrency = true", "concurrency = true must be a text or a number"),
        ("[run]\nstore = ['../x']", """store = ["../x"] must be a text or a number"""),
        ("[run]\nretry_failed = 'yes'", 'retry_failed = "yes" must be true or false'),
        ("[rows]\nmap = 'documents=x'", 'map = "documents=x" must be a list of texts'),
        ("[rows]\nmap = {documents = 'x'}", "must be a list of texts"),
        ("[gates]\nmin = {'theirs:metric=0.5' = 1}", "must be a list of texts"),
    ],
)
def test_a_wrong_file_is_an_error(
    text: str, says: str, labeler_command: Command, tmp_path: Path
) -> None:
    """Whatever the command, before anything is read."""
    (tmp_path / "labeler.toml").write_text(text)
    code, _, err = labeler_command("label", EXAMPLES)
    assert (code, says in err) == (2, True), err


@pytest.mark.parametrize(
    ("text", "code"), [("tool = 3", 0), ("[tool]\nlabeler = 3", 2), ("[tool.other]\nx = 1", 0)]
)
def test_a_project_file_need_not_speak_of_labeler(
    text: str, code: int, labeler_command: Command, tmp_path: Path
) -> None:
    """What it says of other tools is not read; labeler's part must be a table."""
    (tmp_path / "pyproject.toml").write_text(text)
    found, _, err = labeler_command("label", EXAMPLES, "--judge", "embedded")
    assert (found, "[tool.labeler] must be a table, got 3" in err) == (code, code == 2), err


@pytest.mark.parametrize(
    "setting",
    [
        '[judge]\nbase_url = "http://127.0.0.1:9"',
        '[judge]\nallow_http = ["there"]',
        '[judge]\nproxy = "http://127.0.0.1:9"',
        '[judge]\nca_file = "theirs.pem"',
        '[judge]\nheader = ["X=@HOME"]',
        '[judge]\nquery = ["a=b"]',
        '[judge]\nextra_body = "body.json"',
        '[judge]\napi_key_command = "touch ran"',
        '[judge]\njudge = "theirs:Judge"',
        '[rows]\npreset = "theirs.module:preset"',
        '[gates]\nmin = ["theirs:metric=0.5"]',
        '[run]\njudges = "embedded,theirs:Judge"',
        '[run]\nstore = "/tmp/elsewhere"',
        '[run]\nstore = "../elsewhere"',
        '[run]\ncriteria = "theirs:criterion"',
        '[judge]\nprofile = "theirs:Profile.x"',
        '[judge]\njudge = "embedded:theirs:Judge"',
        '[judge]\nprompt = "theirs:prompt"',
        '[run]\nembedder_url = "http://127.0.0.1:9"',
        '[run]\nembedder = "theirs:Embedder"',
        # A provider's name, a metric's or nothing before or after the colon opens no door.
        *(f'[rows]\nsplitter = "{name}"' for name in ("ollama:x", "theirs:", "adherence:x")),
        *(f'[rows]\npreset = "{name}"' for name in ("openai:x", " theirs:x")),
        '[gates]\nmin = ["ollama:x=0.5"]',
        '[gates]\nmax_drop = ["mistral:x=0.1"]',
    ],
)
def test_a_found_file_neither_redirects_nor_runs(
    setting: str, labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cloned folder must not; the same file by --config may."""
    (tmp_path / "labeler.toml").write_text(setting)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("theirs", "ollama", "openai", "mistral", "adherence", "rubric_faithfulness"):
        (tmp_path / f"{name}.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    for command in (["label", EXAMPLES, "--judge", "embedded"], ["check", EXAMPLES]):
        code, _, err = labeler_command(*command)
        assert (code, "takes effect only with --config labeler.toml" in err) == (2, True), err
    assert not (tmp_path / "ran").exists()
    explicit = ("--show-config", "--config", "labeler.toml")
    assert labeler_command("label", *explicit)[0] == 0


def test_names_with_colons_that_import_nothing_stay_allowed(
    labeler_command: Command, tmp_path: Path
) -> None:
    """Models, columns and definitions of metrics, and a store in the folder."""
    (tmp_path / "labeler.toml").write_text(
        '[judge]\nmodel = "qwen3:8b"\n[rows]\nmap = ["question=dc:title"]\nid = "dc:id"\n'
        '[run]\nstore = "below/store"\njudges = "embedded,ollama:qwen3:8b"\n'
        '[gates]\nmin = ["adherence:set=0.5", "rubric_faithfulness:pass=0.5"]\n'
    )
    code, _, err = labeler_command("label", "--show-config")
    assert code == 0, err


def test_every_option_that_writes_a_file_is_for_the_command_line() -> None:
    """An option whose help speaks of a file either reads it, or no file can set it."""
    reads = {"ca_file", "extra_body", "recorded", "criteria", "against"}
    reads |= {"part_rows", "github", "prompt", "instructions"}  # github's is that of the runner
    root: Any = get_command(app)
    for name in (*_COMMANDS, "check", "score", "similarity"):
        options = _options(root.get_command(Context(root), name))
        assert {_key(one) for one in options if re.search(r"(?i)\bfile\b", str(one.help))} <= reads


def test_settings_of_hosted_models_are_idle_for_another_judge(
    labeler_command: Command, tmp_path: Path
) -> None:
    """On the command line they are refused, as is an address that would get another's key."""
    (tmp_path / "labeler.toml").write_text(
        '[judge]\nmodel = "m"\ntemperature = 0.5\n[run]\nbudget = 5\nconcurrency = 3\n'
    )
    _, err = judged_by(labeler_command, "--judge", "embedded")
    assert "without effect on --judge embedded: budget, model, temperature\n" in err
    code, _, err = labeler_command("label", EXAMPLES, "--judge", "embedded", "--budget", "7")
    assert (code, "judge embedded takes no --budget" in err) == (2, True)
    mistral = labeler_command("label", EXAMPLES, "--judge", "mistral:other")[2]
    assert "without effect on --judge mistral:other: model\n" in mistral
    assert "MISTRAL_API_KEY" in mistral
    address = '[judge]\njudge = "openai:m"\nbase_url = "http://127.0.0.1:9/v1"\n'
    (tmp_path / "own.toml").write_text(address)
    asked = ("label", "rows.jsonl", "--config", "own.toml", "--judge", "anthropic:m")
    code, _, err = labeler_command(*asked)
    assert (code, "--base-url of the configuration file would send the key" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ("", True),
        ("--judge openai:own", True),
        ("--judge openai:other", False),
        ("--model other", False),
        ("--judge mistral:own", False),
        ("--judge openai:other --price 3,4", True),
    ],
)
def test_the_price_of_a_file_is_that_of_its_model(
    options: str, known: bool, labeler_command: Command
) -> None:
    """Another model of the command line has another one, or none."""
    Path("labeler.toml").write_text('[judge]\nmodel = "own"\n[run]\nprice = "1,2"\n')
    code, out, err = labeler_command("estimate", EXAMPLES, *options.split())
    assert (code, "cost: unknown" in out) == (0, not known), err + out
    note = "the price in the configuration file is for openai:own: not used"
    assert (note in err) == (not known)


def test_gates_of_a_file(labeler_command: Command) -> None:
    """They are those of check; a definition of a metric is no import."""
    labeler_command("label", EXAMPLES, "--judge", "embedded", "-o", "labels.jsonl")
    Path("labeler.toml").write_text(
        '[gates]\nmin = ["adherence:ragbench=0.1"]\nmax = ["hallucination_rate=0.01"]\n'
        "max_undefined = 1\n"
    )
    code, out, err = labeler_command("check", "labels.jsonl")
    assert (code, out.count("passed by"), out.count("MISSED by")) == (1, 1, 1), out
    assert "labeler.toml" in err


@pytest.mark.parametrize(
    ("command", "setting", "given", "holds"),
    [
        (
            "check labels.jsonl",
            '[gates]\nmin = ["adherence=0.2", "adherence_fraction=0.1"]',
            "--min adherence=0.3 --min relevance=0",
            ("min", "adherence_fraction=0.1, adherence=0.3, relevance=0"),
        ),
        (
            "label --show-config",
            '[rows]\nmap = ["question=q", "documents=contexts"]',
            "--map question=other=column",
            ("map", "documents=contexts, question=other=column"),
        ),
    ],
)
def test_the_command_line_replaces_values_of_the_same_name(
    command: str, setting: str, given: str, holds: tuple[str, str], labeler_command: Command
) -> None:
    """Other values of a list in the file hold, and the command prints them all."""
    labeler_command("label", EXAMPLES, "--judge", "embedded", "-o", "labels.jsonl")
    Path("labeler.toml").write_text(setting)
    option, values = holds
    err = labeler_command(*command.split(), *given.split())[2]
    assert f"--{option} of labeler.toml and the command line: {values}\n" in err


def test_shown_configuration_is_one(labeler_command: Command, tmp_path: Path) -> None:
    """Read again, it changes nothing."""
    (tmp_path / "labeler.toml").write_text(EMBEDDED)
    _, shown, _ = labeler_command("label", "--show-config", "--concurrency", 3)
    assert "concurrency = 3  # commandline" in shown
    (tmp_path / "again.toml").write_text(shown)
    _, again, err = labeler_command("label", "--show-config", "--config", "again.toml")
    assert "again.toml" in err
    settings = [line.partition("  #")[0] for line in shown.splitlines()]
    assert [line.partition("  #")[0] for line in again.splitlines()] == settings


def test_quickstart_prints_the_next_commands_and_overwrites_nothing(
    labeler_command: Command, tmp_path: Path
) -> None:
    """A page runs them; its folder may have any name."""
    rows = tmp_path / "a demo" / "rows.jsonl"
    out = labeler_command("quickstart", "a demo")[1]
    assert shlex.split(out.splitlines()[-1])[:4] == ["cd", "a demo", "&&", "labeler"]
    rows.write_text("mine")
    code, _, err = labeler_command("quickstart", "a demo")
    assert (code, "never overwritten" in err, rows.read_text()) == (2, True, "mine")
