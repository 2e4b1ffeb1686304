"""``help()`` of every public name says what goes in and comes out; its examples run."""

from __future__ import annotations

import doctest
import inspect
import shutil
from operator import attrgetter
from pathlib import Path

import pytest

import labeler
import site_pages
from labeler.audit.registry import CHECKS
from labeler.calculators.registry import METRICS
from support.registries import keep_entries

ROOT = Path(__file__).parents[2]
PUBLISHED = {
    "LabelFailure",
    "LabelRecord",
    "labels.ClaimsLabelingOutput",
    "plugins.scores.Criterion",
    "labels.GPTLabelingOutput",
    "labels.ReferenceLabelingOutput",
    "plugins.scores.ScoreRecord",
}
"""Their docstrings are parts of published schemas, which never change."""
NAMES = sorted({*site_pages.public_names()} - PUBLISHED)
METHODS = [f"Labels.{name}" for name in vars(labeler.Labels) if not name.startswith(("_", "to_"))]


@pytest.fixture(scope="module")
def labels() -> labeler.Labels:
    """Labels of the example rows."""
    rows = str(ROOT / "examples" / "rows.jsonl")
    return labeler.label(rows, judge="embedded", store=labeler.MemoryStore(), progress=False)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without labels."""
    folder = tmp_path_factory.mktemp("empty") / ".labeler"
    labeler.DiskStore(folder).close()
    return folder


@pytest.mark.parametrize("name", NAMES + METHODS)
def test_the_examples_of_a_name_run(
    name: str, labels: labeler.Labels, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder with the example rows and an empty store."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shutil.copytree(empty, tmp_path / ".labeler")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("MISTRAL_API_KEY", "key")
    for catalog in (METRICS, CHECKS):
        keep_entries(catalog, monkeypatch)
    found = attrgetter(name)(labeler)
    text = inspect.getdoc(found) or ""
    names = {"labeler": labeler, "labels": labels, "folder": tmp_path}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test)
    assert test.examples or isinstance(found, property)
    assert not runner.failures
