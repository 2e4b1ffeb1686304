# ruff: noqa: RUF001  # brackets of many scripts are the point
"""Citation markers: their forms, what is none, and the documents that they name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labeler
from labeler.labels.record import LabelRecord
from labeler.sentences import abstention
from labeler.sentences.abstention import abstains
from labeler.sentences.citations import (
    Cited,
    find_markers,
    read_citations,
    source_sentences,
    without_markers,
)
from labeler.sentences.splitting.general import GENERAL
from labeler.sentences.words import read_patterns
from support.audited import judged

FORMS = {
    "It rains [1].": (["[1]"], [1]),
    "It rains [2, 6]; it pours【4†source】.": (["[2, 6]", "【4†source】"], [2, 6, 4]),
    "It rains[1][2] and [^3]": (["[1]", "[2]", "[^3]"], [1, 2, 3]),
    "It rains [1-3, 7] or [4 and 5].": (["[1-3, 7]", "[4 and 5]"], [1, 2, 3, 7, 4, 5]),
    "It rains [1]\u2013[3].": (["[1]\u2013[3]"], [1, 2, 3]),
    "It rains (Document 1) [Doc 2, Doc 3].": (["(Document 1)", "[Doc 2, Doc 3]"], [1, 2, 3]),
    "It rains (source: 1), it pours (chunks 2, 3).": (["(source: 1)", "(chunks 2, 3)"], [1, 2, 3]),
    "Documents 1, 2 and 4 do, as Passage 3.": (["Documents 1, 2 and 4", "Passage 3"], [1, 2, 4, 3]),
    "According to document 2, 3 people died.": (["document 2"], [2]),
    "It rains.¹² It pours¹,³, snows<sup>4</sup>.": (["¹²", "¹,³", "<sup>4</sup>"], [12, 1, 3, 4]),
    "It rains [doc1][doc 2], it pours [ID:3].": (["[doc1]", "[doc 2]", "[ID:3]"], [1, 2, 3]),
    "下雨［1］。下雪【2，3】（来源：4）。": (["［1］", "【2，3】", "（来源：4）"], [1, 2, 3, 4]),
    "It rains [[1]](https://a.example/b).": (["[[1]](https://a.example/b)"], [1]),
    "Es regnet [Quelle 1] (Dokument 2).": (["[Quelle 1]", "(Dokument 2)"], [1, 2]),
    "It rains [cite: 1, 2]; it pours [citation:3].": (["[cite: 1, 2]", "[citation:3]"], [1, 2, 3]),
    "長さは90メートル¹。木造²。": (["¹", "²"], [1, 2]),
    "It rains<ref>1</ref> or pours [Node 2 und 3].": (
        ["<ref>1</ref>", "[Node 2 und 3]"],
        [1, 2, 3],
    ),
    "It rains [S1][S2] {3}.": (["[S1]", "[S2]", "{3}"], [1, 2, 3]),
    "Vitamin [D3] is in {1} [2](a.pdf).": (["[2](a.pdf)"], [2]),
    "雨[1](a/雨.pdf)[2](雨很大)": (["[1](a/雨.pdf)", "[2]"], [1, 2]),
    "It rains [DOC 3] (SOURCE 4) [Extrait 5].": (
        ["[DOC 3]", "(SOURCE 4)", "[Extrait 5]"],
        [3, 4, 5],
    ),
    'It <cite index="12-3,2-4">rains</cite>.': (['<cite index="12-3,2-4">'], [12, 2]),
    "It [1](b)<cite id=3/>[REF]4[/REF].": (["[1](b)", "<cite id=3/>", "[REF]4[/REF]"], [1, 3, 4]),
    "It <co: 0>rains</co: 0>, it pours.</co: 0:[2,3]>": (["</co: 0>", "</co: 0:[2,3]>"], [0, 2, 3]),
}


@pytest.mark.parametrize("text", FORMS)
def test_forms_of_markers(text: str) -> None:
    """Brackets, footnotes, superscripts and names, with lists and ranges."""
    found = find_markers(text)
    numbers = [number for marker in found for number in marker.numbers]
    assert ([text[one.start : one.end] for one in found], numbers) == FORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "6 km², 10⁶ m³, x², Ca²⁺ and ¹⁴C; 4 m<sup>2</sup>, 10<sup>6</sup>",
        "The act of [2019], [sic] and [a], in section 3 (1).",
        "Read `args[0]` first, then ``b`[1]``, and <code>c[2]</code>.",
        "Run:\n```python\nvalue = args[0]\n```",
        "> ~~~~\n> ~~~\n> args[0]\n> ~~~~",
        "````\n```\nargs[1]\n````",
        "```js\nconst first = args[0];",
        "    value = args[0]\n    print(value)",
        "\targs[1].run()",
        "At [12:30] they met, and read [4:5].",
        "The right to be forgotten (Article 17), with a [sic] (note 2).",
        r"Half is \frac{1}{2}, x^{2} and {0, 1}; turn1search2 and {name}, ##4.",
        'The set {3}, [a-z]{3} and A = {2}; print "{1}", ${1}, <source width=3/> or [C-14].',
        "Print {0} of {1}.",
        "At [C4] and [D5].",
        "Document 1.5 and Document1 of the document 2 years ago.",
    ],
)
def test_what_is_no_marker(text: str) -> None:
    """Exponents, years, code, versions and counts; a marker goes with the space before it."""
    assert find_markers(text) == []
    assert without_markers(text) == text
    assert without_markers("It rains [1, 2].¹ It pours (Document 3)!") == "It rains. It pours!"


@pytest.mark.parametrize(
    ("texts", "cited"),
    [
        (["A [1, 2].", "B [0]."], [{1, 2}, {0}]),
        (["A【4:0†source】.", "B【4:2†b.pdf】."], [{0}, {2}]),
        (["A ##0$$.", "B ##2$$ ##1$$."], [{0}, {1, 2}]),
        (["A 【turn0search0】", "B \ue200cite\ue202turn0file1\ue202L3-L5\ue201"], [{0}, {1}]),
        (["A 【0:1†source】【7:2†source】"], [{1, 2}]),
        (["<co>A</co: 0:[1,2]>.", "<co: 0,1>B</co: 0,1>."], [{1, 2}, {0, 1}]),
        (["A [1]. It is in [0, 1].", "B [2]."], [{0}, {1}]),
        (["A [1], in [0;100] or [5-0].", "B [2]."], [{0}, {1}]),
        (["In ([0, 1]).", "A ([1])."], [set(), {0}]),
        (["A [0, 1].", "B [0]."], [{0, 1}, {0}]),
        (["A [0, 1]."], [{0, 1}]),
        (["A [1].", "```py\nb = a[0]", "c = a[0]\n```", "D [2]."], [{0}, set(), set(), {1}]),
        (["A [1].", "    b = args[0]", "C [2]."], [{0}, set(), {1}]),
    ],
)
def test_numbers_count_from_1_or_from_0(texts: list[str], cited: list[set[int]]) -> None:
    """From 0 in a record that uses 0; intervals and code shift nothing. Others are missing."""
    assert [one.documents for one in read_citations(texts, 3)] == cited
    missing = [Cited(frozenset([0]), frozenset([3])), Cited()]
    assert read_citations(["A [1, 3].", "B."], 2) == missing


LISTS = [
    ["Sources: [1], [2]"],
    ["(Sources: [1], [2])"],
    ["References:\n[1] Harbour handbook", "[2] Tide tables"],
    ["## References", "1. Harbour handbook", "2. Tide tables"],
    ["**Sources:**", "- Harbour handbook, p. 3", "- https://a.example/tides"],
    ["References:", "[1] Harbour handbook.", "Second edition.", "[2] Tide tables."],
    ["[^1]: Harbour handbook.", "[^2]: Tide tables."],
    ["[1] Harbour handbook", "[2] Tide tables"],
    ["¹ Harbour handbook", "² Tide tables"],
    ["Source: Harbour handbook, 2nd edition."],
    ["References\nHarbour handbook", "Tide tables"],
    ["📚 Sources used: Document 1, Document 2"],
    ["参考文献：", "[1] 港口手册", "[2] 潮汐表"],
    ["来源：[1][2]"],
    *([title] for title in ("出典：[1]、[2]", "Fuentes: [1], [2]", "Источники: [1], [2]")),
    *([title] for title in ("المصادر: [1]، [2]", "출처: [1], [2]", "Based on: [1], [2]")),
    ["| # | Source |\n|---|---|", "| 1 | Harbour book |", "| 2 | Oak |"],
    ["## Quellen", "| Nr. | Titel |\n|---|---|", "| [1] | Hafenbuch |", "| [2] | Eiche |"],
    ["[1]: https://a.example/1", "[2]: https://a.example/2"],
    ["Works cited:", "Smith, J. Tides. 2020.", "Doe, A. Quays."],
    ["Source 1: Harbour handbook", "Source 2: Tide tables"],
    ["Learn more:", "- [Harbour](https://a.example)", "- https://b.example"],
    *([title] for title in ("Source(s): [1] [2]", "Key sources: Handbook, Tides", "Ref: [1], [2]")),
    ["Source: own measurement"],
]


@pytest.mark.parametrize("listed", LISTS, ids=lambda listed: listed[0])
def test_a_list_of_sources_is_neither_claim_nor_citation(listed: list[str]) -> None:
    """Whatever its title, language and signs; in the pieces of the default splitter."""
    claims = ["The quay is 90 m long [1].", "It was built of oak [2]."]
    texts = [*claims, *listed]
    assert source_sentences(texts) == {*range(2, len(texts))}
    cited = [one.documents for one in read_citations(texts, 2)]
    assert cited == [{0}, {1}, *[set()] * len(listed)]


@pytest.mark.parametrize(
    "texts",
    [
        ["The river has two.", "## Sources", "They lie in the hills.", "Both are dry."],
        ["It has several.", "Sources: wind and sun.", "They are cheap."],
        ["A [1].", "References to it are rare."],
        ["It has three.", "Sources: wind, sun and coal."],
        ["It is long.", "Learn more:", "- It is also wide."],
        ["It has two.", "Sources:", "Vitamin D. It is in fish.", "Vitamin C, found in fruit."],
        ["They differ [1][2].", "Source 1: It is long.", "Source 2: It is short."],
        ["[1] The quay is long.", "[2] It is of oak."],
        ["A [1].", "[1] says that it is deep."],
        ["A [1].", "B [2].", "[2] Its gate is new."],
        ["Sources: [1], [2]"],
        ["Oak is new [1].", "| Source | Length |\n|---|---|", "| Quay | 90 m [1] |"],
    ],
)
def test_what_is_no_list_of_sources(texts: list[str]) -> None:
    """Sentences about sources, sentences that begin with a marker, and a whole response."""
    assert source_sentences(texts) == frozenset()


def test_markers_alone_cite_for_the_sentence_before() -> None:
    """Once for each sentence, with or without a title."""
    texts = ["A.", "Source: [1]", "B.", "[2]", "[3].", "C.", "Source: [1]"]
    cited = [[*one.documents] for one in read_citations(texts, 3)]
    assert cited == [[0], [], [1, 2], [], [], [0], []]
    assert source_sentences(texts) == {1, 3, 4, 6}


@pytest.mark.parametrize(
    "texts",
    [
        ["It is oak. ([1])", "It is long. ([2], [3])"],
        ["It is oak. ([source 1](https://a.example/1))", "It is long. (cf. [2], [3](#b))"],
        ["It is oak. [Doc 1, p. 7]", "It is long. [2; 3]"],
        ["It is oak. (see Document 1)", "It is long. [vgl. 2, 3, S. 9]"],
        ["It is oak. (см. источник 1, стр. 7)", "It is long. (siehe Quelle 2, 3)"],
        ["甲长。（见文档1）", "乙短。（参见文档2和文档3）"],
        ["It is oak.<ref>1</ref>", "It is long. <cite>2,3</cite>"],
        ["Il est long. [réf. 1]", "Il est bas. [réf. 2, 3]"],
        ["It is oak. <sup>1</sup>", "It is long. <sup>[2, 3]</sup>"],
    ],
)
def test_words_and_pages_around_citations(texts: list[str]) -> None:
    """They belong to the sentence before them, and pages do not count as documents."""
    assert [piece.text for piece in GENERAL.split(" ".join(texts))] == texts
    assert [one.documents for one in read_citations(texts, 9)] == [{0}, {1, 2}]


ABSTENTIONS = """
I don't know.
I\u2019m sorry, but the documents do not say how long the quay is.
The provided context does not contain information about the quay.
There isn't enough information to answer.
I couldn't find any relevant information in the sources.
Unanswerable.
Unable to determine.
I cannot confirm that.
No relevant information was found.
Nothing in the documents mentions the quay.
It is unclear from the context.
No se menciona la longitud en el documento.
Die Dokumente enthalten keine Angaben dazu.
Das kann ich anhand der Unterlagen nicht beantworten.
Les documents ne mentionnent pas la longueur du quai.
Não sei.
Il contesto non contiene questa informazione.
Ik weet het niet.
В документах нет информации об этом.
Dokumenty nie zawierają tej informacji.
根据提供的资料，无法确定答案。
提供的資料中沒有提到這一點。
文書には記載されていません。
문서에 해당 정보가 없습니다.
لا أعرف.
दस्तावेज़ में इसका उल्लेख नहीं है।
Tôi không biết.
Maaf, tidak ada informasi tentang itu.
Üzgünüm, bu konuda bilgi bulunamadı.
ไม่พบข้อมูลในเอกสาร
"""
ANSWERS = """
The quay is 90 m long.
I don't know, but the quay is probably 90 m long.
There is no evidence that vitamin C prevents colds.
The results do not show a significant effect.
Users who do not know their password can reset it.
The documents must not be copied.
I cannot give you a refund.
We do not provide refunds.
Nothing in this contract limits your rights.
The source code is not included in the package.
Das Museum ist montags nicht geöffnet.
Le musée n'est pas ouvert le lundi.
El documento de identidad no caduca.
Музей не работает по понедельникам.
博物馆星期一不开放。
資料館は月曜日は開いていない。
박물관은 월요일에 열지 않습니다.
"""


@pytest.mark.parametrize("text", ABSTENTIONS.strip().splitlines())
def test_a_sentence_without_an_answer_abstains(text: str) -> None:
    """The speaker does not know, or the documents lack it."""
    assert abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        *ANSWERS.strip().splitlines(),
        # A million pieces with a pattern that is not linear take hours.
        *(one * 1_000_000 for one in ("the ", "documents ", "no ", "i do not ", "資料", "a")),
    ],
    ids=lambda text: text[:30],
)
def test_any_other_statement_is_an_answer(text: str) -> None:
    """Negative ones about anything but the speaker's knowledge and the documents' contents."""
    assert not abstains(text)


WORDING = read_patterns(abstention.__file__, "abstention", re.IGNORECASE)


@pytest.mark.parametrize("language", ["english", "others"])
@given(st.data())
@settings(max_examples=300)
def test_a_look_for_denials_keeps_what_expressions_find(language: str, data: st.DataObject) -> None:
    """It saves time and decides nothing; what follows a contrast may be an answer."""
    text = data.draw(st.from_regex(WORDING[language], fullmatch=True))
    assert len(text) > 300 or WORDING["contrast"].search(text) or abstains(text)


def answered(
    *texts: str, support: Sequence[Sequence[str]] = (), relevant: Sequence[str] = ("0a",)
) -> LabelRecord:
    """A label of a response of these sentences, each with its support, which may be none."""
    supported = dict(zip(texts, [*support, *[()] * len(texts)], strict=False))
    return judged(supported, relevant=relevant, utilized=[])


@pytest.mark.parametrize(
    ("label", "abstained", "unneeded"),
    [
        (answered("I don't know."), 1, 1),
        (answered("I don't know.", relevant=()), 1, "nothing_to_answer_from"),
        (answered("The quay is 90 m long.", support=[["0a"]]), 0, 0),
        (answered("The quay is 90 m long.", relevant=()), 0, "nothing_to_answer_from"),
        (answered("Sorry!", "The documents do not say it.", "Please ask the office."), 1, 1),
        (answered("Well.", "I don't know.", support=[["general"]]), 1, 1),
        (answered("I don't know.", "Sources: [1], [2]"), 1, 1),
        # A part is answered, rightly or not.
        (answered("The documents do not say.", "It was of oak.", support=[(), ["0b"]]), 0, 0),
        (answered("I don't know.", "The quay is 90 m long."), 0, 0),
        (answered("I don't know.", "You can read 90 m on page 4.", support=[(), ["0a"]]), 0, 0),
    ],
)
def test_abstentions_are_counted(label: LabelRecord, abstained: int, unneeded: int | str) -> None:
    """By the wording and the support: all of the response has to abstain."""
    (row,) = labeler.metrics([label])
    assert row["abstention_rate"].value == abstained
    found = row["unneeded_abstention_rate"]
    assert (found.undefined or found.value) == unneeded
