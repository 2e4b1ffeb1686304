"""Commands that compare labels: with other labels, and with what people say."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from labeler.cli.options import (
    Details,
    Json,
    LabelsA,
    Level,
    MetricIds,
    Threshold,
    expand_options,
    outcomes_or_numbers,
    place_of,
    reject_overwrite,
)
from labeler.cli.terminal import (
    LineWriter,
    notify,
    notify_repeated,
    print_found,
    print_json,
    print_lines,
    print_sections,
)
from labeler.comparing.sides import ChoiceOptions, HumanOptions, SideOptions
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.sentences.display import plural

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration
    from labeler.comparing.comparison import Comparisons
    from labeler.comparing.human_labels import HumanLabels
    from labeler.evidence.anchors import Anchors

WORSE = 1
"""Exit code of ``--fail-on worse`` where something is."""

Html = Annotated[str | None, typer.Option(help="Write an offline HTML page to this file.")]
Runs = Annotated[
    list[str],
    typer.Argument(
        help="Labels to compare: label files, store folders, or -. The first is the base, A; "
        "differences are B - A, C - A and so on."
    ),
]
FailOn = Annotated[
    Literal["worse"] | None,
    typer.Option(
        help="Exit with 1 if a verdict is 'worse' or over 5 % of the rows lost their value."
    ),
]
_MORE_DIFF = "Changes of metrics, flipped sentences and settings: --details. A page: --html FILE."
_MORE_AGREEMENT = "Coefficients, ranges, settings and warnings: --details."


@expand_options
def compare(
    runs: Runs,
    *,
    metrics: MetricIds = None,
    sides: SideOptions,
    every: Annotated[
        bool, typer.Option("--all", help="Show all metrics that have values.")
    ] = False,
    details: Details = False,
    as_json: Json = False,
    html: Html = None,
    fail_on: FailOn = None,
    level: Level = 0.95,
    top: Annotated[int, typer.Option(help="Records to list for each metric.")] = 3,
    threshold: Threshold = None,
    anchors: Annotated[
        str | None,
        typer.Option(help="File of anchors: add what a change of the judge alone explains."),
    ] = None,
) -> int:
    """Compare the metrics of two or more sets of labels, paired by record."""
    from labeler.comparing.compare import compare_runs
    from labeler.comparing.comparison_text import sections

    known = _known(anchors)
    explained = known.explained(metrics) if known else ""
    for run, other in combinations(runs, 2):
        _check_sides(run, other)
    _check_page(runs, html, json=as_json)
    if html is not None:
        from labeler.report.comparison_pages import MOST_MOVED

        top = MOST_MOVED
    found = compare_runs(
        [outcomes_or_numbers(run, threshold) for run in runs],
        metrics,
        **asdict(sides),
        names=runs,
        level=level,
        top=top,
    )
    if fail_on:
        _require_same_judge(found)
    if known:
        known.require_judge(
            name for one in found for side in (one.a, one.b) for name in side.judges
        )
    for one in found:
        notify_repeated(one.counts.duplicates)
    if html is not None:
        _write_page(found, html, runs, threshold)
    elif as_json:
        figures = [one.as_json() for one in found]
        print_json(figures if len(figures) > 1 else figures[0])
    else:
        LineWriter().write("\n".join(found.conclusions), bold=True)
        print_sections(sections(found, every=every or metrics is not None, details=details))
    if explained:
        notify(explained)
    return _exit_code(found) if fail_on else 0


def _known(anchors: str | None) -> Anchors | None:
    if anchors is None:
        return None
    from labeler.evidence.anchors import Anchors

    return Anchors.load(anchors)


def _require_same_judge(found: Comparisons) -> None:
    if not all(one.same_judge for one in found):
        raise UsageError(
            "--fail-on worse needs labels of one judge, prompt and thresholds, for others are "
            "higher or lower, not worse; labeler diff shows where labels differ"
        )


def _write_page(
    found: Comparisons, html: str, runs: list[str], threshold: list[str] | None
) -> None:
    """Write the page with its reports; standard input and numbers files have no texts."""
    from labeler.calculators.numbers_file import NumbersFile
    from labeler.report.comparison_pages import write_comparison

    outcomes = {}
    for letter, run in zip(found.sides, runs, strict=True):
        if run != STDIO:
            again = outcomes_or_numbers(run, threshold)
            if not isinstance(again, NumbersFile):
                outcomes[letter] = again
    page, *reports = write_comparison(found, html, outcomes)
    print_lines(found.conclusions)
    more = f"; reports: {', '.join(map(str, reports))}" if reports else ""
    notify(f"{page}{more}")


def _exit_code(found: Comparisons) -> int:
    """Say what is worse, and return the exit code."""
    worse = [f"{one.letter} ({one.b.name}): {what}" for one in found for what in one.regressions()]
    for line in worse:
        notify(line)
    return WORSE if worse else 0


def _check_page(labels: list[str], html: str | None, **others: bool) -> None:
    """Check that one output is asked for, and that a page overwrites none of its labels."""
    if sum(others.values()) + (html is not None) > 1:
        options = [f"--{name}" for name in (*others, "html")]
        listed = f"{', '.join(options[:-1])} and {options[-1]}"
        raise UsageError(f"{listed} exclude each other: run it once for each")
    if html is None:
        return
    reject_overwrite(labels, html)
    if not html.lower().endswith((".html", ".htm")):
        raise UsageError(f"--html {html!r}: name a page, such as --html comparison.html")


def _check_sides(a: str, b: str) -> None:
    """Check that two sides can be read and are not the same."""
    if a == b == STDIO:
        raise UsageError("standard input (-) can be read once; give one side as a file")
    if place_of(a) == place_of(b):
        raise UsageError(
            f"{a} is compared with itself; name two files: for two judges or trials in one, write "
            "each into a file of its own (labeler label -o; stored labels are free)"
        )


@expand_options
def diff(
    a: Annotated[str, typer.Argument(help="Labels to start from: a label file or store folder.")],
    b: Annotated[str, typer.Argument(help="Labels to compare with them; differences are B - A.")],
    *,
    metrics: MetricIds = None,
    sides: SideOptions,
    top: Annotated[int, typer.Option(min=0, help="Number of most changed records to list.")] = 10,
    details: Details = False,
    as_json: Json = False,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Print one JSON object per pair: differing verdicts, metrics, shares."
        ),
    ] = False,
    html: Html = None,
) -> None:
    """Show which verdicts differ, and what metrics change by.

    Compared are the labels of the very same sentences: of two judges, prompts, trials or dates.
    """
    from labeler import api
    from labeler.comparing.diff import diff_labels

    _check_sides(a, b)
    _check_page([a, b], html, json=as_json, rows=rows)
    outcomes = api.checked_outcomes(a), api.checked_outcomes(b)
    found = diff_labels(*outcomes, metrics, names=(a, b), top=top, **asdict(sides))
    notify_repeated(found.counts.duplicates)
    if html is not None:
        from labeler.report.comparison_pages import write_diff

        written, others = write_diff(found, html)
        left_out = f"; {others} that changed less are left out" if others else ""
        print_lines([found.conclusion])
        notify(f"{html}: {plural(written, 'changed record')}{left_out}")
    elif rows:
        pairs = found.pairs
        for record in found:
            print_json(record.as_json(pairs))
    else:
        print_found(found, _MORE_DIFF, details=details, as_json=as_json)


@expand_options
def agree(
    labels: LabelsA,
    other: Annotated[
        str | None, typer.Argument(help="Label file or store folder to compare with: B.")
    ] = None,
    *,
    people: HumanOptions,
    sides: SideOptions,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Measure the agreement of two judges, or of a judge with people.

    Human labels are rows, one judgment each. The column id names the record. sentence is a key
    such as 0a or a, or empty for the whole record. field is relevant, utilized or supported for a
    sentence, and overall_supported or a metric for a record. value is yes, no, or a number from 0
    to 1. annotator may be missing. A column named after a field replaces field and value.

    Corrections of A's labels are human labels too: every verdict that a person judged, whether
    changed or not.
    """
    from labeler import api
    from labeler.comparing.agreement import compare_labels, compare_with_people

    _check(other, people)
    outcomes = api.checked_outcomes(labels)
    if other is None:
        against = compare_with_people(
            outcomes,
            _human_labels(labels, people, sides),
            by=sides.by,
            signature=sides.signature,
            trial=sides.trial,
            name=labels,
            human_name=str(people.human),
            random_sample=people.random_sample,
        )
        print_found(against, _MORE_AGREEMENT, details=details, as_json=as_json)
        return
    _check_sides(labels, other)
    second = api.checked_outcomes(other)
    found = compare_labels(outcomes, second, names=(labels, other), **asdict(sides))
    notify_repeated(found.counts.duplicates)
    print_found(found, _MORE_AGREEMENT, details=details, as_json=as_json)


def _check(other: str | None, people: HumanOptions) -> None:
    """Check that there is one thing to compare with, and that the options fit it."""
    if other is None and people.human is None:
        raise UsageError("name a second label file to compare with, or human labels (--human)")
    if other is None:
        return
    if people.human is not None:
        both = f"{other} and --human {people.human}"
        raise UsageError(f"{both} exclude each other: compare with one at a time")
    if people.random_sample:
        raise UsageError("--random-sample is for human labels: it goes with --human")
    if people.blind_only:
        raise UsageError("--blind-only is for corrections: it goes with --human")


@expand_options
def thresholds(
    labels: LabelsA,
    *,
    people: HumanOptions,
    choice: ChoiceOptions,
    precision: Annotated[
        float,
        typer.Option(help="Share of positive verdicts that people confirm, for a threshold."),
    ] = 0.9,
    details: Details = False,
    as_json: Json = False,
) -> None:
    """Compare stated probabilities with people's verdicts, and choose thresholds by them.

    The labels need a judge that states probabilities, such as --judge decisions:MODEL. Human
    labels are read as by labeler agree --human; only verdicts on sentences count.
    """
    if people.human is None:
        raise UsageError(
            f"name human labels (--human FILE): labeler review {shlex.quote(labels)} makes some"
        )
    found = calibrated(labels, people, choice, precision)
    print_found(found, _MORE_AGREEMENT, details=details, as_json=as_json)


def calibrated(
    labels: str, people: HumanOptions, choice: ChoiceOptions | None = None, precision: float = 0.9
) -> Calibration:
    """Compare stated probabilities with people's verdicts, of a file; by default of all labels."""
    from labeler import api
    from labeler.comparing.calibration import calibrate
    from labeler.comparing.sides import Choice

    choice = choice or ChoiceOptions()
    return calibrate(
        api.checked_outcomes(labels),
        _human_labels(labels, people, choice),
        precision=precision,
        choice=Choice(labels, choice.signature, choice.trial),
        human_name=str(people.human),
    )


def _human_labels(labels: str, people: HumanOptions, chosen: ChoiceOptions) -> HumanLabels:
    """Read human labels, from rows of their own or from corrections of the chosen labels."""
    from labeler import api
    from labeler.comparing.human_labels import labels_of_corrections, read_human_labels
    from labeler.comparing.sides import Choice
    from labeler.data.corrections.file import is_corrections_file, read_corrections

    human = str(people.human)
    if labels == human == STDIO:
        raise UsageError("only one of labels and human labels can come from standard input")
    if not is_corrections_file(human):
        if people.blind_only:
            raise UsageError(
                f"--blind-only chooses among corrections, and {human} is not one: leave it "
                "out, or name what labeler review or labeler corrections import wrote"
            )
        return read_human_labels(human)
    if labels == STDIO:
        raise UsageError("corrections need labels that can be read twice: name the label file")
    read = read_corrections(human)
    for where in read.torn:
        notify(f"{where}: cut off, as by a crash, and left out")
    found = labels_of_corrections(
        read.events,
        api.checked_outcomes(labels),
        choice=Choice(labels, chosen.signature, chosen.trial),
        random_sample=people.random_sample,
        blind_only=people.blind_only,
        name=human,
    )
    if not found.judgments:
        drawn = " of a record drawn at random" if people.random_sample else ""
        hidden = " made blind" if people.blind_only else ""
        remedy = "they are opinions without verdicts, which labeler review records"
        if any(event.judgment for event in read.events):
            remedy = "name the label file that was corrected"
        raise UsageError(
            f"{human}: none of its {plural(len(read.events), 'correction')} is a judgment"
            f"{drawn}{hidden} that speaks of one of these labels ({labels}): {remedy}"
        )
    notify(
        f"judgments of records that count: {found.judgments}, of these made blind: {found.blind}"
    )
    return found.human
