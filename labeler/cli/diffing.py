"""The command that shows which decisions differ, and how a diff looks in a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.options import Json
from labeler.cli.running import refuse_own_input
from labeler.cli.terminal import Sheet, print_lines, say
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.characters import plain_json
from labeler.version import __version__

if TYPE_CHECKING:
    from labeler.cli.tables import Grid
    from labeler.comparing.diff import Differences, DiffSide, LabelDiff, MetricDiff, RecordDiff
    from labeler.comparing.diff.decisions import DecisionFlip
    from labeler.comparing.diff.totals import FlipCount, Source

_UP, _DOWN = "↑", "↓"
_NONE = "-"
_MOVED = 4
"""Metrics that are named of a record, those that moved most."""
_SHOWN_FLIPS = 12
"""Flips that are named of a record and a field."""


def diff(
    a: Annotated[
        str, typer.Argument(help="Labels to start from: a label file, store folder, or -.")
    ],
    b: Annotated[str, typer.Argument(help="Labels to compare with them; changes are B - A.")],
    *,
    ids: Annotated[
        str | None,
        typer.Option(
            "--metrics", help="Ids, comma-separated, or all; by default each metric once."
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Group by this metadata column as well.")] = None,
    a_signature: Annotated[
        str | None, typer.Option(help="A part of the signature of A's labels, to choose them by.")
    ] = None,
    b_signature: Annotated[str | None, typer.Option(help="The same of B's.")] = None,
    trial: Annotated[int | None, typer.Option(help="Only this trial of A.")] = None,
    trial_b: Annotated[
        int | None, typer.Option("--trial-b", help="Only this trial of B; by default as of A.")
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Records that changed most, to be named.")] = 10,
    as_json: Json = False,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="One line of JSON for each pair: its flips, and their parts."),
    ] = False,
    html: Annotated[
        str | None, typer.Option(help="Write one page to look at in a browser, without network.")
    ] = None,
) -> None:
    """Show which sentences two judges decide differently, and what that does to each metric.

    Compared are the labels of the very same sentences: of two judges, prompts, trials or dates.
    The change of every metric is split over the decisions that flipped, without a remainder.
    """
    from labeler import api
    from labeler.comparing.diff import open_diff

    trials = (trial, trial if trial_b is None else trial_b)
    _check(a, b, trials, (a_signature, b_signature), as_json=as_json, rows=rows, html=html)
    if html is not None:
        _check_page(html, [a, b])
    found = open_diff(
        api.stored_outcomes(a),
        api.stored_outcomes(b),
        metrics=ids,
        by=by,
        names=(a, b),
        signatures=(a_signature, b_signature),
        trials=trials,
    )
    if html is not None:
        _write_page(found, html)
    elif rows:
        _print_rows(found)
    elif as_json:
        _print_json(found.summary(top).as_json() | {"labeler": __version__})
    else:
        _print_diff(found.summary(top))


def _check(
    a: str,
    b: str,
    trials: tuple[int | None, int | None],
    signatures: tuple[str | None, str | None],
    *,
    as_json: bool,
    rows: bool,
    html: str | None,
) -> None:
    """Refuse what cannot be meant.

    Raises:
        UsageError: a file is compared with itself, or two kinds of output are asked for.
    """
    if a == b == STDIO:
        raise UsageError("standard input (-) can be read once; give one side as a file")
    if a == b and trials[0] == trials[1] and signatures[0] == signatures[1]:
        raise UsageError(
            f"{a} is compared with itself; name two files, or two trials or signatures of one "
            "(--trial 0 --trial-b 1)"
        )
    if as_json + rows + (html is not None) > 1:
        raise UsageError("--json, --rows and --html exclude each other: run it once for each")


def _check_page(html: str, sides: list[str]) -> None:
    """See that a page can take its place, and takes that of nothing that is needed.

    Raises:
        UsageError: it is no file, or holds labels or corrections.
    """
    from labeler.data.corrections.file import keep_corrections

    if html == STDIO:
        raise UsageError("--html names a file: a page is looked at in a browser")
    refuse_own_input(sides, html)
    keep_corrections(html)


def _write_page(found: Differences, html: str) -> None:
    from labeler.report.diff_page import write_page

    counts = write_page(found, html)
    left_out = f"; {counts.left_out} that changed less are left out" if counts.left_out else ""
    say(f"{html}: {counts.written} changed records{left_out}")


def _print_rows(found: Differences) -> None:
    for record in found:
        _print_json(record.as_json())


def _print_json(value: object) -> None:
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")


def _print_diff(found: LabelDiff) -> None:
    """What is compared; for all and each group, flips and what they did; who changed most."""
    from labeler.cli.tables import show

    out = Sheet()
    print_lines([*_side("A", found.a), *_side("B", found.b), *_records(found)])
    for group in found.groups:
        if group is not None:
            print_lines(["", f"{found.by}: {group}"])
        counts = [count for count in found.flips if count.group == group]
        rows = [row for row in found.metrics if row.group == group]
        grids = [_flip_grid(counts)]
        if rows:
            grids += _metric_grid(rows).parted(out.width)
        show(out, *(grid.block(out.width) for grid in grids))
        print_lines([*_notes(rows)])
    print_lines([*_most(found), "", *_reading_aid(found)])


def _side(letter: str, side: DiffSide) -> Iterator[str]:
    failed = f", {side.failed} failed" if side.failed else ""
    yield f"{letter}: {side.labelled} labels of {side.name}{failed}"
    for signature in side.signatures:
        yield f"   {signature}"


def _records(found: LabelDiff) -> Iterator[str]:
    counts = found.counts
    yield (
        f"{counts.pairs} records with the very same sentences in both, {found.flipped} with a flip"
    )
    if counts.unlike:
        unlike = ", ".join(f"{count} by {parts}" for parts, count in counts.unlike.items())
        yield f"left out, for other sentences in B than in A: {unlike}"
    others = [
        f"{count} {what}"
        for count, what in (
            (counts.only_a, "only in A"),
            (counts.only_b, "only in B"),
            (counts.failed_a, "failed in A"),
            (counts.failed_b, "failed in B"),
            (counts.failed_both, "failed in both"),
        )
        if count
    ]
    if others:
        yield f"not compared: {', '.join(others)}"


def _flip_grid(counts: Sequence[FlipCount]) -> Grid:
    from labeler.cli.tables import Column, Grid

    heads = ["flips", "gained", "lost", "changed", "of", "rate", "records"]
    return Grid(
        [Column(head, words=not n) for n, head in enumerate(heads)],
        [
            [
                _named(count.field),
                *(_count(figure) for figure in (count.gained, count.lost, count.changed)),
                f"{count.decisions:,}",
                _NONE if count.rate is None else f"{count.rate:.2%}",
                _count(count.records),
            ]
            for count in counts
        ],
    )


def _metric_grid(rows: Sequence[MetricDiff]) -> Grid:
    """Means and what they changed by, and a column for each kind of flip that has a part."""
    from labeler.cli.tables import Column, Grid
    from labeler.comparing.diff.decisions import DIRECTIONS, FIELDS

    present = {source for row in rows for source in row.parts}
    sources: list[Source] = [(f, d) for f in FIELDS for d in DIRECTIONS if (f, d) in present]
    columns = [
        Column("mean of", words=True),
        *(Column(head) for head in ("A", "B", "B-A")),
        *(Column(_head(source)) for source in sources),
    ]
    cells = [
        [
            f"{row.metric.id} {_UP if row.metric.higher_is_better else _DOWN}",
            _decimal(row.mean_a),
            _decimal(row.mean_b),
            _signed(row.change),
            *(_part(row, source) for source in sources),
        ]
        for row in rows
    ]
    if any(row.other for row in rows):
        columns.append(Column("other"))
        cells = [[*line, _signed(row.other)] for line, row in zip(cells, rows, strict=True)]
    return Grid(columns, cells)


def _head(source: Source) -> str:
    field, direction = source
    return f"{_named(field).replace(' ', chr(10), 1)}\n{direction}"


def _named(field: str) -> str:
    return field.replace("_", " ")


def _part(row: MetricDiff, source: Source) -> str:
    if row.change is None:
        return _NONE
    part = row.parts.get(source)
    return _signed(part) if part else "0"


def _notes(rows: Sequence[MetricDiff]) -> Iterator[str]:
    """Over how many pairs the means are, where that is not all, and how changes were split."""
    for row in rows:
        reasons = [
            f"{letter} {', '.join(f'{count} {reason}' for reason, count in counts.items())}"
            for letter, counts in (("A", row.undefined_a), ("B", row.undefined_b))
            if counts
        ]
        if reasons:
            yield f"{row.metric.id} over {row.pairs} pairs; undefined in {'; in '.join(reasons)}"
    walks = sum(row.methods.get("walks", 0) for row in rows)
    splits = walks + sum(row.methods.get("shapley", 0) for row in rows)
    if walks:
        yield f"{walks} of {splits} splits by two walks, for want of speed: too many flips"
    if halfway := sum(row.halfway for row in rows):
        yield f"{halfway} splits pass a label without a value, which counts as halfway"


def _most(found: LabelDiff) -> Iterator[str]:
    if found.records:
        yield "changed most, from A to B:"
    for record in found.records:
        flips = "1 flip" if len(record.flips) == 1 else f"{len(record.flips)} flips"
        yield f"  {record.id}: {flips}"
        for line in (_flips(record.flips), _moved(record)):
            if line:
                yield f"    {line}"


def _flips(flips: Sequence[DecisionFlip]) -> str:
    """``relevant +0b -1a; supported -c``: what B's label gained and lost."""
    from labeler.comparing.diff.decisions import FIELDS

    fields: dict[str, list[str]] = {}
    for flip in sorted(flips, key=lambda flip: FIELDS.index(flip.field)):
        sign = {"gained": "+", "lost": "-", "changed": "~"}[flip.direction]
        fields.setdefault(flip.field, []).append(f"{sign}{flip.key}")
    return "; ".join(f"{_named(name)} {_shortened(signs)}" for name, signs in fields.items())


def _shortened(signs: Sequence[str]) -> str:
    more = f" and {len(signs) - _SHOWN_FLIPS} more" if len(signs) > _SHOWN_FLIPS else ""
    return " ".join(signs[:_SHOWN_FLIPS]) + more


def _moved(record: RecordDiff) -> str:
    moved = [
        (abs(change.b - change.a), change.metric, change.a, change.b)
        for change in record.changes
        if change.a is not None and change.b is not None and change.a != change.b
    ]
    moved.sort(key=lambda one: -one[0])
    more = f", and {len(moved) - _MOVED} more" if len(moved) > _MOVED else ""
    shown = (f"{name} {float(a):.4f} → {float(b):.4f}" for _, name, a, b in moved[:_MOVED])
    return ", ".join(shown) + more


def _reading_aid(found: LabelDiff) -> Iterator[str]:
    yield (
        "each row of means: B-A is the sum of what stands right of it, the parts of the flips "
        "(Shapley values, exact; see docs/diff.md)"
    )
    yield f"pairs:{found.counts.pairs}|labeler:{__version__}"


def _count(figure: int) -> str:
    return f"{figure:,}" if figure else "0"


def _decimal(figure: Fraction | None) -> str:
    return _NONE if figure is None else f"{float(figure):.4f}"


def _signed(figure: Fraction | None) -> str:
    if figure is None:
        return _NONE
    return f"{float(figure):+.4f}" if figure else "0"
