from __future__ import annotations

import json
from pathlib import Path

import pytest

from labeler.api import read_labels, write_labels
from labeler.data.corrections import Correction
from labeler.data.corrections.file import CorrectionsFile
from labeler.labels.record import LabelRecord
from support.command import Command
from support.judged import correction, judgment
from support.labeled import record

RECORDS = [record(id=f"r{n}", documents=[2, n + 1]) for n in range(4)]


@pytest.fixture
def labeler(labeler_command: Command) -> Command:
    """The command line in a folder with labels."""
    write_labels(RECORDS, "labels.jsonl")
    return labeler_command


def corrections(*events: Correction, name: str = "labels.corrections.jsonl") -> None:
    """Write corrections beside the labels."""
    CorrectionsFile(name).append(*events)


def judged_in_tool(labeler: Command, labels: str, *options: object) -> None:
    """Have a person take every suggestion, but call each response unsupported as a whole."""
    code, out, err = labeler("corrections", "export", labels, "-o", "tasks.json", *options)
    exported = json.loads(Path("tasks.json").read_text(encoding="utf-8"))
    assert (code, out) == (0, "")
    assert f"{len(exported)} tasks written to tasks.json" in err or len(exported) == 1
    for task in exported:
        (prediction,) = task["predictions"]
        results = [r for r in prediction["result"] if r.get("id") != "overall"]
        overall = next(r for r in prediction["result"] if r.get("id") == "overall")
        overall["value"]["choices"] = ["not supported"]
        annotation = {"completed_by": 1, "updated_at": "2026-11-22T10:00:00.5Z"}
        task["annotations"] = [annotation | {"result": [*results, overall]}]
    Path("done.json").write_text(json.dumps(exported), encoding="utf-8")


def test_labels_go_to_a_tool_and_come_back_corrected(labeler: Command) -> None:
    """Out with the tool's settings beside, judged, in, applied; and in again without effect."""
    judged_in_tool(labeler, "labels.jsonl")
    assert len(json.loads(Path("done.json").read_text(encoding="utf-8"))) == 4
    judged_in_tool(labeler, "labels.jsonl", "--top", 2)
    assert Path("tasks.config.xml").exists()
    back = ("corrections", "import", "labels.jsonl", "done.json")
    code, out, err = labeler(*back)
    assert (code, out) == (0, "")
    assert "new answers: 2 (2 disagree)" in err
    assert "2 corrections added to labels.corrections.jsonl" in err
    again = labeler(*back)[2]
    assert "0 corrections added to labels.corrections.jsonl" in again
    code, out, err = labeler("corrections", "apply", "labels.jsonl", "-o", "corrected.jsonl")
    assert (code, out) == (0, "")
    assert "verdicts changed: overall_supported 2; 0 labels judged and kept" in err
    made = [one for one in read_labels("corrected.jsonl") if isinstance(one, LabelRecord)]
    assert [each.label.overall_supported for each in made].count(False) == 2
    assert list(read_labels("labels.jsonl")) == RECORDS
    assert "agree" in labeler("agree", "labels.jsonl", "corrected.jsonl")[1]


@pytest.mark.parametrize(
    ("options", "queue", "count"),
    [("", "order", 4), ("--top 2", "doubtful", 2), ("--sample 3", "random", 3)],
)
def test_a_selection_of_the_labels_goes_to_a_tool(
    labeler: Command, options: str, queue: str, count: int
) -> None:
    """With how it was selected; a sample has the order of the file, and is the same again."""
    command = f"corrections export labels.jsonl -o tasks.json --blind {options}".split()
    texts = [labeler(*command) and Path("tasks.json").read_text(encoding="utf-8") for _ in "ab"]
    assert texts[0] == texts[1]
    tasks = [task["data"] for task in json.loads(texts[0])]
    rows = [task["row"] for task in tasks]
    assert ({task["queue"] for task in tasks}, len(set(rows))) == ({queue}, count)
    assert queue == "doubtful" or rows == [one.id for one in RECORDS if one.id in rows]


def test_labels_that_nobody_corrected_are_sent_to_review(labeler: Command) -> None:
    """Whether the file of corrections is missing or empty; labels that are missing come first."""
    code, _, err = labeler("corrections", "apply", "labels.jsonl", "-o", "c.jsonl")
    assert (code, "nobody has corrected these yet" in err) == (2, True)
    assert "labeler review labels.jsonl" in err
    Path("labels.corrections.jsonl").touch()
    assert "nobody has" in labeler("corrections", "apply", "labels.jsonl", "-o", "c.jsonl")[2]
    assert "cannot read no.jsonl" in labeler("corrections", "apply", "no.jsonl")[2]


def test_answers_to_other_labels_are_refused(labeler: Command) -> None:
    """The error names both files, and nothing is added."""
    write_labels([record(id="x", documents=[9])], "others.jsonl")
    judged_in_tool(labeler, "others.jsonl")
    code, _, err = labeler("corrections", "import", "labels.jsonl", "done.json")
    told = "done.json: none of its 1 tasks speaks of a label of labels.jsonl"
    assert (code, told in err) == (2, True)
    assert not Path("labels.corrections.jsonl").exists()


def test_apply_tells_what_does_not_count(labeler: Command) -> None:
    """By reason, with ids and people, made visible; a line that was cut off is named."""
    stray = correction(record(documents=[9]), judgment(), id="x\x1b[31m")
    corrections(stray, correction(RECORDS[0], None, opinion="unsure", by="bob"))
    apply = ("corrections", "apply", "labels.jsonl")
    code, _, err = labeler(*apply, "-o", "corrected.jsonl")
    assert (code, "corrections that counted: 0; that did not: 2" in err) == (0, True)
    assert "1 of labels that are not there: 'x\\x1b[31m' by ann" in err
    assert "1 unsure: 'r0' by bob" in err
    corrections(correction(RECORDS[0], judgment(relevant=[])))
    with Path("labels.corrections.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind":"correction","ver')
    code, _, err = labeler(*apply)
    assert (code, "4 rows written to standard output" in err) == (0, True)
    assert "labels.corrections.jsonl:4: cut off, as by a crash, and left out" in err
    assert "1 of 4 labels changed by people" in err


OUT, APPLY = "export labels.jsonl -o", "apply labels.jsonl"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (f"{OUT} t.json --top 1 --sample 1", "--top and --sample choose in two ways"),
        (f"{OUT} -", "name a file"),
        (f"{OUT} labels.jsonl", "is an input"),
        (f"{APPLY} other.jsonl -o labels.jsonl", "is an input"),
        (f"{OUT} said.jsonl", "what people said"),
        (f"{APPLY} other.jsonl -o said.jsonl", "what people said"),
        (f"{APPLY} no.jsonl -o c.jsonl", "cannot read"),
        (
            f"{APPLY} stray.jsonl -o c.jsonl",
            "stray.jsonl: none of its 1 correction speaks of a label",
        ),
        ("export none.jsonl -o t.json", "no labels in none.jsonl: it is empty"),
        ("apply - c.jsonl", "name a file"),
        ("import labels.jsonl no.json", "cannot read no.json"),
        ("import labels.jsonl labels.jsonl", "not JSON"),
    ],
)
def test_wrong_use_is_told(labeler: Command, line: str, expected: str) -> None:
    """With exit code 2, and nothing is written."""
    Path("empty.json").write_text("[]", encoding="utf-8")
    corrections(correction(RECORDS[0], judgment()), name="said.jsonl")
    corrections(correction(record(documents=[9]), judgment()), name="stray.jsonl")
    write_labels([], "none.jsonl")
    before = {path.name for path in Path().iterdir()}
    code, out, err = labeler("corrections", *line.split())
    assert (code, out, expected in err) == (2, "", True), err
    assert {path.name for path in Path().iterdir()} == before


@pytest.mark.parametrize(
    ("said_of", "labels", "more", "expected"),
    [
        (record(documents=[9]), "labels.jsonl", (), "name the label file that was"),
        (RECORDS[0], "labels.jsonl", ("--random-sample",), "drawn at random"),
        (RECORDS[0], "labels.jsonl", ("--blind-only",), "made blind"),
        (RECORDS[0], "-", (), "read twice"),
    ],
)
def test_corrections_that_say_nothing_here_are_told(
    labeler: Command, said_of: LabelRecord, labels: str, more: tuple[str, ...], expected: str
) -> None:
    """They are of other labels, or none was drawn at random, or judged blind."""
    corrections(correction(said_of, judgment()))
    code, _, err = labeler("agree", labels, "--human", "labels.corrections.jsonl", *more)
    assert (code, expected in err) == (2, True)


def test_a_judge_can_be_compared_with_blind_judgments_alone(labeler: Command) -> None:
    """How many there are is said; of a person who saved again after the reveal, the blind one."""
    corrections(
        correction(RECORDS[0], judgment(relevant=["0b"]), blind=True),
        correction(RECORDS[0], judgment()),
        correction(RECORDS[1], judgment()),
    )
    against = ("agree", "labels.jsonl", "--human", "labels.corrections.jsonl", "--json")
    code, out, err = labeler(*against)
    assert (code, json.loads(out)["human_labels"]["used"]) == (0, (3 + 4) * 2 + 2 * 2 + 2)
    assert err == "judgments of records that count: 2, of these made blind: 1\n"
    code, out, err = labeler(*against, "--blind-only")
    found = json.loads(out)
    assert (code, found["human_labels"]["used"]) == (0, 3 * 2 + 2 + 1)
    relevant = next(one for one in found["fields"] if one["field"] == "relevant")
    assert relevant["raw"] == pytest.approx(1 / 3)
