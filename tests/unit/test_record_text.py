"""One record in a terminal: claims, their verdicts and keys, and no stranger's control sequence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from labeler.calculators.tables import worst_records
from labeler.calculators.tally import tally
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import LabelRecord
from labeler.report.views import outcome_text, print_outcome, record_view
from labeler.sentences.example import key_sentences
from support.labeled import (
    claims_output,
    compared,
    expects,
    listing_sources,
    record,
    reference_output,
    relabeled,
    says,
)
from support.samples import pieces

HOSTILE = "Paris.\x1b[31m \u202e[bold]red[/bold]"


Shown = Callable[[GPTLabelingOutput], str]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Returns what is printed of a label on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")
    told = key_sentences("ref.", pieces(["Paris.", HOSTILE]))

    def printed(label: GPTLabelingOutput) -> str:
        print_outcome(relabeled(record(answer=label), {"reference": told}))
        return capsys.readouterr().out

    return printed


def lines_of(text: str) -> list[str]:
    """Its lines, without the space between words."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_claims_are_shown_with_their_verdicts_and_keys(shown: Shown) -> None:
    """And the sentences that make none are named."""
    claims = [
        says("a", ["0a", "0b"], claim="It holds."),
        says("a", against=["1a"], claim="It does not.", on_topic=False),
        says("a", claim="Who knows.", on_topic=False),
    ]
    lines = lines_of(shown(claims_output(claims, silent=["b"])))
    assert {
        "✓Q a It holds.",
        "documents: entailment by 0a, 0b",
        "✗· a It does not.",
        "documents: contradiction against 1a",
        "·· a Who knows.",
        "documents: neutral",
        "without claims: b",
    } <= set(lines)
    assert "reference answer" not in lines


def test_the_reference_is_shown_with_its_claims(shown: Shown) -> None:
    """What the response says of each, where the documents state it, and the other way round."""
    label = reference_output(
        [compared(says("a", ["0a"], claim="It holds."), "contradiction")],
        [expects(["0a"], found=True, claim="Found."), expects(claim="Nowhere.")],
        silent=["b"],
        silent_reference=["ref.b"],
    )
    assert {
        "reference answer",
        "ref.a Paris.",
        "documents: entailment by 0a; reference: contradiction",
        "✓ ref.a Found.",
        "documents: 0a",
        "· ref.a Nowhere.",
        "documents: no document sentence",
        "without claims: ref.b",
    } <= set(lines_of(shown(label)))


def test_what_strangers_wrote_in_a_claim_is_shown_and_never_obeyed(shown: Shown) -> None:
    """Control sequences, direction overrides and markup, in claims and in the reference."""
    label = reference_output(
        [compared(says("a", ["0a"], claim=HOSTILE), "neutral")],
        [expects(claim=HOSTILE), expects(sentence="ref.b")],
        silent=["b"],
    )
    out = shown(label)
    assert ("\x1b[31m" in out, "\u202e" in out) == (False, False)
    assert out.count("[bold]red[/bold]") == 3


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (record(support={"a": ["0a"], "b": []}, response=3), "1 of 3 sentences supported, 1 not"),
        (listing_sources(record(support={"a": [], "b": ["0a"]})), "0 of 1 sentence supported"),
        (record(support={}, response=1), "no verdict"),
    ],
)
def test_the_heading_counts_sentences_as_metrics_do(made: LabelRecord, expected: str) -> None:
    """Lists of sources count nowhere, and a sentence without a verdict is not supported."""
    assert outcome_text(made).startswith(f"r1: {expected}")
    sentences = [one for one in record_view(made)["response"] if "sources" not in one]
    assert len(sentences) == len(tally(made).response)
    worst = worst_records([made])
    assert not worst or next(worst.lines()).startswith(f"r1: {expected}")


def test_the_conversation_is_shown_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each turn with its speaker, each tool output; no wrapped line ends in the table's blanks."""
    monkeypatch.setenv("COLUMNS", "40")
    print_outcome(record(turns=1, support={"a": ["h0b"]}))
    out = capsys.readouterr().out
    shown = " ".join(out.split())
    assert "earlier turn: user h0a Hello. h0b Why? tool output t0a 18 question" in shown
    assert [line for line in out.splitlines() if line != line.rstrip()] == []
