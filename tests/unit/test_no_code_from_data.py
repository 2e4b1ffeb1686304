"""No data that is read becomes code; and the watch that says so does see what it should."""

from __future__ import annotations

import ast
import marshal
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support.audit import AUDIT, UNPICKLING, package_folder
from support.command import Command
from wire.runs import row_file, settings

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"

HOSTILE = (
    "__import__('os').system('touch trace')",
    "!!python/object/apply:os.system ['touch trace']",
    "{{ ''.__class__.__mro__ }}{% for x in range(9) %}{{ x }}{% endfor %} ${7*7} #{7*7} %(x)s {0}",
    "gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu",
    "\x80\x05cposix\nsystem\n(S'touch trace'\ntR.",
)
"""Texts that a careless reader would run."""


def library(text: str) -> object:
    """Stands for a library that builds objects from text, as a careless YAML loader does."""
    return eval(text)  # noqa: S307 - what the watch must see


def in_a_thread(do: Callable[..., object], *given: object) -> None:
    """Run it where no frame of ours and none of a test is below."""
    thread = threading.Thread(target=do, args=given)
    thread.start()
    thread.join()


def ours(source: str, **known: object) -> Callable[..., object]:
    """A function ``read`` that seems to stand in a file of the package."""
    namespace: dict[str, object] = dict(known)
    exec(compile(source, str(package_folder() / "planted.py"), "exec"), namespace)  # noqa: S102
    read = namespace["read"]
    assert callable(read)
    return read


def reading(how: str, data: object, **known: object) -> Callable[[], object]:
    """Have a function of ours read data."""
    return lambda: ours(f"def read(t): {how}", **known)(data)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "eval of a text": (reading("return eval(t)", "1"), "exec"),
    "compile": (reading("compile(t, '', 'eval')", "1"), "compile"),
    "a pickle": (reading("loads(t)", pickle.dumps(print), loads=pickle.loads), UNPICKLING),
    "a pickle that no frame of ours is below": (
        lambda: pickle.loads(pickle.dumps(print)),  # noqa: S301 - what the watch must see
        UNPICKLING,
    ),
    "the unpickler that is written in Python": (
        reading("loads(t)", pickle.dumps(print), loads=pickle._loads),  # type: ignore[attr-defined] # not in the stubs
        UNPICKLING,
    ),
    "a library that evaluates": (reading("return library(t)", "1", library=library), "exec"),
    "code as bytes": (reading("loads(t)", marshal.dumps(1), loads=marshal.loads), "marshal.loads"),
    "a thread that a library starts": (lambda: in_a_thread(ast.parse, "1"), "compile"),
    "a command": (reading("run(t)", "true", run=os.system), "os.system"),
    "a program": (reading("run([t], check=True)", "true", run=subprocess.run), "subprocess.Popen"),
}


@pytest.mark.parametrize(("plant", "event"), WRONG.values(), ids=WRONG.keys())
def test_the_watch_sees_what_is_planted(plant: Callable[[], object], event: str) -> None:
    """In this very session, whose tests it watches."""
    plant()
    assert event in {found.split(" ")[0] for found in AUDIT.take()}


_CLASSES = """
import dataclasses, collections
def read():
    collections.namedtuple('Pair', 'a b')
    dataclasses.make_dataclass('Pair', ['a', 'b'])
"""
_ANNOTATION = """
import typing
def given(x: 'int') -> 'str': pass
def read(): return typing.get_type_hints(given)
"""
RIGHT: dict[str, Callable[[], object]] = {
    "classes are defined": ours(_CLASSES),
    "an annotation is resolved": ours(_ANNOTATION),
    "someone else evaluates": lambda: library("1"),
}


@pytest.mark.parametrize("do", RIGHT.values(), ids=RIGHT.keys())
def test_the_watch_passes_what_is_right(do: Callable[[], object]) -> None:
    """The events are there, and none is held against us."""
    before = AUDIT.seen.total()
    do()
    assert AUDIT.seen.total() > before
    assert AUDIT.take() == []


def test_the_watch_passes_a_module_that_is_loaded_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import runs a module's code."""
    (tmp_path / "loaded_late.py").write_text("MADE = eval('1')\n")
    monkeypatch.syspath_prepend(tmp_path)
    before = AUDIT.seen["exec"]
    ours("def read():\n    import loaded_late\n    return loaded_late.MADE")()
    assert AUDIT.seen["exec"] > before
    assert AUDIT.take() == []


PLANTED = """
from support.audit import package_folder
def test_that_only_passes():
    pass
def test_that_evaluates():
    space = {}
    exec(compile("def read(t): return eval(t)", str(package_folder() / "x.py"), "exec"), space)
    assert space["read"]("1") == 1
"""


def test_a_test_in_which_data_becomes_code_fails(tmp_path: Path) -> None:
    """The settings that all tests share turn a find into a failure, and nothing else."""
    (tmp_path / "test_planted.py").write_text(PLANTED)
    given = settings()
    folder = Path(__file__).parents[1]  # first, as other folders of tests have a conftest too
    given["PYTHONPATH"] = f"{folder}{os.pathsep}{given['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", "."],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "ERROR at teardown of test_that_evaluates" in done.stdout
    assert "code was made from data" in done.stdout


def test_commands_make_no_code_of_what_they_read(tmp_path: Path, labeler_command: Command) -> None:
    """Labeling, and every way to read a store and a label file."""
    rows = [
        {"id": text, "question": text, "documents": [text, *HOSTILE], "response": text, text: text}
        for text in HOSTILE
    ]
    given = row_file(tmp_path, rows)
    given.write_text(EXAMPLES.read_text() + given.read_text())
    AUDIT.take()
    for command in (
        ["label", "rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl"],
        ["label", "rows.jsonl", "--judge", "replay", "--recorded", "labels.jsonl", "-o", "-"],
        *(
            [*command, *more]
            for labels in (".labeler", "labels.jsonl")
            for command in (["metrics", labels], ["show", labels, HOSTILE[0]])
            for more in ([], ["--json"])
        ),
        ["metrics", ".labeler", "--metrics", "all"],
        ["metrics", "labels.jsonl", "--rows"],
        ["store", "export", "-o", "all.jsonl"],
        ["store", "import", "all.jsonl", "--store", "elsewhere"],
        ["prompt", "--rows", "rows.jsonl"],
    ):
        assert labeler_command(*command)[0] == 0, command
    assert AUDIT.found == []

    assert not list(tmp_path.glob("**/trace"))
