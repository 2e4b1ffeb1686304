# ruff: noqa: RUF001  # digits and marks of many scripts are the point
"""Numbers: their spellings, and what stays open."""

from __future__ import annotations

import pytest

from labeler.sentences.numbers import (
    claimed_figures,
    claimed_numbers,
    decimal_marks,
    is_known,
    known_figures,
    with_plain_numbers,
)


@pytest.mark.parametrize(
    "spelled",
    [
        *(f"1{gap}250{gap}000" for gap in ".,'’ \u00a0\u202f\u2009"),
        *("12,50,000", "1,250,000.00", "1.250.000,00"),
        *("１２５００００", "१२,५०,०००", "١٬٢٥٠٬٠٠٠", "125万", "一百二十五万"),
    ],
)
def test_spellings_of_one_number(spelled: str) -> None:
    """Groups of all kinds, digits of all scripts, and Chinese numerals."""
    assert with_plain_numbers(spelled) == "1250000"
    assert known_figures(spelled) >= {"1250000"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("2.50 and 2,5", "2.5 and 2.5"),
        ("0.250, 0,250", "0.25, 0.25"),
        ("1 250 t", "1250 t"),
        ("in 2020 250 people", "in 2020 250 people"),
        ("version 1.2.3 of 12.05.2024", "version 1.2.3 of 12.05.2024"),
        ("1.250 but 1,250", "1.250 but 1250"),
        ("二〇二四年三十六个月，十分好", "2024年36个月，十分好"),
        ("๓๖ เดือน", "36 เดือน"),
        ("twenty-one of Twelve, one of them", "21 of 12, one of them"),
        ("1万2500元, 1億2000万円, 1億5千万円", "12500元, 120000000円, 150000000円"),
        ("1만 2천 원, 5万 10000", "12000 원, 50000 10000"),
    ],
)
def test_plain_numbers(text: str, plain: str) -> None:
    """A mark before three digits groups them if it is a comma, and stays open if it is a point."""
    assert with_plain_numbers(text) == plain


@pytest.mark.parametrize(
    ("texts", "marks"),
    [
        (["6,48 m", "6.480 m"], ","),
        (["1.250.000"], ","),
        (["3.5 t, 6,48 m"], "."),
        (["1,250.50"], "."),
        (["1.250", "1,250", "[1,2]", "12.05.2024"], ".,"),
        (["The lock holds 1,250 t."], "."),
        (["水门容量为1,250吨"], "."),
        (["Die Schleuse fasst 1,250 t."], ".,"),
    ],
)
def test_the_decimal_mark_of_a_record(texts: list[str], marks: str) -> None:
    """Numbers that can be read in one way only show it."""
    assert decimal_marks(texts) == marks


@pytest.mark.parametrize(
    ("claim", "document", "known"),
    [
        ("1.250 t", "1250 t", True),
        ("1250 t", "1.250 t", True),
        ("1,250 t", "1.250 t", True),
        ("1.250 t", "1.25 t", True),
        ("1.250 t", "7 t", False),
        ("6,48 m", "6.480 m", False),
        ("6.480 m", "6,48 m", False),
        ("3,5 km", "3.5 km", True),
        ("1 250 t", "1250 t", True),
        ("1 250 t", "parts 1 and 250", True),
        ("90 m", "90 meters", True),
        ("1.25 million", "1,250,000", True),
        ("12.5 lakh", "12,50,000", True),
        ("1,25 Mio. Euro", "1.250.000 Euro", True),
        ("It rose by 1.6.", "1.6 m", True),  # not the item 6 of a list
        ("It rose by 1.6.", "1.7 m", False),
        ("It fell (by 0.6)", "0.6 m", True),
        ("It opens (10:30) daily.", "from 10:40", False),
        ("36", "thirty-six", True),
        ("121 locks", "one hundred and twenty-one locks", True),
        ("2,000,121", "Two million one hundred and twenty-one", True),
        ("305,000", "three hundred and five thousand", True),
        ("5,000", "between two and three thousand", False),
        ("100", "a hundred of them", True),
        ("1,000,000 t", "1e6 t", True),
        ("1E+6 t", "1,000,000 t", True),
        ("1e6 t", "1 t", False),
        ("3×10⁻³ m", "0.003 m", True),
        ("3 x 10^5 m", "300,000 m", True),
        ("2 x 105 cm", "210 cm", False),
        ("10⁶ cells", "1,000,000 cells", True),
        ("10^6 cells", "10 and 6 cells", False),
        ("the 21st century", "the twenty-first century", True),
        ("the 200th", "the two hundredth", True),
        ("24 eggs", "two dozen eggs", True),
        ("in 1999", "in nineteen ninety-nine", True),
        ("in 2024", "in two thousand and twenty-four", True),
        ("118", "nineteen ninety-nine", False),
        ("6 locks", "the first five locks", False),
        ("6 locks", f"a{' hundred' * 3000}", False),
        ("36个月", "24个月", False),
        ("三十六个月", "36个月", True),
        ("購入後３６か月", "購入後24か月", False),
        ("รับประกัน36เดือน", "รับประกัน24เดือน", False),
        ("구매후36개월", "구매후24개월", False),
        ("و36 شهرا", "24 شهرا", False),
    ],
)
def test_what_a_document_may_have(claim: str, document: str, known: bool) -> None:
    """An open spelling is never missing; another number is, with or without spaces around it."""
    marks = decimal_marks([claim, document])
    figures = claimed_figures(claim, marks)
    assert figures
    assert all(is_known(one, known_figures(document, marks)) for one in figures.values()) == known


def test_names_and_references_claim_no_number() -> None:
    """COVID-19 is a name, step 3 and 图3 are places, [4] cites, and (71°C) converts."""
    text = "COVID-19, CO2, step 3, 图3, [4], 【5:0†a】, page 25. At 160°F (71°C): 8 of 购买后9个"
    assert list(claimed_figures(text)) == ["160", "8", "9"]
    assert claimed_numbers("COVID-19 and CO2 in step 3 cost 8") == ["8"]
