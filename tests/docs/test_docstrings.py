"""The examples in the docstrings of the Python front door run as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path
from types import ModuleType

import pytest

import labeler
from labeler import api
from labeler.judges import function
from labeler.report import labels, loading

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", [labels, loading, api, function], ids=lambda one: one.__name__)
def test_the_examples_of_a_module_run(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels of the example rows, in a folder of their own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    found = labeler.label("examples/rows.jsonl", judge="embedded", store=labeler.MemoryStore())
    names = {"labeler": labeler, "labels": found, "folder": tmp_path}
    done = doctest.testmod(module, extraglobs=names)
    assert done.attempted
    assert not done.failed


def test_every_public_method_of_labels_has_an_example() -> None:
    """Next to its arguments, result and errors."""
    for name, method in vars(labeler.Labels).items():
        if not name.startswith(("_", "to_")) and callable(method):
            for part in ("Args:", "Raises:", "Example:"):
                assert part in (method.__doc__ or ""), (name, part)
