"""Thoughts in responses do not belong to the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labeler.api import open_rows
from labeler.sentences.citations import code_spans, is_indented_code
from labeler.sentences.conversation import without_thoughts
from labeler.sentences.example import Example
from support.command import Command

ROW = {"question": "How long is it?", "documents": ["It is 90 m long."]}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>Hm. 80 m?</think>\n\nIt is 90 m.", "It is 90 m."),
        ("<thinking>Hm.</thinking>It is 90 m.", "It is 90 m."),
        ("<THINK time=3>Hm.</Think> It is 90 m.", "It is 90 m."),
        ("Hm, 80 m?\n</think>\nIt is 90 m.", "It is 90 m."),
        ("[THINK]Hm.[/THINK]It is 90 m.", "It is 90 m."),
        ("◁think▷Hm.◁/think▷It is 90 m.", "It is 90 m."),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>It",
            "It",
        ),
        ("<think>A `tick</think>It is `90` m.", "It is `90` m."),
        ("<think>a <think>b</think> c</think>It is 90 m.", "It is 90 m."),
        ("It is <think>Hm.</think> 90 m.", "It is  90 m."),
        ("<think>Hm, and then it stops", ""),
        ("Put thoughts into `<think>` and `</think>`.", None),
        ("```xml\n<think>x</think>\n```\nSo.", None),
        ("~~~\n</think>\n~~~\nSo.", None),
        ("The <thinker> of </div> is 1 < 2.", None),
        ("<scratchpad>80 m?</scratchpad>\n90 m.", "90 m."),
        ("<antThinking>80 m?</antThinking>\n90 m.", "90 m."),
        ("<reflection>80 m?</reflection>\n90 m.", "90 m."),
        ("<|begin_of_thought|>80 m?<|end_of_thought|>\n90 m.", "90 m."),
        ("<|START_THINKING|>80 m?<|END_THINKING|>\n90 m.", "90 m."),
    ],
)
def test_thoughts_are_left_out(text: str, answer: str | None) -> None:
    """In all their spellings, cut off too; a tag in code is text."""
    assert without_thoughts(text) == (text if answer is None else answer)


def test_responses_with_thoughts_are_counted(tmp_path: Path, labeler_command: Command) -> None:
    """By one notice, also on a rerun; an option keeps them."""
    responses = ["<think>80 m?</think>It is 90 m.", "It is 90 m.", "Hm. 8 m.</think> It is 90 m."]
    lines = [json.dumps({**ROW, "response": text}) for text in responses]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    run = ("label", "rows.jsonl", "--judge", "embedded", "-o", "labels.jsonl")
    for _ in range(2):
        _, _, err = labeler_command(*run)
        assert err.count("2 rows have thoughts in the response") == 1
        read = map(json.loads, (tmp_path / "labels.jsonl").read_text().splitlines())
        assert {one["example"]["response"][0]["text"] for one in read} == {"It is 90 m."}
    _, _, err = labeler_command(*run, "--keep-thinking")
    assert "thoughts" not in err
    assert "80 m?" in (tmp_path / "labels.jsonl").read_text()


def test_given_sentences_and_other_fields_keep_their_tags() -> None:
    """They have to match their text."""
    row = {**ROW, "response": "<think>a</think>b", "documents": ["<think>D</think>"]}
    sentences = {"documents_sentences": [["x"]], "response_sentences": ["x"]}
    one, other = (each.content for each in open_rows([row, {**row, **sentences}]))
    assert isinstance(one, Example)
    assert (one.response, one.documents) == ("b", ("<think>D</think>",))
    assert other.response == row["response"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a\n```py\nb\n```\nc", ["```py\nb\n```\n"]),
        ("~~~\nb\n~~~\nc", ["~~~\nb\n~~~\n"]),
        ("````\n```\nb\n```\n````\nc", ["````\n```\nb\n```\n````\n"]),
        ("- ```js\n  b\n  ```\nc", ["- ```js\n  b\n  ```\n"]),
        ("> ```\n> b\n> ```\nc", ["> ```\n> b\n> ```\n"]),
        ("a\n```python\nb", ["```python\nb"]),
        ("```\nend of a block", []),
        ("a `b` c ``d`e`` ```f\ng```", ["`b`", "``d`e``", "```f\ng```"]),
        (
            "a <code>b < c</code> <pre>d\ne</pre> <b>f</b>",
            ["<code>b < c</code>", "<pre>d\ne</pre>"],
        ),
        ("one ` two", []),
    ],
)
def test_fenced_and_inline_code(text: str, code: list[str]) -> None:
    """Longer fences hold shorter ones; half a fence opens a block only with a language."""
    assert [text[start:end] for start, end in code_spans(text)] == code


@pytest.mark.parametrize(
    ("block", "is_code"),
    [
        ("    a = b[0]\n    print(a)", True),
        ("\tfor a in b:\n\t\ta.run()", True),
        ("    # take the first one of them\n    return b[0]", True),
        ("    $ tool --first", True),
        ("    SELECT b[0] FROM table", True),
        ("    a = b[0]\nprint(a)", False),
        ("    The quay is 90 m long (see [1]).", False),
        ("    Monday 9 to 17\n    Tuesday closed", False),
        ("    \u7801\u5934\u5f88\u957f = 90", False),
        ('    <p class="a">b</p>', False),
    ],
)
def test_indented_code(block: str, is_code: bool) -> None:
    """All lines are indented, one looks like code, and none like prose or HTML."""
    assert is_indented_code(block.splitlines()) == is_code
