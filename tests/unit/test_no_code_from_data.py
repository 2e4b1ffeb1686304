"""No data that is read becomes code; and the watch that says so does see what it should."""

from __future__ import annotations

import ast
import json
import marshal
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from support.audit import AUDIT, package_folder
from support.command import Command

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


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "eval of a text": (lambda: ours("def read(t): return eval(t)")("1"), "exec"),
    "exec of a text": (lambda: ours("def read(t): exec(t)")("x = 1"), "exec"),
    "compile": (lambda: ours("def read(t): compile(t, '', 'eval')")("1"), "compile"),
    "a pickle": (
        lambda: ours("def read(b): return loads(b)", loads=pickle.loads)(pickle.dumps(print)),
        "pickle.find_class",
    ),
    "a pickle that no frame of ours is below": (
        lambda: pickle.loads(pickle.dumps(print)),  # noqa: S301 - what the watch must see
        "pickle.find_class",
    ),
    "the unpickler that is written in Python": (
        lambda: ours("def read(b): return loads(b)", loads=pickle._loads)(pickle.dumps(print)),  # type: ignore[attr-defined] # not in the stubs
        "pickle.find_class",
    ),
    "a library that evaluates": (
        lambda: ours("def read(t): return library(t)", library=library)("1"),
        "exec",
    ),
    "code as bytes": (
        lambda: ours("def read(b): return loads(b)", loads=marshal.loads)(marshal.dumps(1)),
        "marshal.loads",
    ),
    "a thread that a library starts": (lambda: in_a_thread(ast.parse, "1"), "compile"),
    "a command": (lambda: ours("def read(t): run(t)", run=os.system)("true"), "os.system"),
    "a program": (
        lambda: ours("def read(*t): run(t, check=True)", run=subprocess.run)("true"),
        "subprocess.Popen",
    ),
}


@pytest.mark.parametrize(("plant", "event"), WRONG.values(), ids=WRONG.keys())
def test_the_watch_sees_what_is_planted(plant: Callable[[], object], event: str) -> None:
    """In this very session, whose tests it watches."""
    plant()
    assert event in {found.split(" ")[0] for found in AUDIT.take()}


def define_classes() -> object:
    """Have a function of ours make classes from their descriptions."""
    return ours(
        "import dataclasses, collections\n"
        "def read():\n"
        "    collections.namedtuple('Pair', 'a b')\n"
        "    dataclasses.make_dataclass('Pair', ['a', 'b'])"
    )()


def resolve_an_annotation() -> object:
    """Have a function of ours look up what a quoted annotation means."""
    return ours(
        "import typing\n"
        "def given(x: 'int') -> 'str': pass\n"
        "def read(): return typing.get_type_hints(given)"
    )()


RIGHT: dict[str, Callable[[], object]] = {
    "a class is defined": define_classes,
    "an annotation is resolved": resolve_an_annotation,
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
    paths = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", "-q", "."],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "ERROR at teardown of test_that_evaluates" in done.stdout
    assert "code was made from data" in done.stdout


def test_the_command_line_makes_no_code_of_what_it_reads(
    tmp_path: Path, labeler_command: Command
) -> None:
    """Labeling, and every way to read a store and a label file."""
    rows = [
        {"id": text, "question": text, "documents": [text, *HOSTILE], "response": text, text: text}
        for text in HOSTILE
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(EXAMPLES.read_text() + lines)
    AUDIT.take()
    for command in (
        ["label", "rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl"],
        ["label", "rows.jsonl", "--judge", "replay", "--recorded", "labels.jsonl", "-o", "-"],
        *(
            command
            for labels in (".labeler", "labels.jsonl")
            for command in (
                ["metrics", labels, "--metrics", "all"],
                ["metrics", labels, "--rows"],
                ["show", labels, HOSTILE[0]],
                ["show", labels, HOSTILE[1], "--json"],
            )
        ),
        ["store", "export", "-o", "all.jsonl"],
        ["store", "import", "all.jsonl", "--store", "elsewhere"],
        ["prompt", "--rows", "rows.jsonl", "--id", HOSTILE[0]],
    ):
        assert labeler_command(*command)[0] == 0, command
    assert AUDIT.found == []

    assert not list(tmp_path.glob("**/trace"))
