"""Reports of gate verdicts as text, JSON, JUnit XML and Markdown.

Ids, groups and names of models are untrusted text, escaped in every report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

from labeler.comparing.verdicts import GateResults, Verdict
from labeler.sentences.characters import visible

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids, even escaped."""
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
"""Characters that Markdown may interpret; a backslash escapes them."""


def as_json(verdict: Verdict) -> dict[str, Any]:
    """Return the published form of a verdict."""
    counts = verdict.row
    return {
        "gate": verdict.demand,
        "group": verdict.group,
        "labels": verdict.label,
        "passed": verdict.passed,
        "value": verdict.value,
        "verdict": str(verdict),
        "finding": verdict.finding,
        "rows": counts.rows if counts else 0,
        "defined": counts.defined if counts else 0,
        "undefined": dict(counts.undefined) if counts else {},
        "failed": dict(counts.failed) if counts else {},
        "exceeded": [one.details for one in verdict.exceeded],
    }


def junit(verdicts: Sequence[Verdict], *, per_record: bool = False) -> str:
    """Return a JUnit test suite with one test case a verdict; a missed gate is a failure.

    Args:
        verdicts: the verdicts.
        per_record: whether each record is a test case, too. One that misses the threshold itself
            is a failure if the gate is missed; one without a value is skipped, unless it has no
            pair.
    """
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": "labeler check"})
    for verdict in verdicts:
        label = verdict.label or "no label"
        finding = "\n".join(filter(None, (verdict.finding, verdict.named)))
        failure = None if verdict.passed else finding
        _case(suite, f"labeler.check.{label}", verdict.title, finding, failure)
        for one in verdict.records if per_record else ():
            failure = one.shown if one.missed and not verdict.passed else None
            name = f"{verdict.title}: {one.id}"
            case = _case(suite, f"labeler.check.record.{label}", name, one.shown, failure)
            if one.value is None and failure is None:
                ET.SubElement(case, "skipped", {"message": _xml(one.shown)})
    failures = len(suites.findall(".//failure"))
    counts = {"tests": str(len(suite)), "failures": str(failures), "errors": "0"}
    suites.attrib.update(counts)
    suite.attrib.update(counts)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, "unicode") + "\n"


def _case(
    suite: ET.Element, class_name: str, name: str, output: str, failure: str | None
) -> ET.Element:
    names = {"classname": _xml(class_name), "name": _xml(name)}
    case = ET.SubElement(suite, "testcase", names)
    if failure is None:
        ET.SubElement(case, "system-out").text = _xml(output)
    else:
        text = _xml(failure)
        message = text.partition("\n")[0]
        ET.SubElement(case, "failure", {"message": message, "type": "gate"}).text = text
    return case


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return a Markdown table of verdicts, below the conclusion."""
    lines = [
        "### labeler check",
        "",
        _markdown(GateResults(verdicts).conclusion),
        "",
        "| | gate | found | labels |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        finding = "; ".join(filter(None, (verdict.finding, verdict.named)))
        cells = (verdict.title, finding, verdict.label or "none")
        mark = "✅" if verdict.passed else "❌"
        lines.append(f"| {mark} | {' | '.join(map(_markdown, cells))} |")
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("", visible(text))


def _markdown(text: str) -> str:
    """Escape text for a table cell: no markup, HTML, link or line break."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(visible(text).split()))
