"""Labeling on many processors and machines with Ray Data, shard by shard: the engine ``ray``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from labeler.cli.label import RunReport, exit_code
from labeler.cli.terminal import notify, plural
from labeler.errors import UsageError
from labeler.judges.opening import open_judge
from labeler.judges.prompting import prompt_file, read_instructions
from labeler.labeling.options import LabelOptions
from labeler.labeling.progress import RunEvents


def label_on_machines(
    inputs: list[str], given: LabelOptions, output: str | None, workers: int | None
) -> int:
    """Label Parquet files with Ray, print the counts and cost, and return the exit code."""
    if output in {None, "-"} or "://" in output or output.endswith((".parquet", ".jsonl", ".gz")):
        raise UsageError(f"--engine ray writes a folder: give one as -o FOLDER, got {output!r}")
    from labeler.plugins.ray.cluster import label_on_ray  # noqa: PLC0415 - needs Ray
    from labeler.plugins.ray.shards import Work, plan  # noqa: PLC0415 - needs Arrow

    if (own := prompt_file(given.prompt)) is not None:
        raise UsageError(
            f"--prompt {own} is not for --engine ray, whose workers have no such file: use "
            "--instructions"
        )
    # A worker on another machine has no files of prices and instructions.
    price, instructions = given.find_price(), read_instructions(given.instructions) or None
    given = replace(given, price=price, prices=None, instructions=instructions)
    judge = partial(open_judge, given, also=given.restrictions, notice=notify)
    work = Work(judge, given, Path(str(given.store)).absolute(), Path(output).absolute())
    shards = plan(inputs, work, notify)
    left = [shard for shard, counts in shards.items() if counts is None]
    rows = sum(shard.stop - shard.start for shard in shards)
    notify(f"{plural(rows, 'row')} in {plural(len(shards), 'shard')}, {len(left)} of them left")
    with RunReport("labeling", price) as progress:
        RunEvents([progress]).start(rows)
        for counts in filter(None, shards.values()):
            progress.counts.add(counts)
        try:
            with closing(label_on_ray(work, left, workers)) as reports:
                for counts in reports if left else ():
                    progress.counts.add(counts)
        finally:
            counted = progress.counts.origins
            progress.close(f"{counted['judge']} labeled", f"{counted['store']} from the store")
    notify(
        f"labels are in {work.output}, stored shard by shard: 'labeler store merge "
        f"{work.store}/shards --into {work.store}' makes one store of them"
    )
    return exit_code(progress)
