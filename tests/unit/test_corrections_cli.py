"""``labeler corrections`` and corrections in ``labeler agree``, from file to file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command import Command
from judged import correction, judgement
from labeler.api import read_records, write_labels
from labeler.corrections import Correction, CorrectionsFile
from labelled import record

RECORDS = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(4)]
BOTH = pytest.mark.parametrize("tool", ["label-studio", "argilla"])


@pytest.fixture
def labeler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """The command line in a folder with labels."""
    monkeypatch.chdir(tmp_path)
    write_labels(RECORDS, "labels.jsonl")
    return Command(monkeypatch, capsys)


def corrections(*events: Correction, name: str = "labels.corrections.jsonl") -> None:
    """Write corrections beside the labels."""
    CorrectionsFile(name).append(*events)


def take(tool: str, exported: Any) -> None:
    """Have a person take every suggestion, but call each response unsupported as a whole."""
    for task in exported:
        if tool == "label-studio":
            (prediction,) = task["predictions"]
            results = [r for r in prediction["result"] if r.get("id") != "overall"]
            overall = next(r for r in prediction["result"] if r.get("id") == "overall")
            overall["value"]["choices"] = ["not supported"]
            annotation = {"completed_by": 1, "updated_at": "2026-11-22T10:00:00.5Z"}
            task["annotations"] = [annotation | {"result": [*results, overall]}]
        else:
            values: Mapping[str, Any] = task["suggestions"]
            task["responses"] = {
                name: [{"value": each["value"], "user_id": "5f0c"}] for name, each in values.items()
            }
            task["responses"]["overall"][0]["value"] = "not_supported"


@BOTH
def test_labels_go_to_a_tool_and_come_back_corrected(labeler: Command, tool: str) -> None:
    """Out, judged, in, applied; and in again without effect."""
    code, out, err = labeler(
        "corrections", "export", "labels.jsonl", "--format", tool, "-o", "tasks.json", "--top", 2
    )
    assert (code, out) == (0, "")
    assert "tasks written to tasks.json: 2" in err
    exported = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    take(tool, exported)
    Path("done.json").write_text(json.dumps(exported), encoding="utf-8")
    back = ("corrections", "import", "labels.jsonl", "done.json", "--format", tool)
    code, out, err = labeler(*back, "--annotator", "user 1=ann")
    assert (code, out) == (0, "")
    assert "new answers: 2 (2 disagree)" in err
    assert "corrections added to labels.corrections.jsonl: 2" in err
    assert "added to labels.corrections.jsonl: 0" in labeler(*back, "--annotator", "user 1=ann")[2]
    code, out, err = labeler("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    assert (code, out) == (0, "")
    assert "4 labels: 2 changed (overall_supported 2), 0 judged and left as they are" in err
    made = list(read_records("corrected.jsonl"))
    assert [each.label.overall_supported for each in made].count(False) == 2
    assert list(read_records("labels.jsonl")) == RECORDS
    assert "agree" in labeler("agree", "labels.jsonl", "corrected.jsonl")[1]


@BOTH
def test_the_tools_settings_are_written_beside_the_tasks(labeler: Command, tool: str) -> None:
    """Under the tasks' name."""
    labeler("corrections", "export", "labels.jsonl", "--format", tool, "-o", "tasks.json")
    name = "tasks.config.xml" if tool == "label-studio" else "tasks.settings.json"
    assert Path(name).exists()
    assert len(json.loads(Path("tasks.json").read_text(encoding="utf-8"))) == 4


def test_an_export_of_no_labels_is_an_empty_list(labeler: Command) -> None:
    """Valid JSON all the same."""
    write_labels([], "none.jsonl")
    code, _, _ = labeler(
        "corrections", "export", "none.jsonl", "--format", "argilla", "-o", "tasks.json"
    )
    assert (code, json.loads(Path("tasks.json").read_text(encoding="utf-8"))) == (0, [])


def test_apply_tells_what_does_not_count(labeler: Command) -> None:
    """By reason, with ids and people; what a terminal would obey is written out."""
    stray = correction(record(documents=[9]), judgement(), id="x\x1b[31m")
    corrections(stray, correction(RECORDS[0], None, opinion="unsure", by="bob"))
    code, _, err = labeler("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    assert code == 0
    assert "corrections that counted: 0; that did not: 2" in err
    assert "1 of labels that are not there: 'x\\x1b[31m' by ann" in err
    assert "1 unsure: 'r0' by bob" in err


def test_apply_tells_of_a_line_that_was_cut_off(labeler: Command) -> None:
    """The rest is applied."""
    corrections(correction(RECORDS[0], judgement(relevant=[])))
    path = Path("labels.corrections.jsonl")
    path.write_text(
        path.read_text(encoding="utf-8") + '{"kind":"correction","ver', encoding="utf-8"
    )
    code, _, err = labeler("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    assert code == 0
    assert "labels.corrections.jsonl:2: cut off, as by a crash, and left out" in err
    assert "1 changed (relevant 1)" in err


def test_corrected_labels_have_metrics_of_their_own(labeler: Command) -> None:
    """And can be told from the judge's by their signature."""
    corrections(correction(RECORDS[0], judgement(support={"a": ["0a"]}, overall=False)))
    labeler("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    means = []
    for name in ("labels.jsonl", "corrected.jsonl"):
        code, out, _ = labeler("metrics", name, "--metrics", "adherence", "--json")
        assert code == 0
        (row,) = [each for each in json.loads(out) if each["metric"] == "adherence"]
        means.append((row["mean"], "corrections:" in row["signature"]))
    assert means == [(1.0, False), (0.75, True)]


WRONG: dict[str, tuple[tuple[object, ...], str]] = {
    "two ways to choose": (
        (
            "export",
            "labels.jsonl",
            "--format",
            "argilla",
            "-o",
            "t.json",
            "--top",
            1,
            "--sample",
            1,
        ),
        "--top and --sample choose in two ways",
    ),
    "no such format": (
        ("export", "labels.jsonl", "--format", "argila", "-o", "t.json"),
        "argilla",
    ),
    "tasks on standard output": (
        ("export", "labels.jsonl", "--format", "argilla", "-o", "-"),
        "name a file",
    ),
    "tasks over the labels": (
        ("export", "labels.jsonl", "--format", "argilla", "-o", "labels.jsonl"),
        "is an input",
    ),
    "corrected labels over the judge's": (
        ("apply", "labels.jsonl", "other.jsonl", "-o", "labels.jsonl"),
        "is an input",
    ),
    "tasks over corrections": (
        ("export", "labels.jsonl", "--format", "argilla", "-o", "said.jsonl"),
        "what people said",
    ),
    "labels over corrections": (
        ("apply", "labels.jsonl", "other.jsonl", "-o", "said.jsonl"),
        "what people said",
    ),
    "no corrections": (("apply", "labels.jsonl", "-o", "c.jsonl"), "cannot read"),
    "labels from standard input": (("apply", "-", "c.jsonl"), "name a file"),
    "no export": (
        ("import", "labels.jsonl", "no.json", "--format", "argilla"),
        "cannot read no.json",
    ),
    "labels for an export": (
        ("import", "labels.jsonl", "labels.jsonl", "--format", "argilla"),
        "not JSON",
    ),
    "a name without its other": (
        ("import", "labels.jsonl", "empty.json", "--format", "argilla", "--annotator", "ann"),
        "write the tool's name, =, and the name here",
    ),
}


@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG.keys())
def test_wrong_use_is_told(labeler: Command, arguments: tuple[object, ...], expected: str) -> None:
    """With exit code 2, and nothing is written."""
    Path("empty.json").write_text("[]", encoding="utf-8")
    corrections(correction(RECORDS[0], judgement()), name="said.jsonl")
    before = {path.name for path in Path().iterdir()}
    code, out, err = labeler("corrections", *arguments)
    assert (code, out) == (2, "")
    assert expected in err
    assert {path.name for path in Path().iterdir()} == before


def test_a_judge_is_compared_with_corrections_directly(labeler: Command) -> None:
    """As with the same human labels; a random sample is what was drawn at random."""
    corrections(
        correction(RECORDS[0], judgement(relevant=["0b"]), queue="random"),
        correction(RECORDS[1], judgement(), queue="doubtful"),
    )
    beside = "labels.corrections.jsonl"
    code, out, _ = labeler("agree", "labels.jsonl", "--human", beside, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["human_labels"]["used"] == (3 + 4) * 2 + 2 * 2 + 2
    code, out, _ = labeler("agree", "labels.jsonl", "--human", beside, "--json", "--random-sample")
    assert json.loads(out)["human_labels"]["used"] == 3 * 2 + 2 + 1


@pytest.mark.parametrize(
    ("events", "more", "expected"),
    [
        ([correction(record(documents=[9]), judgement())], (), "name the label file that was"),
        ([correction(RECORDS[0], judgement())], ("--random-sample",), "drawn at random"),
    ],
)
def test_corrections_that_say_nothing_here_are_told(
    labeler: Command, events: list[Correction], more: tuple[str, ...], expected: str
) -> None:
    """They are of other labels, or none was drawn at random."""
    corrections(*events)
    code, _, err = labeler("agree", "labels.jsonl", "--human", "labels.corrections.jsonl", *more)
    assert code == 2
    assert expected in err


def test_agree_needs_the_labels_twice_for_corrections(labeler: Command) -> None:
    """Standard input can be read once."""
    corrections(correction(RECORDS[0], judgement()))
    code, _, err = labeler("agree", "-", "--human", "labels.corrections.jsonl")
    assert (code, "read twice" in err) == (2, True)
