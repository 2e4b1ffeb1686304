"""The command line, run in the test's own process."""

from __future__ import annotations

import sys

import pytest

from labeler.cli import run


class Command:
    """Runs the command line in this process, in a folder of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        """Exit code, standard output, standard error."""
        self._monkeypatch.setattr(sys, "argv", ["labeler", *map(str, arguments)])
        code = run()
        out, err = self._capsys.readouterr()
        return code, out, err
