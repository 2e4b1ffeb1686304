"""Reports of gate verdicts as text, JUnit XML and Markdown.

Ids, groups and names of models are untrusted text, escaped in every report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from labeler.comparing.gates import Verdict
from labeler.sentences.characters import visible

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even escaped."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
"""Characters that Markdown may interpret; a backslash escapes them."""


def line(verdict: Verdict) -> str:
    """Return one verdict in words."""
    outcome = "passed" if verdict.passed else "MISSED"
    return f"{outcome}: {title(verdict)}: {verdict.finding}"


def title(verdict: Verdict) -> str:
    """Return the gate and the group."""
    group = verdict.row.group if verdict.row else None
    return verdict.gate.demand if group is None else f"{verdict.gate.demand} in {group}"


def junit(verdicts: Sequence[Verdict]) -> str:
    """Return a JUnit test suite with one test case a verdict; a missed gate is a failure."""
    missed = sum(not verdict.passed for verdict in verdicts)
    counts = {"tests": str(len(verdicts)), "failures": str(missed), "errors": "0"}
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "labeler check", **counts})
    for verdict in verdicts:
        label = (verdict.row.label if verdict.row else None) or "no label"
        names = {"classname": _xml(f"labeler.check.{label}"), "name": _xml(title(verdict))}
        case = ET.SubElement(suite, "testcase", names)
        finding = _xml(verdict.finding)
        if verdict.passed:
            ET.SubElement(case, "system-out").text = finding
        else:
            ET.SubElement(case, "failure", {"message": finding, "type": "gate"}).text = finding
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of verdicts, below the number of missed gates."""
    missed = sum(not verdict.passed for verdict in verdicts)
    lines = [
        "### labeler check",
        "",
        f"{missed} of {len(verdicts)} gates missed" if missed else "All gates passed",
        "",
        "| | gate | found | labels |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        label = (verdict.row.label if verdict.row else None) or "none"
        cells = (title(verdict), verdict.finding, label)
        mark = "✅" if verdict.passed else "❌"
        lines.append(f"| {mark} | {' | '.join(map(_markdown, cells))} |")
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("", visible(text))


def _markdown(text: str) -> str:
    """Escape text for a table cell: no markup, HTML, link or line break."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(visible(text).split()))
