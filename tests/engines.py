"""Engines that do the work of several workers in this process."""

from __future__ import annotations

from collections.abc import Generator

from labeler.integrations.ray.parts import InputPart
from labeler.integrations.ray.quotas import QuotaServer
from labeler.integrations.ray.worker import PartReport, Work, Worker


def label_in_loop(
    work: Work, parts: list[InputPart], workers: int
) -> Generator[PartReport, None, None]:
    """Label parts one after the other, whatever the number of workers."""
    worker = Worker(work, workers, QuotaServer(work.limits, workers))
    for part in parts:
        yield worker.label_part(part)
