"""Names in catalogs, and packages that add to them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import pytest

from labeler import extensions, version
from labeler.api import label
from labeler.calculators.registry import COLLECTED, METRICS
from labeler.catalog import Catalog
from labeler.cli.label import ENGINES
from labeler.data.formats import READERS
from labeler.errors import ExtensionError, UnknownName, UsageError
from labeler.judges.options import PROVIDERS
from labeler.labels.record import RECORDS
from labeler.store import MemoryStore
from support.command import Command
from support.doc_blocks import blocks
from support.labeled import record

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
ROWS = """How long is the quay?
The quay is 90 m long.
The quay is 90 m long.
It is made of oak.

Who built it?
Ann Smith of the old harbour town built it in 1901.
Ann Smith of the old harbour town built it in 1901."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the example is installed."""
    folder = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)], check=True)
    return folder


COMMANDS = {
    "label harbour.faq --judge harbour -o labels.jsonl": "",
    "metrics labels.jsonl --metrics first_supported --json": '"mean": 1.0',
    "metrics --list": "first_supported of labeler-harbour 0.1.0",
    "audit labels.jsonl --checks much_on_one_sentence": "11 words rest on one sentence",
    "count harbour.faq": "2",
    "--help": "Count the rows of a file.",
}
PROGRAM = """
import sys
from labeler.cli import run
for line in sys.argv[1:]:
    sys.argv = ["labeler", *line.split()]
    code = run()
    print("\\n===", code, flush=True)
"""


def test_an_installed_package_is_used_by_name(installed: Path, tmp_path: Path) -> None:
    """Its judge, format, metric, check and command, as the page says."""
    (tmp_path / "harbour.faq").write_text(ROWS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *COMMANDS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{installed}", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    )
    for shown, printed in zip(COMMANDS.values(), done.stdout.split("=== 0\n"), strict=False):
        assert shown in printed, done.stdout + done.stderr
    assert done.stdout.count("=== 0\n") == len(COMMANDS), done.stderr


def test_the_page_shows_the_package() -> None:
    """Each part on the page is a part of the package."""
    files = [EXAMPLE / "pyproject.toml", EXAMPLE / "labeler_harbour" / "__init__.py"]
    texts = [file.read_text(encoding="utf-8") for file in files]
    shown = blocks(ROOT / "docs" / "extend.md")
    parts = [one.body for one in shown if one.name == "test_the_page_shows_the_package"]
    assert len(parts) == 6
    assert all(any(part in text for text in texts) for part in parts)


Declare = Callable[[str, str], None]


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Declare]:
    """Declare entry points of a package that is installed for this test."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def clear() -> None:
        extensions.offered.cache_clear()
        extensions._declared.cache_clear()

    def declare(package: str, points: str) -> None:
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(points)
        clear()

    yield declare
    clear()


@pytest.mark.parametrize(
    "target", ["missing_module:Judge", "math:no_such_name", "broken:Judge", "leaving:x", "taken:x"]
)
def test_a_package_that_cannot_load_is_named_when_it_is_used(
    declared: Declare, target: str, tmp_path: Path
) -> None:
    """With its version, what it declares and the fault; other names still work."""
    (tmp_path / "broken.py").write_text("raise RuntimeError('no licence')")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)")
    (tmp_path / "taken.py").write_text(
        "from labeler.judges.judge import JUDGES\nJUDGES.add('openai', 'x:y')"
    )
    declared("bad-package", f"[labeler.judges]\nbroken = {target}\n")
    catalog: Catalog[object] = Catalog("judge", group="judges")
    catalog.add("own", object())
    assert catalog["own"]
    with pytest.raises(ExtensionError) as error:
        catalog["broken"]
    assert all(part in str(error.value) for part in ("bad-package 1.0", target, "uninstall"))


@pytest.mark.parametrize("catalog", [METRICS, PROVIDERS, READERS, COLLECTED, RECORDS])
def test_an_entry_of_a_wrong_type_is_named(declared: Declare, catalog: Catalog[object]) -> None:
    """With its package and both types; nothing else of the group is harmed."""
    declared("odd-package", f"[labeler.{catalog.group}]\nodd = math:pi\n")
    with pytest.raises(ExtensionError, match=r"odd-package 1\.0 .*it is a float, not a"):
        catalog["odd"]
    assert catalog.every()


def test_a_reader_that_fails_is_named(declared: Declare, tmp_path: Path) -> None:
    """With the file and the format."""
    kinds = {"odd": "1 / 0", "odder": "5", "oddest": "[{'question': 'q'}]"}
    declared("reading", "[labeler.rows]\n" + "".join(f"{odd} = {odd}:read\n" for odd in kinds))
    for odd, rows in kinds.items():
        (tmp_path / f"{odd}.py").write_text(f"def read(name):\n    return {rows}\n")
        (tmp_path / f"rows.{odd}").write_text("x")
        with pytest.raises(UsageError, match=rf"rows\.{odd}: format '{odd}' (failed|gave)"):
            label(str(tmp_path / f"rows.{odd}"), judge="embedded", store=MemoryStore())


@pytest.mark.parametrize(
    ("group", "fault"),
    [("pending", "1 / 0"), ("pending", "return 7"), ("engines", "exit(0)"), ("rows", "exit(0)")],
)
def test_code_of_a_package_that_fails_in_a_run_is_named(
    declared: Declare, labeler_command: Command, tmp_path: Path, group: str, fault: str
) -> None:
    """It ends neither with a traceback nor silently."""
    module = f"{group}{len(fault)}"
    (tmp_path / f"{module}.py").write_text(f"def x(*given):\n    {fault}\n")
    declared("failing-package", f"[labeler.{group}]\nending = {module}:x\n")
    Path("rows.ending").touch()
    more = ["--engine", "ending"] if group == "engines" else ["--store", tmp_path / "s"]
    rows = "rows.ending" if group == "rows" else ROOT / "examples/rows.jsonl"
    code, _, err = labeler_command("label", rows, "--judge", "embedded", "-o", "out", *more)
    ENGINES._entries.pop("ending", None)  # no other test has it
    assert (code, module in err) == (2, True), err


def test_damaged_metadata_of_a_package_harm_no_other(
    declared: Declare, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its entry points are left out with a warning; one without a name is named by its place."""
    declared("cut-off", "[labeler.judges]\ncut\n")
    declared("nameless", "[labeler.judges]\nnone = math:no_such_name\n")
    (tmp_path / "nameless-1.0.dist-info" / "METADATA").unlink()
    with pytest.raises(ExtensionError, match=f"without metadata in {re.escape(str(tmp_path))}"):
        Catalog[object]("judge", group="judges")["none"]
    assert "the entry points of cut-off 1.0 cannot be read" in caplog.text


def test_the_first_of_two_packages_has_a_name(declared: Declare) -> None:
    """In alphabetical order, whichever was installed first; own entries come before both."""
    declared("zebra", "[labeler.judges]\nsame = math:pi\n")
    declared("aardvark", "[labeler.judges]\nsame = math:e\nopen = math:pi\n")
    catalog: Catalog[object] = Catalog("judge", group="judges")
    catalog.add("open", "math:tau")
    assert catalog["same"] == pytest.approx(2.718, abs=0.001)
    assert catalog["open"] == pytest.approx(6.283, abs=0.001)


def test_names_at_the_top_may_come_from_a_package(declared: Declare) -> None:
    """As ``labeler.NAME``, except for a name of our own; unknown ones stay attribute errors."""
    import labeler as top

    declared("names", "[labeler.names]\nharbour_pi = math:pi\nestimate = math:e\n")
    assert top.harbour_pi == pytest.approx(3.1416, abs=0.001)
    assert top.__getattr__("estimate") is top.api.estimate
    with pytest.raises(AttributeError):
        _ = top.no_such_name


def test_old_metadata_of_a_checkout_is_named_with_its_remedy(
    declared: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the error about a name that the checkout declares since."""
    del declared
    (tmp_path / "labeler").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "rag-labeler"\n[project.entry-points."labeler.judges"]\nnew = "x:Y"\n'
    )
    monkeypatch.setattr(version, "__file__", str(tmp_path / "labeler" / "version.py"))
    with pytest.raises(UnknownName, match=r"pip install -e"):
        Catalog[object]("judge", group="judges")["new"]


@pytest.mark.parametrize("others", ["", "[labeler.pending]\nother = builtins:str\n"])
def test_a_run_stops_if_batches_cannot_be_found(
    declared: Declare, others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without own metadata, rows of an open batch would be bought again, and kept when deleted."""
    declared("other-package", others)
    found = [*metadata.distributions(path=[str(tmp_path)])]
    monkeypatch.setattr(metadata, "distributions", lambda: found)
    for group in ("pending", "deletions"):
        with pytest.raises(ExtensionError, match=rf"labeler\.{group}.*pip install"):
            extensions.every(group)
    rows = str(ROOT / "examples/rows.jsonl")
    with pytest.raises(ExtensionError, match="pending"):
        label(rows, judge="embedded", store=tmp_path / "s")
    assert label(rows, judge="embedded", store=MemoryStore())


@pytest.fixture
def ratings(labeler_command: Command) -> Path:
    """A label file, in the working folder, whose second record is of an unknown kind."""
    del labeler_command
    first, second = (json.loads(record(id=name).model_dump_json()) for name in "ab")
    del second["label"]
    second |= {"key": "0" * 64, "kind": "os:getcwd", "stars": 4.5, "answer": {"likes": ["x"]}}
    path = Path("ratings.jsonl")
    path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    return path


def test_records_that_no_package_reads_are_counted_and_kept(
    ratings: Path, labeler_command: Command, caplog: pytest.LogCaptureFixture
) -> None:
    """Every command names those that it leaves out; a store and a file made of it have them all."""
    for command in (["metrics"], ["audit"], ["check", "--min", "adherence=0"]):
        caplog.clear()
        code, _, _ = labeler_command(command[0], ratings, *command[1:])
        assert (code, "left out 1 record of kind 'os:getcwd'" in caplog.text) == (0, True)
    assert labeler_command("store", "import", ratings, "--store", "kept")[0] == 0
    assert labeler_command("store", "verify", "kept")[0] == 0
    assert labeler_command("store", "export", "--store", "kept", "-o", "again.jsonl")[0] == 0
    before, after = (
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in (ratings, Path("again.jsonl"))
    )
    (kept,) = (one for one in after if one["kind"] == "os:getcwd")
    assert before[1].items() <= kept.items()


def test_records_whose_package_fails_are_named(
    declared: Declare, ratings: Path, labeler_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their kind, instead of a traceback; a class of another kind reads none."""
    monkeypatch.setattr(RECORDS, "_entries", {**RECORDS._entries})
    ratings.write_text(ratings.read_text().replace("os:getcwd", "odd_records"))
    declared("rating-package", "[labeler.records]\nodd_records = builtins:dict\n")
    code, _, err = labeler_command("metrics", ratings)
    assert (code, "records of kind 'odd_records' cannot be read" in err) == (2, True)


def test_a_listener_of_a_package_hears_each_run(
    declared: Declare, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is not wanted, cannot be made, or fails later costs no run."""
    (tmp_path / "hearing.py").write_text(
        "heard = []\ndef listener(): return heard.append\n"
        "def failing(): return lambda event: event.no_such_fact\n"
    )
    declared(
        "listening",
        "[labeler.listeners]\nheard = hearing:listener\nidle = builtins:dict\n"
        "broken = math:no_such_name\nfailing = hearing:failing\n",
    )
    row = {"question": "q?", "documents": ["A."], "response": "A."}
    assert len(label([row], judge="embedded", store=MemoryStore())) == 1
    heard = [event.kind for event in sys.modules["hearing"].heard]
    assert heard == ["start", "call", "reply", "judged", "result", "finish"]
    assert "listener broken" in caplog.text
    assert caplog.text.count("listener failing failed: AttributeError") == 1


def test_a_command_joins_a_group(
    declared: Declare, labeler_command: Command, tmp_path: Path
) -> None:
    """If its name has a dot; help shows its line, and a broken one stops no other."""
    (tmp_path / "importing.py").write_text(
        "import typer\nempty = typer.Typer()\ndef words(): return 'x'\ndef opens(): open('gone')\n"
    )
    broken = {"worse": "importing 1.0", "empty": "importing 1.0", "words": "returned 'x'"}
    broken["opens"] = "labeler: gone: No such file"
    declared(
        "importing",
        "[labeler.commands]\nimport.faq Import answers. = labeler.plugins.ragbench:"
        "import_ragbench\nimport.worse Import more. = math:no_such_name\n"
        + "".join(f"import.{name} = importing:{name}\n" for name in [*broken][1:]),
    )
    _, out, _ = labeler_command("import", "--help")
    assert ("Import answers." in out, "Import more." in out) == (True, True)
    assert labeler_command("import", "faq", "--help")[0] == 0
    for name, said in broken.items():
        code, _, err = labeler_command("import", name)
        assert (code, said in err) == (2, True)


def test_a_catalog_gives_things_by_name() -> None:
    """Dotted entries are imported on use; an error names the nearest name and all."""
    colours: Catalog[object] = Catalog("colour")
    colours.add("red", 1)
    colours.add("path", "os.path:join")
    with pytest.raises(
        UnknownName, match=r"unknown colour 'rad'; did you mean 'red'\? have: path, red"
    ):
        colours["rad"]
    assert (colours["path"], list(colours)) == (os.path.join, ["red", "path"])
    assert colours["json.decoder:JSONDecoder"] is json.decoder.JSONDecoder
    with pytest.raises(UsageError, match="already registered"):
        colours.add("red", 2)
    for name in ("no.such.module:x", "os.path:no_such_name"):
        with pytest.raises(UnknownName, match="cannot import colour"):
            colours[name]


def test_the_core_names_no_plugin() -> None:
    """Not even in a text that is imported later: entry points are the only door."""
    package = Path(version.__file__).parent
    core = [path for path in package.rglob("*.py") if "plugins" not in path.parts]
    named = [path for path in core if re.search(r"\bplugins\b", path.read_text(encoding="utf-8"))]
    assert len(core) > 100
    assert not named
