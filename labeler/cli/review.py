"""The ``review`` command: the review app in the browser."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from labeler import api
from labeler.calculators import select_metrics
from labeler.calculators.registry import headline_metrics, plain_name
from labeler.calculators.summary_text import in_words
from labeler.cli import options
from labeler.cli.options import check_label_target, labels_at
from labeler.cli.terminal import Interrupted, notify
from labeler.comparing.human_labels import MeanChange, mean_changes
from labeler.data.corrections import Ignored
from labeler.data.corrections.applying import Applied, apply_corrections
from labeler.data.corrections.file import CorrectionsFile, corrections_path, read_corrections
from labeler.data.label_files import write_outcomes
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.labels.record import LabelRecord
from labeler.sentences.display import number, plural

if TYPE_CHECKING:
    from labeler.review.plan_reading import PlanReading
    from labeler.review.session import ReviewSession, ReviewSettings

METRICS = "relevance,utilization,completeness,adherence"
"""Metrics that the app shows: people correct what these are computed from."""

Plan = Annotated[
    str | None,
    typer.Option(help="Read the sentences of this plan of labeler certify instead."),
]
Answers = Annotated[
    str | None,
    typer.Option(help="File for the answers to the plan; by default next to it."),
]
Order = Annotated[
    Literal["random", "doubtful", "order"],
    typer.Option(
        help="Order of records: random (results hold for all records), doubtful (most "
        "suspicious first), or order (as in the file)."
    ),
]
Corrections = Annotated[
    str | None, typer.Option(help="Corrections file; by default next to the labels.")
]


def review(
    labels: options.Labels,
    *,
    plan: Plan = None,
    answers: Answers = None,
    annotator: Annotated[
        str | None,
        typer.Option(help="Annotator name; by default your user name."),
    ] = None,
    queue: Order = "random",
    doubt: Annotated[
        str | None, typer.Option(help="Model that 'labeler doubt -o' wrote, to rank by doubt.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of records; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the judge's verdicts until you have judged.")
    ] = False,
    corrections: Corrections = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 picks a free one.")
    ] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Correct labels in a browser on this machine; Ctrl-C ends it."""
    from labeler.review.session import ReviewSettings

    if plan is not None:
        own = {"doubt": doubt, "sample": sample, "blind": blind, "corrections": corrections}
        if others := [f"--{name}" for name, value in own.items() if value]:
            raise UsageError(
                f"--plan cannot be combined with {', '.join(others)}: it has its own sentences"
            )
        reading = _reading(plan, answers, _name(annotator), labels)
        code = _serve(reading, port, open_browser=open_browser)
        _conclude_reading(reading, labels)
        raise typer.Exit(code)
    if answers is not None:
        raise UsageError(f"--answers {answers} needs the plan that they answer: --plan PLAN.csv")
    if corrections is None and labels == STDIO:
        raise UsageError("labels from standard input: name the corrections file (--corrections)")
    settings = ReviewSettings(
        name=labels,
        annotator=_name(annotator),
        queue=queue,
        blind=blind,
    )
    path = corrections_path(labels) if corrections is None else corrections
    session = _session(labels, path, settings, sample=sample, seed=seed, doubt=doubt)
    code = _serve(session, port, open_browser=open_browser)
    _conclude(session, labels)
    raise typer.Exit(code)


def _reading(plan: str, answers: str | None, annotator: str, labels: str) -> PlanReading:
    """Return the reading of a plan, begun or continued.

    Raises:
        UsageError: the plan was made of other labels, or see :class:`PlanReading`.
    """
    from labeler.review.plan_reading import PlanReading

    path = Path(answers or Path(plan).with_suffix(".answers.csv"))
    if path.suffix != ".csv" or path.absolute() == Path(plan).absolute():
        raise UsageError(f"--answers {path}: name another .csv file than the plan")
    reading = PlanReading(plan, labels_at(labels), path, annotator)
    notify(reading.progress)
    return reading


def _conclude_reading(reading: PlanReading, labels: str) -> None:
    """Print the number of sentences left, and the command that uses the answers."""
    if not reading.answers.exists():
        notify(f"\n{reading.progress}; nothing was answered, and no file written")
        return
    notify(f"\n{reading.progress}; the answers are in {reading.answers}")
    of, plan, by = (shlex.quote(str(one)) for one in (labels, reading.plan, reading.answers))
    notify(f"next: labeler certify {of} --plan {plan} --answers {by} -o certificate.html")


def _name(given: str | None) -> str:
    from labeler.review.access import check_name

    try:
        return check_name((getpass.getuser() if given is None else given).strip())
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise UsageError(
            "an annotator's name is a text of 1 to 100 characters in one line: give yours with "
            "--annotator"
        ) from error


def _session(
    labels: str,
    path: str | Path,
    settings: ReviewSettings,
    *,
    sample: int | None,
    seed: int,
    doubt: str | None,
) -> ReviewSession:
    from labeler.review.label_set import LabelSet, queue_places
    from labeler.review.session import CorrectionsLog, ReviewSession

    log = CorrectionsLog(CorrectionsFile(path))
    log.file.check_appendable()
    if not log.file.path.parent.is_dir():
        next(iter(api.read_labels(labels)), None)  # report labels that are not there first
        raise UsageError(f"{path}: there is no such folder to keep corrections in; make it first")
    if settings.queue == "doubtful":
        notify("auditing all labels, to rank them")
    elif doubt is not None:
        raise UsageError("--doubt ranks records, and these come in another order: --queue doubtful")
    log.snapshot()  # report an unreadable file before the audit
    label_set = LabelSet(
        api.read_labels(labels),
        select_metrics(METRICS),
        doubt=_ranking(doubt) if settings.queue == "doubtful" else None,
        name=labels,
    )
    places = queue_places(
        settings.queue, label_set.keys, size=sample, seed=seed, doubts=label_set.doubts
    )
    session = ReviewSession(label_set, places, log, settings)
    _describe(session)
    return session


def _ranking(model: str | None) -> Callable[[LabelRecord], float]:
    """Return what ranks labels: the suspicion score, or a fitted model."""
    if model is None:
        from labeler.audit import examine

        return lambda record: examine(record)[1]
    from labeler.evidence.doubt import Doubt

    fitted = Doubt.load(model)
    return lambda record: fitted.of([record]).by_record().get(record.id, 0.0)


def _describe(session: ReviewSession) -> None:
    """Print the number and order of the labels to review, and warnings."""
    size, labels = len(session.places), len(session.labels)
    drawn = {"random": "drawn at random", "doubtful": "the most suspicious first"}
    how = drawn.get(session.settings.queue, "in the order of the file")
    failed = f", {plural(session.labels.failed, 'row')} failed" if session.labels.failed else ""
    repeated = len(session.labels.rows) - labels
    rows = "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"
    twice = f", {rows} the judgment of another" if repeated else ""
    notify(f"{size:,} of {plural(labels, 'label')} to review, {how}{twice}{failed}")
    own, others = _judgments(session)
    if own:
        notify(f"{session.log.file.path} has {plural(own, 'judgment')} already")
    if others:
        notify(f"{session.log.file.path} has {plural(others, 'judgment')} of other labels")
    if session.settings.blind:
        notify(f"verdicts are hidden until {session.settings.annotator} has judged")
    if session.settings.blind and session.settings.queue == "doubtful":
        notify("but a record that comes early has an audit finding")


def _judgments(session: ReviewSession) -> tuple[int, int]:
    """Return the numbers of current judgments of the session's labels, and of other labels."""
    judged = [key for key, _ in session.log.snapshot().current]
    own = sum(key in session.labels.places for key in judged)
    return own, len(judged) - own


def _serve(session: ReviewSession | PlanReading, port: int, *, open_browser: bool) -> int:
    """Serve the app until it is interrupted, and return the exit code."""
    import webbrowser

    from labeler.review.app import listening, review_server

    with listening(port) as (taken, address):
        notify(f"open {address}")
        notify("this address is for you alone; Ctrl-C ends the review app")
        if open_browser and not webbrowser.open(str(address)):
            notify("no browser could be opened: open the address yourself")
        try:
            review_server(session, address=address, on_error=notify).run(sockets=[taken])
        except Interrupted as interrupt:
            return interrupt.exit_code
    return 0


def _conclude(session: ReviewSession, labels: str) -> None:
    """Print the number of stored judgments, and the commands that use them."""
    path = session.log.file.path
    own, _ = _judgments(session)
    notify(f"\n{plural(own, 'judgment')} stored in {path}")
    if own:
        of, by = shlex.quote(labels), shlex.quote(str(path))
        notify(f"correct the labels:       labeler corrections apply {of} {by} -o corrected.jsonl")
        notify(f"compare judge and people: labeler agree {of} --human {by}")


SHOWN = 5
"""Largest number of items listed."""
_REASONS = {
    "no_label": "of labels that are not there",
    "unsure": "unsure",
    "no_judgment": "without a judgment",
    "does_not_fit": "that do not fit their label",
}

Labels = Annotated[str, typer.Argument(help="Label file or store folder of the judge's labels.")]


def apply(
    labels: Labels,
    corrections: Annotated[
        str | None,
        typer.Argument(help="Corrections file; by default LABELS.corrections.jsonl."),
    ] = None,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="Label file to write; - is standard output.")
    ] = "-",
) -> None:
    """Write the labels as most people corrected them.

    The judge's labels stay as they are. Signatures name the corrected ones.
    """
    if labels == STDIO:
        raise UsageError("labels are read twice here, which standard input cannot be: name a file")
    path = corrections or str(corrections_path(labels))
    check_label_target([labels, path], output)
    next(iter(api.read_labels(labels)), None)  # report unreadable labels first
    if corrections is None and not Path(path).exists():
        raise _not_corrected(labels, path)
    read = read_corrections(path)
    report_truncated(read.torn)
    if not read.events:
        raise _not_corrected(labels, path)
    applied, outcomes = apply_corrections(lambda: api.read_labels(labels), read.events)
    strange = [each for each in applied.ignored if each.why == "no_label"]
    if strange and len(strange) == len(applied.ignored) and not applied.used:
        raise UsageError(
            f"{path}: none of its {plural(len(applied.ignored), 'correction')} speaks of a label "
            f"of {labels}: name the label file that was corrected"
        )
    changes = mean_changes(api.read_labels(labels), write_outcomes(outcomes, output), applied)
    notify(_conclusion(applied, changes))
    for line in chain(
        _summary(applied), _mean_lines(changes), _selection_lines(applied, labels, path)
    ):
        notify(line)
    where = "standard output" if output == STDIO else output
    notify(f"{plural(applied.rows, 'row')} written to {where}")


def _not_corrected(labels: str, path: str) -> UsageError:
    return UsageError(
        f"{labels}: nobody has corrected these yet (there is nothing in {path}): labeler review "
        f"{shlex.quote(labels)}"
    )


def report_truncated(truncated: Iterable[str]) -> None:
    """Report lines of a corrections file that a crash cut off."""
    for where in truncated:
        notify(f"{where}: cut off, as by a crash, and left out; correct its record again")


def _conclusion(applied: Applied, changes: Sequence[MeanChange]) -> str:
    """Return how many labels people changed, and what that did to the first metric."""
    changed = f"{len(applied.changed)} of {plural(applied.records, 'label')} changed by people"
    by_metric = {one.before.metric: one for one in reversed(changes)}
    for metric in headline_metrics(by_metric)[:1]:
        before, after = (in_words(row)[0] for row in by_metric[metric])
        changed += f": {plain_name(metric)} {before} → {after}"
    return f"{changed}."


def _summary(applied: Applied) -> Iterator[str]:
    """Yield lines about the applied and ignored corrections."""
    fields = _listed(applied.by_field) or "none"
    yield f"verdicts changed: {fields}; {plural(applied.confirmed, 'label')} judged and kept"
    for change in applied.changed[:SHOWN]:
        fields, people = _listed(change.differences.counts()), ", ".join(change.annotators)
        yield f"  {change.id!r:.80}: {fields}; by {people}"
    yield from more_lines(len(applied.changed))
    yield f"corrections that counted: {applied.used}; that did not: {len(applied.ignored)}"
    for reason, words in _REASONS.items():
        if group := [ignored for ignored in applied.ignored if ignored.why == reason]:
            yield f"  {len(group)} {words}: {_list_ignored(group)}"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)


def _mean_lines(changes: Sequence[MeanChange]) -> Iterator[str]:
    """Yield each mean that changed, before and after, under its judge configuration."""
    labels = dict.fromkeys(before.label for before, _ in changes)
    for label in labels:
        own = [change for change in changes if change.before.label == label]
        yield f"means before → after, of {label}:" if len(labels) > 1 else "means before → after:"
        for change in own:
            before, after = (f"{number(row.mean)} (n {row.defined})" for row in change)
            yield f"  {change.before.metric.id} {before} → {after}"
    if not changes:
        yield "no mean changed"


def _selection_lines(applied: Applied, labels: str, corrections: str) -> Iterator[str]:
    """Yield the selection of the judged labels, with its consequence for the means."""
    labels, corrections = shlex.quote(labels), shlex.quote(corrections)
    for selection in applied.selections.values():
        rest = selection.labels - selection.judged
        if selection.is_biased:
            yield f"warning: {selection.warning(labels, corrections)}"
        elif rest:
            yield (
                f"judged by people: {selection}; the verdicts of the other {rest:,} are the "
                f"judge's; for all records: labeler agree {labels} --human {corrections} "
                "--random-sample"
            )
        else:
            yield f"judged by people: {selection}"


def _list_ignored(ignored: list[Ignored]) -> str:
    """List the first ignored corrections, with details."""
    shown = [
        f"{each.correction.id!r:.80} by {each.correction.annotator}"
        f"{f' ({each.detail:.200})' if each.detail else ''}"
        for each in ignored[:SHOWN]
    ]
    return ", ".join(shown + ["…"] * (len(ignored) > SHOWN))


def more_lines(count: int) -> Iterator[str]:
    """Yield a line about the items that a list leaves out, if there are any."""
    if count > SHOWN:
        yield f"  … and {count - SHOWN} more"
