"""The ``review`` command: the review app in the browser."""

from __future__ import annotations

import getpass
import shlex
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from labeler.cli.interrupt import Interrupted
from labeler.cli.terminal import notify, plural
from labeler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from labeler.labels.record import LabelRecord
    from labeler.review.plan_reading import PlanReading
    from labeler.review.session import ReviewSession, ReviewSettings

DEFAULT_METRICS = "relevance,utilization,completeness,adherence"


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
MetricIds = Annotated[
    str,
    typer.Option(
        "--metrics",
        help="Metrics to show, comma-separated; by default those of TRACe.",
        show_default=False,
    ),
]


def review(
    labels: Annotated[
        str | None, typer.Argument(help="Label file, store folder, or - for standard input.")
    ] = None,
    *,
    plan: Plan = None,
    answers: Answers = None,
    annotator: Annotated[
        str | None,
        typer.Option(help="Annotator name; by default your user name."),
    ] = None,
    queue: Order = "random",
    doubt: Annotated[
        str | None, typer.Option(help="Model of 'labeler doubt -o' that says what is doubtful.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of records; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the sample.")] = 0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the judge's verdicts until you have judged.")
    ] = False,
    corrections: Corrections = None,
    ids: MetricIds = DEFAULT_METRICS,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 picks a free one.")
    ] = 0,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Correct labels in a browser on this machine; Ctrl-C ends it."""
    from labeler.data.corrections.file import corrections_path
    from labeler.review.session import ReviewSettings

    if plan is not None:
        reading = _reading(plan, answers, _name(annotator), labels)
        code = _serve(reading, port, open_browser=open_browser)
        _conclude_reading(reading, labels or "LABELS")
        raise typer.Exit(code)
    if labels is None or answers is not None:
        raise UsageError("name the labels to review, or a plan to read: --plan PLAN.csv")
    if corrections is None and labels == "-":
        raise UsageError("labels from standard input: name the corrections file (--corrections)")
    settings = ReviewSettings(
        name=labels,
        annotator=_name(annotator),
        fixed=annotator is not None or blind,
        queue=queue,
        blind=blind,
    )
    path = corrections_path(labels) if corrections is None else corrections
    session = _session(labels, path, settings, ids=ids, sample=sample, seed=seed, doubt=doubt)
    code = _serve(session, port, open_browser=open_browser)
    _conclude(session, labels)
    raise typer.Exit(code)


def _reading(plan: str, answers: str | None, annotator: str, labels: str | None) -> PlanReading:
    """Return the reading of a plan, begun or continued.

    Raises:
        UsageError: the plan was made of other labels, or see :class:`PlanReading`.
    """
    from pathlib import Path

    from labeler.review.plan_reading import PlanReading

    path = Path(answers or Path(plan).with_suffix(".answers.csv"))
    if path.suffix != ".csv" or path.absolute() == Path(plan).absolute():
        raise UsageError(f"--answers {path}: name another .csv file than the plan")
    if labels is not None:
        from labeler.cli.running import outcomes_at
        from labeler.evidence.plan_files import read_header

        read_header(plan).units(plan, outcomes_at(labels))
    reading = PlanReading(plan, path, annotator)
    notify(reading.progress)
    return reading


def _conclude_reading(reading: PlanReading, labels: str) -> None:
    """Print the number of sentences left, and the command that uses the answers."""
    if not reading.answers.exists():
        notify(f"\n{reading.progress}; nothing was answered, and no file written")
        return
    notify(f"\n{reading.progress}; the answers are in {reading.answers}")
    of, plan, by = (shlex.quote(str(one)) for one in (labels, reading.plan, reading.answers))
    notify(f"next: labeler certify {of} --plan {plan} --answers {by} -o certificate.json")


def _name(given: str | None) -> str:
    from labeler.review.messages import check_name

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
    ids: str,
    sample: int | None,
    seed: int,
    doubt: str | None,
) -> ReviewSession:
    from labeler import api
    from labeler.calculators import select_metrics
    from labeler.data.corrections.file import CorrectionsFile
    from labeler.review.label_set import LabelSet, queue_places
    from labeler.review.session import CorrectionsLog, ReviewSession

    metrics = select_metrics(ids)
    log = CorrectionsLog(CorrectionsFile(path))
    log.file.check_appendable()
    if not log.file.path.parent.is_dir():
        raise UsageError(f"{path}: there is no such folder to keep corrections in; make it first")
    if settings.queue == "doubtful":
        notify("auditing all labels, to rank them")
    snapshot = log.snapshot()  # report an unreadable file before the audit
    label_set = LabelSet(
        api.read_labels(labels),
        metrics,
        doubt=_ranking(doubt) if settings.queue == "doubtful" else None,
        name=labels,
    )
    places = queue_places(
        settings.queue, label_set.keys, size=sample, seed=seed, doubts=label_set.doubts
    )
    session = ReviewSession(label_set, places, log, settings, metrics)
    known = sum(key in label_set.places for key, _ in snapshot.current)
    _describe(session, known)
    return session


def _ranking(model: str | None) -> Callable[[LabelRecord], float]:
    """Return what ranks labels: the suspicion score, or a fitted model."""
    if model is None:
        from labeler.audit import examine

        return lambda record: examine(record)[1]
    from labeler.evidence.doubt import Doubt

    fitted = Doubt.load(model)
    return lambda record: fitted.of([record]).by_record().get(record.id, 0.0)


def _describe(session: ReviewSession, known: int) -> None:
    """Print the number and order of the labels to review, and warnings."""
    size, labels = len(session.places), len(session.labels)
    drawn = {"random": "drawn at random", "doubtful": "the most suspicious first"}
    how = drawn.get(session.settings.queue, "in the order of the file")
    failed = f", {session.labels.failed} rows failed" if session.labels.failed else ""
    repeated = len(session.labels.rows) - labels
    rows = "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"
    twice = f", {rows} the judgment of another" if repeated else ""
    notify(f"{size} of {labels} labels to review, {how}{twice}{failed}")
    if known:
        notify(f"{known} judgments are already stored in {session.log.file.path}")
    if session.settings.blind:
        notify(f"verdicts are hidden until {session.settings.annotator} has judged")
    if session.settings.blind and session.settings.queue == "doubtful":
        notify("but a record that comes early has an audit finding")


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
    notify(f"\n{plural(session.saved, 'judgment')} stored in {path}")
    if path.exists():
        of, by = shlex.quote(labels), shlex.quote(str(path))
        notify(f"correct the labels:       labeler corrections apply {of} {by} -o corrected.jsonl")
        notify(f"compare judge and people: labeler agree {of} --human {by}")
