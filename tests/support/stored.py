"""What every row of a store's file holds, and programs that share a store with a test."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from labeler.errors import StoreError
from labeler.labels.record import AnyOutcome, LabelFailure
from labeler.store.database import Database
from labeler.store.disk import DiskStore
from labeler.store.maintenance import Reading, verify_store


def store_of(folder: Path, *outcomes: AnyOutcome) -> Path:
    """The folder of a closed store that holds these."""
    with DiskStore(folder) as store:
        for saved in [store.put(outcome) for outcome in outcomes]:
            saved.result(10)
    return folder


def failures_in(folder: Path) -> list[LabelFailure]:
    """The failures of a store by key, which may be in use."""
    with closing(Database(folder)) as database:
        outcomes = [outcome for _, outcome in Reading().rows(database)]
        found = [one for one in outcomes if isinstance(one, LabelFailure)]
    return sorted(found, key=lambda failure: str(failure.key))


def faults_in(folder: Path) -> list[StoreError]:
    """An error for each damaged row of a store."""
    reading = verify_store(folder)
    return reading.damaged + reading.misplaced


def started(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program of its own, with this process's import path; its streams are pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
