# ruff: noqa: RUF001  # letters of many scripts are the point
"""Responses that abstain: their wording in many languages, and what is counted of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

import labeler
from labeler.labels.record import LabelRecord
from labeler.sentences.abstention import abstains
from labeler.testing import assert_metric
from support.labeled import record

ABSTENTIONS = """
I don't know.
I\u2019m sorry, but the documents do not say how long the quay is.
The provided context does not contain information about the quay.
There isn't enough information to answer.
I couldn't find any relevant information in the sources.
The answer is not provided in the retrieved passages.
I do not know, but please contact the harbour office.
Unanswerable.
Die Dokumente enthalten keine Angaben dazu.
Das kann ich anhand der Unterlagen nicht beantworten.
Les documents ne mentionnent pas la longueur du quai.
El contexto no proporciona esta información.
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
The warranty does not cover water damage.
There is no evidence that vitamin C prevents colds.
The results do not show a significant effect.
Users who do not know their password can reset it.
The documents must not be copied.
The source code is not included in the package.
Das Museum ist montags nicht geöffnet.
Die Quelle liefert kein Trinkwasser.
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


@pytest.mark.parametrize("text", ANSWERS.strip().splitlines())
def test_a_negative_statement_is_an_answer(text: str) -> None:
    """About anything but the speaker's knowledge and the documents' contents."""
    assert not abstains(text)


@pytest.mark.parametrize("part", ["the ", "documents ", "no ", "i do not ", "資料", "a"])
def test_long_texts_take_no_time(part: str) -> None:
    """Strangers write them."""
    begin = time.process_time()
    abstains(part * 100_000)
    assert time.process_time() - begin < 1


def answered(
    *texts: str, support: Sequence[Sequence[str]] = (), relevant: Sequence[str] = ("0a",)
) -> LabelRecord:
    """A label of a response of these sentences, each with its support, which may be none."""
    keys = "abc"[: len(texts)]
    named = dict(zip(keys, [*support, *[()] * len(texts)], strict=False))
    made = record(support=named, relevant=relevant, utilized=[])
    spoken = tuple(
        replace(sentence, text=text)
        for sentence, text in zip(made.example.response, texts, strict=True)
    )
    example = made.example.model_copy(update={"response": spoken})
    return made.model_copy(update={"example": example})


@pytest.mark.parametrize(
    ("label", "abstained", "unneeded"),
    [
        (answered("I don't know."), 1, 1),
        (answered("I don't know.", relevant=()), 1, "nothing_to_answer_from"),
        (answered("The quay is 90 m long.", support=[["0a"]]), 0, 0),
        (answered("Sorry!", "The documents do not say it.", "Please ask the office."), 1, 1),
        (answered("Well.", "I don't know.", support=[["general"]]), 1, 1),
        # A part is answered, rightly or not.
        (
            answered("The documents do not say it.", "It was built of oak.", support=[(), ["0b"]]),
            0,
            0,
        ),
        (answered("I don't know.", "The quay is 90 m long."), 0, 0),
        (answered("I don't know.", "You can read 90 m on page 4.", support=[(), ["0a"]]), 0, 0),
        (answered("The quay is 90 m long.", relevant=()), 0, "nothing_to_answer_from"),
    ],
)
def test_abstentions_are_counted(label: LabelRecord, abstained: int, unneeded: int | str) -> None:
    """By the wording and the support: all of the response has to abstain."""
    (row,) = labeler.metrics([label])
    assert row["abstention_rate"].value == abstained
    found = row["unneeded_abstention_rate"]
    assert (found.undefined or found.value) == unneeded


def test_right_abstentions_are_not_counted_against_a_gate() -> None:
    """A question that the documents do not answer has no unneeded abstention."""
    made = [
        answered("I don't know.", relevant=()).model_copy(update={"key": f"{n:064x}"})
        for n in range(9)
    ]
    answers = [answered("The quay is 90 m long.", support=[["0a"]])]
    assert_metric([*made, *answers], "unneeded_abstention_rate", at_most=0)
