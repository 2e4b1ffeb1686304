"""What the README says is run, and what it lists is what there is."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from labeler.calculators.ratio import UNDEFINED_REASONS
from labeler.cli import app
from labeler.cli.terminal import BUDGET_REACHED, SOME_FAILED, TRY_LATER, WRONG_USE
from labeler.judges.concurrency import FIRST_ROWS, ROWS_BETWEEN_LABELS, ROWS_OF_THEIR_OWN
from labeler.judges.judge import JUDGES
from labeler.judges.limits import Limits
from labeler.judges.openai.error_rules import RULES
from labeler.judges.openai.request import OpenAISpec
from labeler.labeling.run import GRACE_SECONDS
from labeler.labels.answers import PROFILES
from labeler.plugins.scores.criteria import CRITERIA, choose_criteria
from labeler.sentences.splitting import SPLITTERS
from support.command import Command
from support.doc_blocks import PAGES, run, shell
from update_pages import FAILURES, GENERATED, METRIC_PAGE, marks, updated

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]*)#?([^)\s]*)\)")
README = (ROOT / "README.md").read_text(encoding="utf-8")
FAILURE_PAGE = FAILURES.read_text(encoding="utf-8")


def block(mark: str, page: str = README) -> str:
    """The code block that follows a comment."""
    found = re.search(rf"<!-- {mark} -->\n```\w+\n(.*?)```", page, re.DOTALL)
    assert found, mark
    return found[1]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder that has the examples and nothing else."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_the_forms_of_the_metric_page_are_read(
    workplace: Path, labeler_command: Command, warm: list[str]
) -> None:
    """A metric, a file of criteria, and people's judgments, as they stand there."""
    page = METRIC_PAGE.read_text(encoding="utf-8")
    for mark, name in (("metric", "mine.py"), ("criteria", "mine.toml"), ("people", "people.csv")):
        (workplace / name).write_text(block(f"test: {mark}", page), encoding="utf-8")
    labeler_command("label", "examples/rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl")
    # In a process of its own: a metric is there for all that follows.
    shown = run([*warm, "metrics", "labels.jsonl", "--metrics", "mine:late_support"], workplace)
    assert "late_support" in shown
    code, out, _ = labeler_command("agree", "labels.jsonl", "--human", "people.csv", "--json")
    assert (code, '"supported"' in out) == (0, True)
    (criterion,) = choose_criteria(workplace / "mine.toml")
    assert (criterion.name, criterion.threshold) == ("tone", 4)


def test_the_workflow_to_copy_runs(workplace: Path, warm: list[str]) -> None:
    """Its commands, with the embedded judge, post the comparison and the gates as a summary."""
    page = (ROOT / "docs" / "tutorials" / "gate.md").read_text(encoding="utf-8")
    workflow = block("file: answers.yml", page)
    label, *others = re.findall(r"^ +(?:- run: )?(labeler .*)$", workflow, re.MULTILINE)
    summary = workplace / "summary.md"
    label = label.replace("openai:MODEL --budget 5", "embedded")
    script = ["cp examples/rows.jsonl .", label, "cp labels.jsonl baseline.jsonl", *others]
    run(shell("\n".join(script), warm), workplace, GITHUB_STEP_SUMMARY=str(summary))
    assert (workplace / "comparison.html").exists()
    written = summary.read_text(encoding="utf-8")
    assert "No difference: all 14 pairs" in written
    assert "adherence drop" in written


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_generated_parts_are_up_to_date(page: Path) -> None:
    """Python scripts/update_pages.py writes them."""
    text = page.read_text(encoding="utf-8")
    for name in GENERATED[page]:
        assert marks(page, name)[0] in text
    assert updated(page) == text


def test_every_reason_failure_and_exit_code_is_explained() -> None:
    """With what gates count, and the codes that a signal makes."""
    listed = re.findall(
        r"^\| `(\w+)` \| (yes|no) \| ", METRIC_PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert {reason: counts == "yes" for reason, counts in listed} == UNDEFINED_REASONS
    for rule in RULES:
        assert f"| `{rule.reason}` | " in FAILURE_PAGE
    stops = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)
    signals = [128 + number for number in stops]
    codes = [0, SOME_FAILED, WRONG_USE, BUDGET_REACHED, TRY_LATER, *signals]
    assert re.findall(r"^\| (\d+) \|", FAILURE_PAGE, re.MULTILINE) == [str(n) for n in codes]


def test_the_numbers_of_failures_and_runs_are_those_of_the_code() -> None:
    """A default that changes changes there too."""
    runs = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    said = " ".join(f"{FAILURE_PAGE} {runs}".split())
    settings = OpenAISpec.model_fields
    for text in (
        f"asked up to {settings['max_attempts'].default} times",
        f"After {Limits().max_outage / 60:.0f} minutes without an answer",
        f"finish for up to {GRACE_SECONDS:.0f} s",
        f"After {FIRST_ROWS} rows that failed with the same status, code and reason",
        f"{ROWS_OF_THEIR_OWN} such rows without a label stop",
        f"after {ROWS_BETWEEN_LABELS} rows that failed in one way with no label between",
    ):
        assert text in said, text


def test_every_judge_profile_splitter_and_criterion_is_explained() -> None:
    """On the pages that link to the others."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    for name in [*JUDGES, *SPLITTERS, *PROFILES, *CRITERIA]:
        assert f"`{name}`" in text or f"--judge {name}" in text, name


def test_worked_diffs_fit_the_code() -> None:
    """The lines around an addition of CONTRIBUTING.md stand in the file in this order."""
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diffs = re.findall(r"```diff\n--- (\S+)\n(.*?)```", guide, re.DOTALL)
    assert diffs
    for name, body in diffs:
        lines = [line[1:] for line in body.splitlines() if not line.startswith("+")]
        code = (ROOT / name).read_text(encoding="utf-8").splitlines()
        assert not lines or any(code[n : n + len(lines)] == lines for n in range(len(code))), name


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text.replace("`", ""), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in titles}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link is a file of the repository, and a heading of a page."""
    for target, heading in LINK.findall(page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            found = page.parent / target if target else page
            assert found.exists(), target
            assert not heading or heading in headings(found), f"{target}#{heading}"


UNEXPLAINED = {"--help", "--install-completion", "--show-completion", "--version"}


def option_names(command: Any, context: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names of each option of a command, or of all commands of a group."""
    for name in getattr(command, "list_commands", lambda _: ())(context):
        inner = command.get_command(context, name)
        yield from option_names(inner, typer.Context(inner, parent=context, info_name=name))
    for option in command.params:
        if option.param_type_name == "option":
            yield (*option.opts, *option.secondary_opts)


def test_every_option_is_on_a_page() -> None:
    """The reference of commands lists them; a page says what each is good for."""
    command = get_command(app)
    pages = [page for page in PAGES if page.parent.name != "measured"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    known = {*re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text), *UNEXPLAINED}
    options = {*option_names(command, typer.Context(command, info_name="labeler"))}
    assert [names for names in options if known.isdisjoint(names)] == []
