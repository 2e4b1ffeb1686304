"""Stored labels that another host gave, or a function that has changed since."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.judges.task import Task
from labeler.store import MemoryStore
from support.answers import trusting
from support.command import Command
from support.watching import Watch
from wire.calls import Json, label_for
from wire.provider import Provider
from wire.runs import KEY, labeling, reasons, row_file, rows, run


def said(provider: Provider, store: MemoryStore, count: int, **options: Any) -> list[str]:
    """What a run over rows says."""
    watch = Watch()
    outcomes = run(provider, rows(count), store=store, watch=watch, **options)
    assert reasons(outcomes) == ["label"] * count
    return watch.notices


def test_labels_of_another_host_are_named_once_with_their_number() -> None:
    """Those of the same host are not, by any name of this machine, nor new ones."""
    store = MemoryStore()
    with Provider() as stub, Provider() as real:
        assert said(stub, store, 3) == []
        address = {"base_url": stub.url.replace("127.0.0.1", "LOCALHOST")}
        assert said(stub, store, 3, judge=address) == []
        (notice,) = said(real, store, 5)
        assert real.routes["POST /v1/chat/completions"] == 2
    assert f"3 from 127.0.0.1:{stub.port}, while this run asks 127.0.0.1:{real.port}" in notice


def test_the_command_names_the_hosts_or_stops(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a rerun."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    some = row_file(tmp_path, rows(2))
    with Provider() as stub, Provider() as real:
        for _ in range(2):
            code, _, err = labeler_command(*labeling(stub, some))
            assert (code, "another host" in err) == (0, False), err
        code, _, err = labeler_command(*labeling(real, some), "--same-host")
        assert (code, f"127.0.0.1:{stub.port} gave a stored label" in err) == (2, True), err
        code, _, err = labeler_command(*labeling(real, some))
        assert not real.requests
    assert (code, err.count("another host were used: 2 from 127.0.0.1")) == (0, 1), err


def first(task: Task) -> Json:
    """As at first."""
    return trusting(task, "a")


def second(task: Task) -> Json:
    """With another text."""
    return trusting(task, "b")


called = partial(trusting, said="a")
"""An object that can be called."""


@pytest.mark.parametrize(("now", "warns"), [(first, 0), (second, 1), (called, 1), (trusting, 1)])
def test_a_function_that_changed_under_its_version_is_reported_before_it_is_answered_for(
    now: Any, warns: int
) -> None:
    """Once a run; the stored labels are used, and another version asks again."""
    store, watch = MemoryStore(), Watch()
    for function, version in ((first, 1), (now, 1), (now, 2)):
        judge = labeler.judge("mine", version=version)(function)
        labeler.label(rows(3), judge=judge, store=store, on_event=watch)
    assert len(watch.notices) == warns
    assert all("judge function/mine/1: its source has changed" in one for one in watch.notices)


def test_comments_and_layout_are_no_change() -> None:
    """Only what the function does counts."""

    def plain(task: Task) -> Json:
        return label_for(task)  # type: ignore[arg-type]

    found = {labeler.judge("x", version=1)(plain).source}

    def plain(task: Task) -> Json:  # type: ignore[no-redef] # the same with a comment
        # and another one
        return label_for(
            task  # type: ignore[arg-type]
        )

    found.add(labeler.judge("x", version=1)(plain).source)
    assert len(found) == 1
    assert labeler.judge("x", version=1)(dict).source is None  # type: ignore[arg-type]
