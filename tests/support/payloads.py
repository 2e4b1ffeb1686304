"""Hostile texts for pages, and records that hold them wherever a stranger's text can stand."""

from __future__ import annotations

import re
from collections.abc import Callable

from labeler.judges.judge import JudgeSpec
from labeler.labels.record import AnyOutcome, LabelFailure, LabelRecord
from labeler.labels.signature import label_key
from labeler.sentences.example import KeyedExample, key_sentences
from support.labeled import output
from support.samples import SPLITTER, pieces, signature

MARK = "pwned"
"""What each script among the payloads would call or set: a page on which it happens is broken."""

PAYLOADS: tuple[str, ...] = (
    # Elements that run or load something.
    "<script>pwned(1)</script>",
    "<ScRiPt src=data:text/javascript,pwned(2)></sCrIpT>",
    "<img src=x onerror=pwned(3)>",
    "<img/src='x'/onerror='pwned(4)'>",
    "<svg onload=pwned(5)><circle r=9></svg>",
    "<svg><script>pwned(6)</script></svg>",
    "<svg><animate onbegin=pwned(7) attributeName=x dur=1s></svg>",
    "<iframe srcdoc='<script>parent.pwned(8)</script>'></iframe>",
    "<body onload=pwned(9)>",
    "<details open ontoggle=pwned(10)>x</details>",
    "<input autofocus onfocus=pwned(11)>",
    "<video><source onerror=pwned(12)></video>",
    "<math><mtext><style><img src=x onerror=pwned(13)></style></mtext></math>",
    "<template><img src=x onerror=pwned(14)></template>",
    "<object data='javascript:pwned(15)'></object>",
    "<link rel=stylesheet href=data:text/css,body{display:none}>",
    "<style>body{display:none}</style>",
    "<meta http-equiv=refresh content='0;url=javascript:pwned(16)'>",
    "<base href=javascript:pwned(17)//>",
    "<form action=javascript:pwned(18)><button>go</button></form>",
    # Links and addresses.
    "javascript:pwned(19)",
    "<a href='javascript:pwned(20)'>read more</a>",
    "<a href=' \tjAvAsCrIpT&colon;pwned(21)'>read more</a>",
    "data:text/html,<script>pwned(22)</script>",
    "#record=row&sentence=a&x=<img src=x onerror=pwned(23)>",
    # Ways out of an attribute, a comment, a data block, a style, a title.
    '" onmouseover="pwned(24)" x="',
    "' onfocus='pwned(25)' tabindex='0",
    "`onclick=pwned(26)",
    '"><script>pwned(27)</script>',
    "'><img src=x onerror=pwned(28)>",
    "</script><script>pwned(29)</script>",
    "</style><script>pwned(30)</script>",
    "</title><script>pwned(31)</script>",
    "</textarea></noscript><script>pwned(32)</script>",
    "<!--<script>",
    "--><script>pwned(33)</script><!--",
    "]]><script>pwned(34)</script><![CDATA[",
    "<!--records-->",
    # What a template, a script's template or a formatter would take for its own.
    "{{ 7 * 7 }}",
    "{% for x in ().__class__.__mro__ %}{{ x }}{% endfor %}",
    "{{ cycler.__init__.__globals__.os.popen('pwned') }}",
    "${pwned(35)}",
    "{0.__class__} {} %s %(x)s",
    "<%= pwned(36) %>",
    # What breaks JSON, or the names of a script's objects.
    '","failed":null,"x":"',
    "\\u003cscript\\u003epwned(37)\\u003c/script\\u003e",
    '\\"}]};pwned(38);//',
    "__proto__",
    "constructor",
    "toString",
    # Letters that are obeyed rather than read, or that look like others.
    "\u202egpj.exe\u202c <img src=x onerror=pwned(39)>",
    "\u2066\u200bzero\u200bwidth\u2069",
    "\ufeffbyte order mark\u2028line\u2029paragraph",
    "\x1b[31mred\x1b[0m \x07bell \x9bcontrol",
    "\uff1cscript\uff1epwned(40)\uff1c/script\uff1e",
    "\u0001\u0008<\u0000script>pwned(41)</script>",
    "&lt;script&gt;pwned(42)&lt;/script&gt; &#60;b&#62; &amp;amp;",
    "=HYPERLINK(pwned)",
    "a" * 3000 + "<b>",
    "e\u0301" * 40 + "Z\u0351\u0352\u0353\u0354\u0355",
)

MODEL = "<img src=x onerror=pwned(0)>"
"""A judge's model, which is part of every printed signature."""

_MARKUP = re.compile("[^\\w\\s]|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u200b-\u206f\ufeff]")


def harmless(payload: str) -> str:
    """The same words with blanks for all that could mean something to a browser."""
    return _MARKUP.sub(" ", payload).replace("__", " ")


def hostile_records(dress: Callable[[str], str] = str) -> list[AnyOutcome]:
    """Two records and a failure for each payload, which stands wherever a stranger's text can.

    First comes a record that is hostile in any dress: what only hostile texts alarm always is.

    Args:
        dress: what is done to each payload: :func:`harmless` makes the harmless twins.
    """
    always, columns = PAYLOADS[0] + "\x1b[31m 9z", {hostile_column(dress): "always"}
    outcomes: list[AnyOutcome] = [
        _record("always", always, columns, model=dress(MODEL), supported=True)
    ]
    for number, payload in enumerate(PAYLOADS):
        text = dress(payload)
        columns = {text: text, hostile_column(dress): text}
        for supported in (True, False):
            name = f"{number} {supported} {text}"
            outcomes.append(_record(name, text, columns, model=dress(MODEL), supported=supported))
        outcomes.append(
            LabelFailure(id=f"{number} failed {text}", reason=text, message=text, metadata=columns)
        )
    return outcomes


def hostile_column(dress: Callable[[str], str] = str) -> str:
    """Name of a column that each of :func:`hostile_records` has; it is hostile itself."""
    return dress("group <img src=x onerror=pwned(0)>")


def _record(
    name: str, text: str, columns: dict[str, str], *, model: str, supported: bool
) -> LabelRecord:
    example = KeyedExample(
        id=name,
        question=text,
        documents=(key_sentences("0", pieces([text, f"It says {text}"])),),
        response=key_sentences("", pieces([text])),
        splitter=SPLITTER,
        metadata=columns,
    )
    made_by = signature(JudgeSpec(judge="test", model=model))
    return LabelRecord(
        key=label_key(example, made_by),
        example=example,
        label=output(support={"a": ["0a"] if supported else []}, explanation=text),
        signature=made_by,
    )
