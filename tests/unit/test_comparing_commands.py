"""Wrong use of ``check``, ``compare``, ``diff`` and ``agree``, and strangers' text in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labeler.api import write_labels
from support.command import Command
from support.labeled import output, record, relabeled

WRONG = {
    "check A": {
        "": "no gate is given",
        "--min hallucination_rate=0.1": "--max hallucination_rate=0.1",
        "--max adherence=1": "higher is better, so a highest mean passes bad labels",
        "--min": "requires an argument. Write METRIC=NUMBER, such as --min adherence=0.9",
        "--max": "such as --max hallucination_rate=0.1",
        "--min adherence": "has no number: write METRIC=NUMBER",
        "--min adherence=": "its number is missing: write METRIC=NUMBER",
        "--min adherence=much": "write METRIC=NUMBER",
        "--min adherence=inf": "adherence must be a number, got inf",
        "--min adherence=.9 --max adherence=.8": "no mean is at least 0.9 and at most",
        "--min adherance=1": "did you mean 'adherence'",
        "--min adherence=1 --on mean": "not one of 'point', 'interval'",
        "--min adherence=1 --by nothing": "no row has a column 'nothing'",
        "--min adherence=1 --group x": "they go with --on interval",
        "--min adherence=1 --level 0.9": "they go with --on interval",
        "--min adherence=1 --max-failed 1.5": "max_failed must be a number from 0 to 1, got 1.5",
        "--min adherence=1 --max-undefined nan": "max_undefined must be a number from 0 to 1",
        "--min adherence=1 --junit no/such/file": "cannot write no/such/file",
        "--min adherence=1 --junit-per-record": "is for --junit",
        "--max-drop adherence=0": "--max-drop and --against need each other",
    },
    "check A --against B": {
        "--min adherence=0.1": "--max-drop and --against need each other",
        "--max-drop adherence": "has no number",
        "--max-drop adherence=0.1 --on mean": "not one of 'point', 'interval'",
        "--max-drop adherence=0.1 --by topic": "no row has a column 'topic'",
        "--max-drop adherence=0.1 --on interval --group topic": "no row has a column 'topic'",
    },
    "check A --max-drop adherence=0": {
        # Such a gate would always be passed.
        "--against A": "checked against itself",
        "--against ./A": "checked against itself",
    },
    "compare": {
        "A C --fail-on worse": "higher or lower, not worse",
        "A A": "compared with itself",
        "- -": "standard input",
        "A B --html A": "is an input",
    },
    "diff": {
        "A B --json --rows": "exclude each other",
        "A A": "compared with itself",
        "A B --html A": "is an input",
        "A B --html B": "is an input",
    },
    "agree": {
        "A": "name a second label file to compare with, or human labels",
        "A B --human h.csv": "exclude each other",
        "A A": "compared with itself",
        "A ./A": "compared with itself",
        "A A --trial 1": "compared with itself",
        "A B --random-sample": "goes with --human",
        "A B --blind-only": "goes with --human",
        "A --human h.csv --blind-only": "h.csv is not one",
        "- --human -": "only one of labels and human labels",
    },
}


@pytest.mark.parametrize(
    ("command", "more"), [(command, more) for command, cases in WRONG.items() for more in cases]
)
def test_wrong_use_is_explained(labeler_command: Command, command: str, more: str) -> None:
    """Exit code 2, which is no missed gate, and what to do; labels, which cost money, stay."""
    write_labels([record()], "A")
    write_labels([record(support={"a": ["0a"], "b": []})], "B")
    write_labels([relabeled(record(), model="test-2")], "C")
    Path("h.csv").write_text("id,adherence\nr1,1\n", encoding="utf-8")
    before = [Path(name).read_bytes() for name in "ABC"]
    code, _, err = labeler_command(*command.split(), *more.split())
    assert (code, WRONG[command][more] in err) == (2, True), err
    assert [Path(name).read_bytes() for name in "ABC"] == before


HOSTILE = "\x1b[31m[red]:smile:\u202e"
"""Control sequences, markup and a direction override."""
SHOWN = "<U+001B>[31m[red]:smile:<U+202E>"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        *((f"{command} --by kind", "FORGED") for command in ("audit A", "compare A B")),
        *(("worst A", f"row{SHOWN}"), ("show A ID", f"row{SHOWN}"), ("show A \x1b[2J", "")),
        *(("compare A B --metrics adherence", f"row{SHOWN}"), ("diff A B", f"row{SHOWN}")),
        *((f"diff A B {form}", "row\\u001b[31m") for form in ("--rows", "--json")),
        ("agree A --human h.csv --by kind", "row\\x1b[31m"),
        ("agree A --human h.csv --by kind --json", "[31m"),
        *(
            (f"{command} --by kind{details}", "<U+001B>")
            for command in ("metrics A", "check A --min adherence=1", "agree A B")
            for details in ("", " --details")
        ),
    ],
)
def test_strangers_text_reaches_no_terminal_unescaped(
    labeler_command: Command, command: str, shown: str
) -> None:
    """Shown, never obeyed; ids and groups make no line of their own, which could be believed."""
    name, kind = f"row{HOSTILE}\nFORGED", f"{HOSTILE}\nFORGED"
    for file, support in (("A", []), ("B", ["0b"])):
        answer = output(support={"a": ["0a"], "b": support}, explanation=HOSTILE)
        documents = [[HOSTILE, "x"]]
        made = record(id=name, answer=answer, documents=documents, metadata={"kind": kind})
        write_labels([made, record(id="r"), record(id=f"cut{file}")], file)
    Path("h.csv").write_text(f'id,adherence,"{kind}"\n"{name}?",1,x\nr,1,x\n', "utf-8")
    words = [name if word == "ID" else word for word in command.split()]
    _, out, err = labeler_command(*words)
    assert shown in out
    assert not {"\x1b", "\u202e"} & set(out + err)
    assert not [line for line in (out + err).splitlines() if line.lstrip().startswith("FORGED")]
