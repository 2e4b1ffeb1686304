"""The commands ``agree`` and ``thresholds``: labels against each other and against people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.comparing import Details, check_sides
from labeler.cli.options import Json, expand_options
from labeler.cli.terminal import notify, notify_repeated, print_json
from labeler.comparing.options import ChoiceOptions, HumanOptions, SideOptions
from labeler.data.lines import STDIO
from labeler.errors import UsageError

if TYPE_CHECKING:
    from labeler.comparing.calibration import Calibration
    from labeler.comparing.human_agreement import PeopleAgreement
    from labeler.comparing.human_labels import HumanLabels


@expand_options
def agree(
    labels: Annotated[str, typer.Argument(help="Label file or store folder: A.")],
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

    Human labels: a row is one judgment. id: the record's. sentence: its key, as 0a or a; empty
    where the whole record is judged. annotator: who judged; may be left out. field: relevant,
    utilized or supported of a sentence, overall_supported or a metric of a record. value: yes or
    no, or a number from 0 to 1. A column named after a field can stand for field and value.

    Corrections of A's labels are human labels too: all that a person judged, agreeing or not.
    """
    from labeler import api
    from labeler.cli import agreement_view
    from labeler.comparing.agreement import compare_labels

    _check(other, people, sides)
    if other is None:
        against = _against_people(labels, people, sides)
        if as_json:
            print_json(against.as_json())
        else:
            agreement_view.print_people(against, details=details)
        return
    check_sides(labels, other, sides)
    found = compare_labels(
        api.checked_outcomes(labels),
        api.checked_outcomes(other),
        names=(labels, other),
        **asdict(sides),
    )
    notify_repeated(found.counts.duplicates)
    if as_json:
        print_json(found.as_json())
    else:
        agreement_view.print_labels(found, details=details)


def _check(other: str | None, people: HumanOptions, sides: SideOptions) -> None:
    """Reject contradictory options.

    Raises:
        UsageError: there is not exactly one thing to compare with, or an option does not fit it.
    """
    human, second = people.human is not None, other is not None
    for wrong, message in (
        (
            human and second,
            f"{other} and --human {people.human} exclude each other: compare with one at a time",
        ),
        (
            not (human or second),
            "name a second label file to compare with, or human labels (--human)",
        ),
        (
            second and people.random_sample,
            "--random-sample is for human labels: it goes with --human",
        ),
        (second and people.blind_only, "--blind-only is for corrections: it goes with --human"),
        (
            not second and sides.b_trial is not None,
            "--b-trial is for a second label file: use --trial with --human",
        ),
        (
            not second and sides.b_signature is not None,
            "--b-signature is for a second label file: use --a-signature with --human",
        ),
    ):
        if wrong:
            raise UsageError(message)


def _against_people(labels: str, people: HumanOptions, sides: SideOptions) -> PeopleAgreement:
    from labeler import api
    from labeler.comparing.human_agreement import compare_with_people

    return compare_with_people(
        api.checked_outcomes(labels),
        human_labels(labels, people, sides),
        by=sides.by,
        a_signature=sides.a_signature,
        trial=sides.trial,
        name=labels,
        human_name=str(people.human),
        random_sample=people.random_sample,
    )


@expand_options
def thresholds(
    labels: Annotated[str, typer.Argument(help="Label file or store folder: A.")],
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
    from labeler.cli import agreement_view

    if people.human is None:
        raise UsageError("name human labels (--human FILE): labeler review LABELS makes some")
    found = calibrated(labels, people, choice, precision)
    if as_json:
        print_json(found.as_json())
    else:
        agreement_view.print_calibration(found, details=details)


def calibrated(
    labels: str,
    people: HumanOptions,
    choice: ChoiceOptions | None = None,
    precision: float = 0.9,
) -> Calibration:
    """Compare stated probabilities with people's verdicts.

    Args:
        labels: place of the labels.
        people: the human labels, with a file named.
        choice: the labels that are meant; by default all.
        precision: precision of a threshold.

    Raises:
        UsageError: see :func:`labeler.comparing.calibration.calibrate`.
    """
    from labeler import api
    from labeler.comparing.calibration import calibrate
    from labeler.comparing.sides import Choice

    choice = choice or ChoiceOptions()
    return calibrate(
        api.checked_outcomes(labels),
        human_labels(labels, people, choice),
        precision=precision,
        choice=Choice(labels, choice.a_signature, choice.trial),
        human_name=str(people.human),
    )


def human_labels(labels: str, people: HumanOptions, chosen: ChoiceOptions) -> HumanLabels:
    """Read human labels, from rows of their own or from corrections of the labels.

    Args:
        labels: place of the labels.
        people: the human labels, with a file named.
        chosen: the labels that are meant.

    Raises:
        UsageError: the file cannot be read, or none of its corrections is about these labels.
    """
    from labeler import api
    from labeler.comparing import corrected_labels
    from labeler.comparing.human_labels import read_human_labels
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
    found = corrected_labels.human_labels(
        read.events,
        api.checked_outcomes(labels),
        choice=Choice(labels, chosen.a_signature, chosen.trial),
        random_sample=people.random_sample,
        blind_only=people.blind_only,
        name=human,
    )
    if not found.judgments:
        drawn = " of a record drawn at random" if people.random_sample else ""
        hidden = " made blind" if people.blind_only else ""
        raise UsageError(
            f"{human}: none of its {len(read.events)} corrections is a judgment{drawn}{hidden} "
            f"that speaks of one of these labels ({labels}): name the label file that was "
            "corrected"
        )
    notify(
        f"judgments of records that count: {found.judgments}, of these made blind: {found.blind}"
    )
    return found.human
