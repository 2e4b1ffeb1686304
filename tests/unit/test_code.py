"""Code inside texts: fences, inline code, and indented blocks."""

from __future__ import annotations

import pytest

from labeler.sentences.citations import code_spans, is_indented_code


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
