"""Log summaries, label files and the counts of runs to MLflow."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from labeler.calculators import SummaryRow
from labeler.errors import UsageError
from labeler.labeling.progress import RunEvent
from labeler.labels.answering import ANSWERED
from labeler.version import __version__, install_command

_LOG = logging.getLogger("labeler")
_NOT_IN_NAMES = re.compile(r"[^\w\-. ]|^\.+$")
"""Characters that MLflow rejects in the name of a metric, and names that it reads as a path."""
_LONGEST = 72
"""Characters of a name: three of them, and what is counted, fit into the 250 of MLflow."""


def log_summary(rows: Iterable[SummaryRow], label_file: str | Path | None = None) -> None:
    """Log summaries and their label file to the active run of MLflow.

    Each metric is logged with its mean as ``relevance``, the numbers of rows as
    ``relevance.defined``, ``relevance.undefined`` and ``relevance.failed``, and its interval, if
    there is one, as ``relevance.low`` and ``relevance.high``. A group's metrics are named
    ``relevance/GROUP``. Where several models answered, each has its own, ``relevance/MODEL`` or
    ``relevance/GROUP/MODEL``. The signature is the tag ``labeler.signature.relevance``.

    Args:
        rows: summaries of labels with one judging configuration.
        label_file: logged as an artifact of the run.

    Raises:
        UsageError: mlflow is not installed; the labels have several configurations; two names are
            equal; or the file does not exist.
    """
    every = list(rows)
    labels = {row.label for row in every if row.label is not None}
    configurations = {label.partition(ANSWERED)[0] for label in labels}
    if len(configurations) > 1:
        raise UsageError(
            f"these are summaries of labels that were made in {len(configurations)} ways, whose "
            "metrics have the same names; log each in a run of its own"
        )
    if label_file is not None and not Path(label_file).is_file():
        raise UsageError(f"{label_file} is not a file: nothing was logged")
    series = [(row, f"/{_name(row.answered or 'unknown')}" * (len(labels) > 1)) for row in every]
    numbers = _numbers(series)
    tags = {
        f"labeler.signature.{_name(row.metric.id)}{model}": row.signature(__version__)
        for row, model in series
    }
    mlflow = _mlflow()
    mlflow.set_tags({"labeler.version": __version__, **tags})
    mlflow.log_metrics(numbers)
    if label_file is not None:
        mlflow.log_artifact(str(label_file))


def log_run(event: RunEvent) -> None:
    """Log the counts and cost of a run at its end, to the active run of MLflow.

    Pass it as ``on_event``. The metrics are ``labeler.labeled``, ``labeler.stored``,
    ``labeler.failed``, ``labeler.requests``, ``labeler.prompt_tokens``,
    ``labeler.completion_tokens`` and, where the judge has a price, ``labeler.dollars``.

    Args:
        event: an event of the run.

    If MLflow fails then, as without its server, a warning says so: the labels are paid for.

    Raises:
        UsageError: mlflow is not installed; raised before anything is spent.
    """
    mlflow, counts = _mlflow(), event.counts
    if event.kind != "finish":
        return
    numbers = {
        "labeled": counts.origins["judge"],
        "stored": counts.origins["store"],
        "failed": counts.failed,
        "requests": counts.requests,
        "prompt_tokens": counts.usage.prompt_tokens,
        "completion_tokens": counts.usage.completion_tokens,
    }
    dollars = float(counts.spent.spent) if counts.spent else 0.0
    priced = {"dollars": dollars} if dollars else {}
    try:
        mlflow.log_metrics({f"labeler.{name}": n for name, n in (numbers | priced).items()})
    except Exception as error:  # noqa: BLE001 - any of its own
        _LOG.warning("MLflow did not take the counts of the run: %s", error)


def _numbers(series: Iterable[tuple[SummaryRow, str]]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for row, model in series:
        group = "" if row.group is None else f"/{_name(row.group)}"
        name = f"{_name(row.metric.id)}{group}{model}"
        found: dict[str, float] = {
            f"{name}.defined": row.defined,
            f"{name}.undefined": sum(row.undefined.values()),
            f"{name}.failed": sum(row.failed.values()),
        }
        if row.interval:
            found |= {f"{name}.low": row.interval.low, f"{name}.high": row.interval.high}
        if row.mean is not None:
            found[name] = row.mean
        if found.keys() & numbers.keys():
            raise UsageError(
                f"two groups, models or metrics have the name {name!r:.80}, where odd characters "
                f"count as _ and {_LONGEST} characters count: rename a group"
            )
        numbers |= found
    return numbers


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("_", text)[:_LONGEST]


def _mlflow() -> Any:  # noqa: ANN401 - mlflow may be missing
    try:
        import mlflow  # noqa: PLC0415 - slow to import
    except ImportError as error:
        raise UsageError(
            f"this needs mlflow, which is not installed: {install_command('mlflow')}"
        ) from error
    return mlflow
