"""Writes the parts of README.md that are read off the code; a test keeps them equal.

python scripts/update_readme.py
"""

from __future__ import annotations

import re
from pathlib import Path

from labeler.calculators import METRICS

README = Path(__file__).parent.parent / "README.md"


def metric_table() -> str:
    """Every metric: id, direction, formula, label fields, source."""
    lines = ["| id | | formula | label fields | source |", "|---|---|---|---|---|"]
    for metric in METRICS.values():
        arrow = "↑" if metric.higher_is_better else "↓"
        formula = metric.formula.replace("|", "\\|")
        needs = ", ".join(f"`{name}`" for name in metric.needs)
        lines.append(f"| `{metric.id}` | {arrow} | {formula} | {needs} | {metric.source} |")
    return "\n".join(lines)


GENERATED = {"metrics": metric_table}


def updated(text: str) -> str:
    """The README with every generated part made anew."""
    for name, make in GENERATED.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        part = f"{begin}\n{make()}\n{end}"
        text = pattern.sub(part.replace("\\", r"\\"), text)
    return text


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
