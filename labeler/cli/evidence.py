"""The commands ``certify``, ``doubt``, ``exam``, and ``anchors make`` and ``check``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labeler.cli import options
from labeler.cli.options import Labels, labels_at, reject_overwrite
from labeler.cli.terminal import SOME_FAILED, notify, print_display, print_found, print_lines
from labeler.data.lines import STDIO
from labeler.errors import UsageError
from labeler.judges.options import JudgeOptions
from labeler.labeling.options import BLIND, AskOptions, ExamOptions
from labeler.sentences.display import plural

if TYPE_CHECKING:
    from labeler.audit import SecondJudge


def certify(
    labels: Labels,
    *,
    metric: Annotated[
        str | None,
        typer.Option(
            help="adherence_fraction (the default), adherence, hallucination_rate, relevance, "
            "utilization or completeness."
        ),
    ] = None,
    within: Annotated[
        float | None, typer.Option(help="Half-width of the interval, such as 0.02.")
    ] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Value to decide on instead, such as 0.9.")
    ] = None,
    plan: Annotated[
        str | None, typer.Option(help="Plan to write or continue; by default next to LABELS.")
    ] = None,
    answers: Annotated[
        str | None,
        typer.Option(help="People's answers: CSV with id, sentence, answer; or corrections."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Certificate to write, .json or .html.")
    ] = None,
    population: Annotated[
        bool,
        typer.Option("--population", help="Certify the stream that the records were drawn from."),
    ] = False,
    doubt: options.Doubt = None,
    level: Annotated[
        float | None, typer.Option(help="Level of the interval, between 0 and 1.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws.")] = None,
) -> int:
    """Certify a metric as people would judge it, from few sentences that they read.

    First plans the sentences to read. With --answers, writes the certificate, or adds sentences to
    the plan (exit 1).
    """
    if plan is None and labels == STDIO:
        raise UsageError("labels from standard input: name the plan (--plan PLAN.csv)")
    path = plan or f"{labels.rstrip('/')}.plan.csv"
    goal = {"metric": metric, "within": within, "at_least": at_least, "level": level, "seed": seed}
    wanted: dict[str, Any] = {name: value for name, value in goal.items() if value is not None}
    wanted |= {"population": True} if population else {}
    if answers is None:
        return _plan(labels, path, wanted, doubt=doubt, output=output)
    if doubt is not None:
        raise UsageError(f"{path} keeps the doubts that it was made with: leave --doubt out")
    return _continue(labels, path, answers, wanted, output=output)


def _plan(
    labels: str, path: str, wanted: dict[str, Any], *, doubt: str | None, output: str | None
) -> int:
    """Write the first plan."""
    from labeler.evidence.certificate import Goal
    from labeler.evidence.doubt import Doubt
    from labeler.evidence.plan import make_plan
    from labeler.evidence.plan_files import write_plan

    if output is not None:
        raise UsageError(
            f"-o {output} is for a certificate, which needs people's answers: add --answers "
            "ANSWERS.csv, or leave out -o to plan what they read (--plan PLAN.csv names the plan)"
        )
    reject_overwrite([labels], path)
    if Path(path).is_file():
        raise UsageError(
            f"{path} is a plan already: answer it (--answers ANSWERS.csv), or delete it first"
        )
    goal = Goal(**{"metric": "adherence_fraction"} | wanted)
    made = make_plan(labels_at(labels), goal, None if doubt is None else Doubt.load(doubt))
    write_plan(made, path)
    named = f"{shlex.quote(labels)} --plan {shlex.quote(path)}"
    review = f"labeler review {named}; or fill in the column answer of a copy, and labeler certify"
    print_lines(
        [f"{made.conclusion} They are in {path}. Next: {review} {named} --answers COPY.csv"]
    )
    return 0


def _continue(
    labels: str, path: str, answers: str, wanted: dict[str, Any], *, output: str | None
) -> int:
    """Add answers to a plan; print or write the certificate if they allow one."""
    from labeler.evidence.plan_files import read_answers, read_plan, write_plan

    if answers == path:
        raise UsageError(f"{path} is the plan: save it with its answers under another name")
    reject_overwrite([labels, answers], path)
    if output is not None:
        reject_overwrite([labels, answers, path], output)
    made = read_plan(path, labels_at(labels))
    for name, value in wanted.items():
        if (planned := getattr(made.goal, name)) != value:
            raise UsageError(
                f"{path} was planned with {name} {planned}, not {value}: leave "
                f"--{name.replace('_', '-')} out with --answers, or begin a new plan"
            )
    given = read_answers(answers, made)
    try:
        found = made.after(given)
    except UsageError as error:
        raise UsageError(f"{answers}: {error}") from error
    write_plan(found, path)
    if not found.is_finished:
        more = f"{plural(len(found.sentences), 'sentence')}{found.twice}, that {path} asks for now"
        print_lines([f"{found.conclusion} Next: {more}"])
        return SOME_FAILED
    certificate = found.issue()
    if output is None:
        print_display(certificate)
    else:
        certificate.save(output)
        print_lines([certificate.conclusion])
        notify(f"{output}: certificate of {plural(certificate.checked, 'sentence')}")
    return SOME_FAILED if certificate.failed_goal else 0


def doubt(
    labels: Labels,
    *,
    human: Annotated[
        str | None, typer.Option(help="Corrections of these labels, or human labels of sentences.")
    ] = None,
    rows: Annotated[
        bool, typer.Option("--rows", help="Print one probability a verdict, as JSON Lines.")
    ] = False,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write the fitted model to.")
    ] = None,
    second_opinion: Annotated[
        bool, typer.Option("--second-opinion", help="Also ask the embedded judge, without network.")
    ] = False,
) -> None:
    """Estimate how likely each stored verdict is wrong, from the label and people's corrections."""
    from labeler.evidence.doubt import fit_doubt

    judge: SecondJudge | None = None
    if second_opinion:
        from labeler.judges.embedded import second_opinion as judge
    if output is not None:
        reject_overwrite([labels, *filter(None, [human])], output)
        if judge:
            raise UsageError(
                f"-o {output}: commands that read a model ask no second judge, so its doubts would "
                "be others: leave out -o or --second-opinion"
            )
    found = fit_doubt(labels_at(labels), human, judge)
    if output is not None:
        found.save(output)
        notify(f"{output}: model of {plural(found.corrections, 'correction')}")
    if rows:
        print_lines([json.dumps(one._asdict(), ensure_ascii=True) for one in found.verdicts])
    else:
        print_display(found)


def exam(rows: options.Rows, *, given: ExamOptions, as_json: options.Json = False) -> None:
    """Find a judge's blind spots: errors planted in sentences that it called supported.

    Up to N rows are labeled, then up to N copies of each kind; answers are stored, and free the
    second time.
    """
    from labeler.evidence.copies import KINDS
    from labeler.evidence.exam import exam as take_exam

    most = given.n * (1 + len(KINDS)) * (1 if given.against is None else 2)
    most *= 2 if given.relevance == BLIND else 1  # relevance may take a request of its own
    notify(f"at most {plural(most, 'request')}; stored answers are free")
    print_found(take_exam(rows, **_asked(given)), "", as_json=as_json)


def make_anchors(
    labels: Labels,
    *,
    number: Annotated[int, typer.Option("-n", min=2, help="Number of records to keep.")] = 80,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File of anchors to write.")
    ] = "anchors.jsonl",
) -> None:
    """Keep some labeled records, to ask the same judge about again."""
    from labeler.evidence.anchors import choose_anchors

    reject_overwrite([labels], output)
    if Path(output).exists():
        raise UsageError(
            f"{output} exists already, maybe with paid answers: name another file (-o FILE), or "
            "delete it first"
        )
    anchors = choose_anchors(labels_at(labels), number)
    anchors.save(output)
    notify(
        f"{output}: {plural(len(anchors.records), 'record')} of {labels}; "
        f"'labeler anchors check {output} --judge …' asks the judge again"
    )


def check_anchors(
    file: Annotated[
        str, typer.Argument(help="File of anchors, as 'labeler anchors make' writes it.")
    ],
    *,
    given: AskOptions,
    as_json: options.Json = False,
) -> int:
    """Ask the judge again, and say whether it has changed (exit 1 if so).

    The first check asks twice, later ones once. Answers are kept in the file and in the store. All
    checks together raise a false alarm in 5 % of all cases at most.
    """
    from labeler.evidence.anchors import Anchors

    anchors = Anchors.load(file)
    of_relevance = {one.retrieval.key for one in anchors.records if one.retrieval}
    requests = anchors.due * (len(anchors.records) + len(of_relevance))
    notify(f"{plural(requests, 'request')}, if none of them is stored")
    found = anchors.check(**_asked(given))
    print_found(found, "", as_json=as_json)
    return SOME_FAILED if found.changed else 0


def _asked(given: AskOptions | ExamOptions) -> dict[str, Any]:
    """Return options with the judge that they name, in place of the options that open it."""
    from labeler.judges.opening import open_judge

    judge = open_judge(given, also=given.restrictions, notice=notify)
    return vars(given) | vars(JudgeOptions()) | {"judge": judge}
