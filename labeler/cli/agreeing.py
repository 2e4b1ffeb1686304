"""The command that compares labels with each other and with people."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.errors import UsageError
from labeler.sentences.characters import plain_json

if TYPE_CHECKING:
    from labeler.comparing.agreement import LabelAgreement, PeopleAgreement
    from labeler.comparing.human_labels import HumanLabels

STDIN = "-"


def agree(
    labels: Annotated[str, typer.Argument(help="Label file or store folder: A.")],
    other: Annotated[
        str | None, typer.Argument(help="Label file or store folder to compare with: B.")
    ] = None,
    *,
    human: Annotated[
        str | None,
        typer.Option(
            help="Human labels instead of B: JSON Lines or CSV with the columns id, sentence, "
            "annotator, field, value; or a file of corrections."
        ),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Compare by this metadata column as well.")] = None,
    trial: Annotated[int | None, typer.Option(help="Only this trial of A.")] = None,
    trial_b: Annotated[
        int | None, typer.Option("--trial-b", help="Only this trial of B; by default as of A.")
    ] = None,
    random_sample: Annotated[
        bool,
        typer.Option(
            "--random-sample",
            help="The human-judged records were drawn at random; of corrections, only those that "
            "were.",
        ),
    ] = False,
    blind_only: Annotated[
        bool,
        typer.Option(
            "--blind-only",
            help="Of corrections, only judgements by people who did not see the judge's verdicts.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The comparison as JSON.")] = False,
) -> None:
    """Tell how far two label files agree, or a judge with people.

    Human labels: a row is one judgement. id: the record's. sentence: its key, as 0a or a; empty
    where the whole record is judged. annotator: who judged; may be left out. field: relevant,
    utilized or supported of a sentence, overall_supported or a metric of a record. value: yes or
    no, or a number from 0 to 1. A column named after a field can stand for field and value.

    Corrections of A's labels are human labels too: all that a person judged, agreeing or not.
    """
    from labeler.cli import agreement_view

    if other is not None and human is not None:
        raise UsageError(
            f"a second label file ({other}) and human labels (--human {human}) exclude each other: "
            "compare with one at a time"
        )
    if other is None and human is None:
        raise UsageError("name a second label file to compare with, or human labels (--human)")
    if other is not None:
        if random_sample:
            raise UsageError("--random-sample speaks of human labels: it goes with --human")
        if blind_only:
            raise UsageError("--blind-only speaks of corrections: it goes with --human")
        found = _compare(labels, other, by, trial, trial if trial_b is None else trial_b)
        if as_json:
            _print_json(found.as_json())
        else:
            agreement_view.print_labels(found)
    elif human is not None:
        if trial_b is not None:
            raise UsageError("--trial-b speaks of a second label file: use --trial with --human")
        against = _judge(
            labels, human, by, trial, random_sample=random_sample, blind_only=blind_only
        )
        if as_json:
            _print_json(against.as_json())
        else:
            agreement_view.print_people(against)


def _compare(
    labels: str, other: str, by: str | None, trial: int | None, trial_b: int | None
) -> LabelAgreement:
    from labeler import api
    from labeler.comparing.agreement import compare_labels

    if labels == other and (labels == STDIN or trial == trial_b):
        raise UsageError(
            f"{labels} is compared with itself; name two files, or two trials of one "
            "(--trial 0 --trial-b 1)"
        )
    return compare_labels(
        api.stored_outcomes(labels),
        api.stored_outcomes(other),
        names=(labels, other),
        trials=(trial, trial_b),
        by=by,
    )


def _judge(
    labels: str,
    human: str,
    by: str | None,
    trial: int | None,
    *,
    random_sample: bool,
    blind_only: bool,
) -> PeopleAgreement:
    from labeler import api
    from labeler.comparing.agreement import compare_with_people

    if labels == human == STDIN:
        raise UsageError("only one of labels and human labels can come from standard input")
    return compare_with_people(
        api.stored_outcomes(labels),
        _human_labels(labels, human, trial, random_sample=random_sample, blind_only=blind_only),
        name=labels,
        human_name=human,
        trial=trial,
        by=by,
        random_sample=random_sample,
    )


def _human_labels(
    labels: str, human: str, trial: int | None, *, random_sample: bool, blind_only: bool
) -> HumanLabels:
    """What people said, of rows of their own or as corrections of the labels."""
    from labeler import api
    from labeler.cli.terminal import say
    from labeler.comparing.corrected_labels import for_agreement
    from labeler.comparing.human_labels import read_human_labels
    from labeler.data.corrections.file import is_corrections_file, read_corrections

    if not is_corrections_file(human):
        if blind_only:
            raise UsageError(
                f"--blind-only chooses among corrections, and {human} is no file of them: leave it "
                "out, or name what labeler review or labeler corrections import wrote"
            )
        return read_human_labels(human)
    if labels == STDIN:
        raise UsageError("corrections need labels that can be read twice: name the label file")
    read = read_corrections(human)
    for where in read.torn:
        say(f"{where}: cut off, as by a crash, and left out")
    found = for_agreement(
        read.events,
        api.stored_outcomes(labels),
        trial=trial,
        random_sample=random_sample,
        blind_only=blind_only,
        name=human,
        labels_name=labels,
    )
    say(f"judgements of records that count: {found.judgements}, of these made blind: {found.blind}")
    return found.human


def _print_json(value: object) -> None:
    sys.stdout.write(plain_json(json.dumps(value, ensure_ascii=False)) + "\n")
