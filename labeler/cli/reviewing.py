"""The command that opens the review desk."""

from __future__ import annotations

import enum
import getpass
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from labeler.cli.interrupt import Interrupted
from labeler.cli.reading import Labels
from labeler.cli.terminal import say
from labeler.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from labeler.review.session import Desk, Terms

DEFAULT_METRICS = "relevance,utilization,completeness,adherence"


class QueueName(enum.StrEnum):
    """How records come before a person."""

    random = "random"
    doubtful = "doubtful"
    order = "order"


def review(
    labels: Labels,
    *,
    annotator: Annotated[
        str | None,
        typer.Option(help="Who judges; by default your name on this system, to change there."),
    ] = None,
    queue: Annotated[
        QueueName,
        typer.Option(
            help="In which order records come: drawn at random, so that what is judged speaks for "
            "all of them; the most doubtful first; or that of the file."
        ),
    ] = QueueName.random,
    sample: Annotated[
        int | None, typer.Option(min=1, help="How many records come at most; by default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same records.")] = 0,
    blind: Annotated[
        bool, typer.Option("--blind", help="Hide the judge's verdicts until one has judged.")
    ] = False,
    corrections: Annotated[
        str | None, typer.Option(help="Where corrections are kept; by default beside the labels.")
    ] = None,
    ids: Annotated[
        str, typer.Option("--metrics", help="Ids of the metrics shown, comma-separated.")
    ] = DEFAULT_METRICS,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Correct a judge's labels in the browser, on this machine; Ctrl-C ends it."""
    from labeler.data.corrections.overlay import corrections_path
    from labeler.review.session import Terms

    if corrections is None and labels == "-":
        raise UsageError("labels from standard input: name the corrections file (--corrections)")
    terms = Terms(
        name=labels,
        annotator=_name(annotator),
        fixed=annotator is not None or blind,
        queue=queue.value,
        blind=blind,
    )
    path = corrections_path(labels) if corrections is None else corrections
    desk = _desk(labels, path, terms, ids=ids, sample=sample, seed=seed)
    code = 0
    try:
        _serve(desk, port, open_browser=open_browser)
    except Interrupted as interrupt:
        code = interrupt.exit_code
    _conclude(desk, labels)
    raise typer.Exit(code)


def _name(given: str | None) -> str:
    from labeler.review.messages import check_name

    try:
        return check_name((getpass.getuser() if given is None else given).strip())
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise UsageError(
            "an annotator's name is a text of 1 to 100 characters in one line: give yours with "
            "--annotator"
        ) from error


def _desk(
    labels: str, path: str | Path, terms: Terms, *, ids: str, sample: int | None, seed: int
) -> Desk:
    from labeler import api
    from labeler.audit import doubt_of, findings_of
    from labeler.calculators import select_metrics
    from labeler.data.corrections.overlay import CorrectionsFile
    from labeler.review.collection import collect
    from labeler.review.queues import places_in
    from labeler.review.saving import Ledger
    from labeler.review.session import Desk

    metrics = select_metrics(ids)
    ledger = Ledger(CorrectionsFile(path))
    ledger.file.check_unpacked()
    if not ledger.file.path.parent.is_dir():
        raise UsageError(f"{path}: there is no such folder to keep corrections in; make it first")
    if terms.queue == "doubtful":
        say("auditing all labels, to rank them")
    standing = ledger.standing()  # a file that cannot be read is told of before the work
    collection = collect(
        api.read_labels(labels),
        metrics,
        doubt=(lambda record: doubt_of(findings_of(record))) if terms.queue == "doubtful" else None,
        name=labels,
    )
    places = places_in(
        terms.queue, collection.keys, size=sample, seed=seed, doubts=collection.doubts
    )
    desk = Desk(collection, places, ledger, terms, metrics)
    known = sum(key in collection.known for key, _ in standing.current)
    _describe(desk, known)
    return desk


def _describe(desk: Desk, known: int) -> None:
    """Say what is to be reviewed, and what to know of it."""
    size, labels = len(desk.places), len(desk.collection)
    drawn = {"random": "drawn at random", "doubtful": "the most doubtful first"}
    how = drawn.get(desk.terms.queue, "in the order of the file")
    failed = f", {desk.collection.failed} rows failed" if desk.collection.failed else ""
    repeated = len(desk.collection.rows) - labels
    twice = f", {_rows(repeated)} the judgement of another" if repeated else ""
    say(f"{size} of {labels} labels to review, {how}{twice}{failed}")
    if known:
        say(f"{known} judgements are stored already in {desk.ledger.file.path}")
    if desk.terms.blind:
        say(f"verdicts are hidden until {desk.terms.annotator} has judged")
    if desk.terms.blind and desk.terms.queue == "doubtful":
        say("but that a record comes early tells that the audit found something in its label")


def _rows(repeated: int) -> str:
    return "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"


def _serve(desk: Desk, port: int, *, open_browser: bool) -> None:
    from labeler.review.figures import Figures
    from labeler.review.serving import desk_server, listening

    queue = desk.keys if desk.terms.queue == "random" else ()
    figures = Figures(desk.collection, desk.ledger, desk.metrics, drawn=queue, hidden=desk.hidden)
    with listening(port) as (taken, address):
        say(f"open {address}")
        say("this address is for you alone; Ctrl-C ends the desk")
        if open_browser:
            _open(str(address))
        desk_server(desk, figures, address=address, complain=say).run(sockets=[taken])


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        say("no browser could be opened: open the address yourself")


def _conclude(desk: Desk, labels: str) -> None:
    """Say what was stored, and what to do with it."""
    path = desk.ledger.file.path
    count = "1 judgement" if desk.stored == 1 else f"{desk.stored} judgements"
    say(f"\n{count} stored in {path}")
    if path.exists():
        of, by = shlex.quote(labels), shlex.quote(str(path))
        say(f"correct the labels:       labeler corrections apply {of} {by} -o corrected.jsonl")
        say(f"compare judge and people: labeler agree {of} --human {by}")
