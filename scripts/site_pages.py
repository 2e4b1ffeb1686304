"""Parts of the documentation site that are made of the code, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import cast

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

import labeler
import labeler.plugins.ragbench
import labeler.plugins.scores
import labeler.plugins.similarity
from labeler.calculators import select_metrics
from labeler.calculators.registry import Metric
from labeler.cli import app

EXAMPLE = "pilot-boat-half"
"""The row of the examples by which metrics are worked out."""


def commands() -> str:
    """Return a section for each command: usage, arguments, options, defaults."""
    group = get_command(app)
    text = get_docs_for_click(obj=group, ctx=Context(group, info_name="labeler"), name="labeler")
    _, _, rest = text.partition("\n## ")
    parts = enumerate(rest.split("`"))  # every other part is code
    return "## " + "`".join(one if at % 2 else one.replace("<", r"\<") for at, one in parts)


def python() -> str:
    """Return the documentation of each public name, taken from its docstring."""
    return "\n\n".join(map(_documented, public_names()))


IN_PACKAGES = {
    "api": "read_labels write_labels",
    "audit": "Finding Found Subject audit_labels findings_of",
    "calculators": "Votes",
    "comparing": "Comparison compare_labels compare_runs compare_with_people diff_labels "
    "read_human_labels",
    "data": "CorrectionsFile apply_corrections",
    "errors": "BadRows",
    "judges": "MistralJudge OllamaJudge find_price",
    "labels": "ClaimsLabelingOutput GPTLabelingOutput ReferenceLabelingOutput",
    "plugins.ragbench": "read_ragbench",
    "plugins.scores": "Criterion ScoreRecord iter_scores read_scores",
    "plugins.similarity": "iter_similarity",
    "report": "write_report",
    "store": "LabelStore import_labels",
}
"""Public names that are reached by package."""


def public_names() -> list[str]:
    """Return the public names, those in a package after its name: ``audit.Found``."""
    top = [name for name in dir(labeler) if not name.startswith("__")]
    named = IN_PACKAGES.items()
    return top + [f"{package}.{name}" for package, names in named for name in names.split()]


def _documented(name: str) -> str:
    """Return a section with a public name's documentation."""
    found = attrgetter(name)(labeler)
    kind = "class" if inspect.isclass(found) else "function"
    lines = [f"## {name}", "", "```{eval-rst}", f".. auto{kind}:: labeler.{name}"]
    if kind == "class":
        lines.append("   :members:")
    return "\n".join([*lines, "```"])


LIMITS = {
    "trace": "Every sentence counts alike, so another splitter gives another value.",
    "claims": "The judge that draws the claims also judges them: a claim left out counts nowhere.",
    "reference": "It is as good as the reference answer: what that leaves out counts as wrong.",
}
"""By profile: what a value does not say."""


def metrics() -> str:
    """Return a section for each metric, with its value on the label of one example row."""
    rows = Path(__file__).parents[1] / "examples" / "rows.jsonl"
    labels = labeler.label(
        str(rows),
        judge="embedded",
        profile="reference",
        store=labeler.MemoryStore(),
        progress=False,
    )
    row = labels.metrics("all")[EXAMPLE]
    record = cast("labeler.LabelRecord", labels[EXAMPLE])
    parts = ["## The example", *_label_lines(record)]
    for profile, limit in LIMITS.items():
        parts += [f"## Profile {profile}", limit]
        parts += [
            _metric_section(metric, row[metric.id])
            for metric in select_metrics("all")
            if metric.profile.name == profile
        ]
    return "\n\n".join(parts)


def _metric_section(metric: Metric, value: labeler.Ratio) -> str:
    """Return what the catalog has about a metric, and its value on the example."""
    text = " ".join((inspect.getdoc(metric.compute) or "").split())
    described, _, undefined = text.partition(" Undefined when: ")
    summary, _, counts = described.partition(" Counts: ")
    fields = ", ".join(f"`{name}`" for name in metric.needs)
    same = ", ".join(f"`{name}`" for name in metric.aliases)
    share = f"undefined: `{value.undefined}`"
    if value.value is not None:
        share = f"{value.numerator} / {value.denominator} = {value.value:.4f}"
    facts = {
        "Formula": metric.formula,
        "Counts": counts,
        "Undefined when": undefined,
        "In the example": share,
        "Better": "higher" if metric.higher_is_better else "lower",
        "Same as": same,
        "Reads": fields,
        "Source": metric.source,
    }
    lines = [f"- **{name}**: {_escaped(fact)}" for name, fact in facts.items() if fact]
    return "\n".join([f"### {metric.id}", "", _escaped(summary), "", *lines])


def _escaped(text: str) -> str:
    """Return text in which nothing outside code is taken for Markdown or a role."""
    text = text.replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_|<>\\\[\]{}#~])", r"\\\1", part)
        for part in parts
    )


def _label_lines(record: labeler.LabelRecord) -> Iterator[str]:
    """Yield the label of the example: sentences with their marks, and claims."""
    label = cast("labeler.labels.ReferenceLabelingOutput", record.label)
    yield f"Row `{record.id}` of `examples/rows.jsonl`, labeled by the embedded judge."
    lines = ["| key | sentence of a document | relevant | utilized |", "|---|---|---|---|"]
    for one in record.example.document_sentences():
        relevant = "yes" if one.key in label.all_relevant_sentence_keys else ""
        utilized = "yes" if one.key in label.all_utilized_sentence_keys else ""
        lines.append(f"| `{one.key}` | {_escaped(one.text)} | {relevant} | {utilized} |")
    yield "\n".join(lines)
    support = {
        one.response_sentence_key: _keys(one.supporting_sentence_keys)
        for one in label.sentence_support_information
    }
    lines = ["| key | sentence of the response | supported by |", "|---|---|---|"]
    for one in record.example.response:
        lines.append(f"| `{one.key}` | {_escaped(one.text)} | {support[one.key]} |")
    yield "\n".join(lines)
    lines = ["| claim of the response | documents | reference |", "|---|---|---|"]
    for claim in label.response_claims:
        lines.append(f"| {_escaped(claim.claim)} | {claim.verdict} | {claim.reference_verdict} |")
    yield "\n".join(lines)
    lines = ["| claim of the reference | supported by | response |", "|---|---|---|"]
    for other in label.reference_claims:
        by = _keys(other.supporting_sentence_keys)
        lines.append(f"| {_escaped(other.claim)} | {by} | {other.response_verdict} |")
    yield "\n".join(lines)


def _keys(keys: Iterable[str]) -> str:
    """Return keys of sentences as code."""
    return ", ".join(f"`{key}`" for key in keys) or "nothing"


PARTS: dict[str, Callable[..., str]] = {
    "commands": commands,
    "python": python,
    "metrics": metrics,
}
"""The parts by the name that the directive ``{generated} NAME`` of a page gives."""
