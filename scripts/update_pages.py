"""Write the generated parts of README.md and docs/; a test compares them with the code.

python scripts/update_pages.py
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from inspect import getsource, signature
from pathlib import Path
from textwrap import fill
from typing import cast

from labeler.api import label_parameters
from labeler.audit import CHECKS
from labeler.calculators import select_metrics
from labeler.data.options import option_of
from labeler.data.presets import PRESETS
from labeler.judges.openai.error_rules import RULES, RetryPolicy, Rule
from labeler.judges.openai.request import OpenAISpec
from labeler.labeling.options import LabelOptions
from metric_terms import system_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
FAILURES = ROOT / "docs" / "failures.md"
METRIC_PAGE = ROOT / "docs" / "metrics.md"
FORMATS = ROOT / "docs" / "formats.md"
AUDIT = ROOT / "docs" / "audit.md"
PEERS = ROOT / "docs" / "measured" / "peers.md"
NAMES = ROOT / "docs" / "coming_from" / "names.md"
KEYWORDS = ROOT / "labeler" / "api.py"
STATUSES = range(1000)
"""All that a server can send in place of a status."""


def metric_table() -> str:
    """Every metric: id, direction, formula, the profile that asks it, source."""
    lines = [
        "| id | | formula | profile | source |",
        "|---|---|---|---|---|",
    ]
    for metric in select_metrics("all"):
        arrow = "↑" if metric.higher_is_better else "↓"
        formula = metric.formula.replace("|", "\\|")
        if metric.aliases:
            formula += f" (same as {', '.join(f'`{name}`' for name in metric.aliases)})"
        profile = f"`{metric.profile.name}`"
        lines.append(f"| `{metric.id}` | {arrow} | {formula} | {profile} | {metric.source} |")
    return "\n".join(lines)


def check_table() -> str:
    """Every audit check: id, severity, weight, meaning."""
    lines = [
        "| check | severity | weight | what it finds, and why that is odd |",
        "| --- | --- | --: | --- |",
    ]
    lines += [
        f"| `{check.id}` | {check.severity} | {check.weight:g} | {check.title}. {check.why} |"
        for check in CHECKS.values()
    ]
    return "\n".join(lines)


def preset_table() -> str:
    """Every preset: whose rows it reads, and the columns of each field."""
    named = ("question", "documents", "response", "reference", "id")
    lines = [f"| preset | rows of | {' | '.join(named)} |", "| --- " * (2 + len(named)) + "|"]
    for name, preset in PRESETS.items():
        columns = (", ".join(f"`{one}`" for one in preset.columns.get(f, ())) for f in named)
        cells = " | ".join(found or "\u2013" for found in columns)
        lines.append(f"| `{name}` | {preset.system} | {cells} |")
    return "\n".join(lines)


def failure_table() -> str:
    """Every failure of a judge: reason, what it is, how it shows, what follows, what to do."""
    seen: dict[tuple[str, ...], list[Rule]] = {}
    for rule in RULES:
        seconds = OpenAISpec.model_fields["timeout"].default
        words = {"option": "*the option*", "timeout": seconds, "longer": 2 * seconds}
        what, remedy = (text.format_map(words) for text in (rule.summary, rule.remedy))
        kept = _KEPT if rule.lasting else _COURSES[rule.policy][1]
        does = _COURSES[rule.policy][0] + ", once" * rule.once
        facts = (f"`{rule.reason}`", what, does, kept, remedy)
        seen.setdefault(facts, []).append(rule)
    lines = [
        "| reason | what | seen as | labeler | asked again | you |",
        "|---|---|---|---|---|---|",
    ]
    for (reason, what, does, kept, remedy), rules in seen.items():
        lines.append(f"| {reason} | {what} | {_shown(rules)} | {does} | {kept} | {remedy} |")
    return "\n".join(lines)


_KEPT = "on `--retry-failed`"
_NEXT = "by the next run"
_COURSES = {
    RetryPolicy.RETRY: ("pauses and asks again", _NEXT),
    RetryPolicy.RATE: ("pauses and asks again, more slowly", _NEXT),
    RetryPolicy.RECORD: ("gives the row up", _NEXT),
    RetryPolicy.FATAL: ("stops the run", _NEXT),
}
"""What a course means to the user: what happens to the row, and when it is asked again."""


def _shown(rules: Iterable[Rule]) -> str:
    """How failures show: the statuses of their rules, or what was received in their place."""
    numbers = {n for rule in rules if rule.kind == "status" for n in STATUSES if n in rule.status}
    if len(numbers) == len(STATUSES):
        return "any other HTTP status"
    if numbers:
        return f"HTTP {', '.join(_runs(sorted(numbers)))}"
    return ", ".join(sorted({rule.kind.replace("_", " ") for rule in rules}))


def _runs(numbers: list[int]) -> list[str]:
    """Numbers in order, those that follow one another as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] + 1 == number:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]


_TOLD = (
    "LLM calls a record",
    "prompt tokens a record, schemas included",
    "wall for ",
    "calls a record: the same run again",
    "… with one metric more",
    "import, s",
)
"""How the lines of the comparison with other tools begin that the README shows."""


def peer_table() -> str:
    """Some lines of the measured comparison with other tools, and when and how it was measured."""
    page = PEERS.read_text(encoding="utf-8").splitlines()
    dates = [line.rstrip() for line in page if line.startswith(("Date: ", "Times: "))]
    heading, rule, *rows = (_cells(line) for line in page if line.startswith("|"))
    shown = [row for row in rows if row[0].startswith(_TOLD)]
    left_out = {place for place, name in enumerate(heading) if name in ("goal", "met")}
    table = ([c for n, c in enumerate(row) if n not in left_out] for row in (heading, rule, *shown))
    return "\n".join([*(f"| {' | '.join(row)} |" for row in table), "", "; ".join(dates)])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def label_options() -> str:
    """The options of ``labeler.label`` that it has no parameter for, as fields of a typed dict."""
    types, lines = _types(), list[str]()
    for field in fields(LabelOptions):
        if field.name not in signature(label_parameters).parameters:
            text = fill(option_of(field).help.replace("\\", "\\\\"), 90, subsequent_indent="    ")
            end = "\n    " if "\n" in text else ""
            lines += [f"    {field.name}: {types[field.name]}", f'    """{text}{end}"""']
    return "\n".join(lines)


def _types() -> dict[str, str]:
    """Return the type of each option of ``labeler.label`` as its class declares it."""
    found = {}
    for kind in LabelOptions.__mro__[-2::-1]:
        (declared,) = ast.parse(getsource(kind)).body
        for one in getattr(declared, "body", ()):
            if isinstance(one, ast.AnnAssign) and isinstance(one.annotation, ast.Subscript):
                named = cast("ast.Tuple", one.annotation.slice).elts[0]
                text = named.value if isinstance(named, ast.Constant) else ast.unparse(named)
                found[ast.unparse(one.target)] = str(text)
    return found


Part = Callable[[], str]
GENERATED: dict[Path, dict[str, Part]] = {
    README: {"peers": peer_table},
    NAMES: {"systems": system_table},
    METRIC_PAGE: {"metrics": metric_table},
    FORMATS: {"presets": preset_table},
    FAILURES: {"failures": failure_table},
    AUDIT: {"checks": check_table},
    KEYWORDS: {"options": label_options},
}
"""The generated parts of each page, by the name in the comments round them."""


def marks(page: Path, name: str) -> tuple[str, str]:
    """Return the comments round a generated part."""
    if page.suffix == ".py":
        return f"    # begin {name}", f"    # end {name}"
    return f"<!-- begin {name} -->", f"<!-- end {name} -->"


def updated(page: Path) -> str:
    """A page with every generated part replaced."""
    text = page.read_text(encoding="utf-8")
    for name, make in GENERATED[page].items():
        begin, end = marks(page, name)
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        part = f"{begin}\n{make()}\n{end}"
        text = pattern.sub(part.replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    for generated in GENERATED:
        generated.write_text(updated(generated), encoding="utf-8")
