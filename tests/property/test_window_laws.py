"""Laws of windows: how records are cut, and how the labels of their windows are merged."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from labeled import claims_output, expects, output, reference_output, says, wrong
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.task import Task
from labeler.judges.tokens import Approximation, request_tokens
from labeler.labeling.window_merging import merge
from labeler.labeling.windows import ContextBudget, Windowed, cut
from labeler.labels.answers import (
    SPECIAL_SUPPORT,
    ClaimsLabelingOutput,
    GPTLabelingOutput,
    ReferenceLabelingOutput,
)
from labeler.labels.contract import check_label
from labeler.labels.record import LabelRecord
from labeler.sentences.example import KeyedExample
from labeler.sentences.keys import document_key, reference_key, response_key
from samples import keyed_example, request

RESPONSE = ["a", "b"]
LEFT = [document_key(0, s) for s in range(3)]
RIGHT = [document_key(1, s) for s in range(3)]
WHOLE = keyed_example(documents=[["x"] * 3, ["x"] * 3], response=["One.", "Two."])
REFERRING = WHOLE.model_copy(
    update={"reference": tuple(replace(s, key=f"ref.{s.key}") for s in WHOLE.response)}
)


def tokens(asked: Task) -> int:
    """Tokens of a prompt, as the run's limits count them."""
    texts = [{"content": message["content"]} for message in asked.messages]
    return request_tokens(Approximation(), texts, asked.schema.compact)


FRAME = tokens(request(keyed_example(documents=[[]])))


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Task, ContextBudget, Windowed]:
    """A record of any shape, and its windows."""
    text = st.text(st.sampled_from('ab .,0é日"\\\n'), min_size=1, max_size=60)
    documents = draw(st.lists(st.lists(text, max_size=6), min_size=1, max_size=5))
    documents.append(["Once more.", "And again."] * 60)
    asked = request(keyed_example(documents=documents))
    size = FRAME + draw(st.integers(300, 600))
    room = ContextBudget(size, size)
    found = cut(asked, room)
    assert found is not None
    return asked, room, found


@st.composite
def labels(draw: st.DrawFn, keys: list[str], *, special: bool = True) -> GPTLabelingOutput:
    """Any label of a window of these document sentences."""
    subset = st.lists(st.sampled_from(keys), unique=True)
    strings = st.lists(st.sampled_from(SPECIAL_SUPPORT), unique=True, max_size=2)
    support = {key: [*draw(subset), *(draw(strings) if special else [])] for key in RESPONSE}
    return output(relevant=draw(subset), utilized=draw(subset), support=support)


@st.composite
def richer(draw: st.DrawFn, keys: list[str]) -> ReferenceLabelingOutput:
    """Any label of the profile ``reference`` of a window; windows may word claims alike or not."""
    subset = st.lists(st.sampled_from(keys), unique=True, max_size=2)
    by = st.one_of(subset, st.just(["supported_without_sentence"]), st.just(["general"]))
    worded = st.sampled_from(["It is so.", "it is so", "It is not."])
    claims = [
        wrong(key, draw(by), against=draw(subset), claim=draw(worded))
        for key in RESPONSE
        for _ in range(draw(st.integers(0, 2)))
    ]
    reference = [
        expects(draw(subset), sentence=reference_key(0), claim=draw(worded))
        for _ in range(draw(st.integers(0, 2)))
    ]
    made = {claim.response_sentence_key for claim in claims}
    unsaid = [reference_key(1), *([] if reference else [reference_key(0)])]
    return reference_output(
        claims,
        reference,
        silent=[key for key in RESPONSE if key not in made],
        silent_reference=unsaid,
    )


def decisions(label: GPTLabelingOutput) -> dict[str, object]:
    """What a label says, without its explanations."""
    return {
        "relevant": set(label.all_relevant_sentence_keys),
        "utilized": set(label.all_utilized_sentence_keys),
        "overall": label.overall_supported,
        "support": {
            entry.response_sentence_key: (
                entry.fully_supported,
                set(entry.supporting_sentence_keys),
            )
            for entry in label.sentence_support_information
        },
    }


def supported(label: GPTLabelingOutput) -> set[str]:
    """The response sentences that are supported."""
    entries = label.sentence_support_information
    return {entry.response_sentence_key for entry in entries if entry.fully_supported}


# -- cutting


@given(cuts())
def test_every_document_sentence_is_in_exactly_one_window(
    case: tuple[Task, ContextBudget, Windowed],
) -> None:
    """In order, with its own key, and under the index of its document."""
    asked, _, found = case
    keys = [key for part in found.parts for key in part.example.document_keys()]
    assert keys == asked.example.document_keys()
    for part in found.parts:
        assert len(part.example.documents) == len(asked.example.documents)
        assert part.example.response == asked.example.response


@given(cuts())
def test_no_window_is_over_the_limit(case: tuple[Task, ContextBudget, Windowed]) -> None:
    """As the whole prompt is counted that is sent."""
    _, room, found = case
    assert all(tokens(part) <= room.window for part in found.parts)
    assert len(found.parts) > 1


@given(cuts())
def test_no_window_could_take_the_first_sentence_of_the_next(
    case: tuple[Task, ContextBudget, Windowed],
) -> None:
    """So that there are as few as can be; what lines are counted too high is less than a tenth."""
    _, room, found = case
    for part, after in zip(found.parts, found.parts[1:], strict=False):
        first = next(after.example.document_sentences())
        slack = 80 + len(part.example.document_keys()) * 2
        assert tokens(part) + len(first.text.encode()) + 30 + slack > room.window


@given(cuts())
def test_the_same_record_is_always_cut_alike(case: tuple[Task, ContextBudget, Windowed]) -> None:
    """Every part, and the merged label, keep their keys."""
    asked, room, found = case
    again = cut(asked, room)
    assert again is not None
    assert [part.key for part in again.parts] == [part.key for part in found.parts]
    assert again.task.key == found.task.key
    assert len({asked.key, found.task.key, *(part.key for part in found.parts)}) == 2 + len(
        found.parts
    )


# -- merging


@given(labels([*LEFT, *RIGHT]))
def test_one_window_decides_as_a_judge_of_the_whole(label: GPTLabelingOutput) -> None:
    """Merging adds nothing of its own."""
    assert decisions(merge([label], WHOLE)) == decisions(label)


@given(labels(LEFT), labels(RIGHT))
def test_relevant_and_utilized_are_unions(
    left: GPTLabelingOutput, right: GPTLabelingOutput
) -> None:
    """Each sentence is what its window calls it."""
    found, parts = merge([left, right], WHOLE), (left, right)
    for field in ("all_relevant_sentence_keys", "all_utilized_sentence_keys"):
        assert set(getattr(found, field)) == {key for p in parts for key in getattr(p, field)}


@given(labels(LEFT, special=False), labels(RIGHT, special=False))
def test_what_one_window_supports_by_sentences_stays_supported(
    left: GPTLabelingOutput, right: GPTLabelingOutput
) -> None:
    """By the sentences of all windows that support it; another window takes nothing away."""
    found = merge([left, right], WHOLE)
    assert supported(found) == supported(left) | supported(right)
    for entries in zip(
        *(label.sentence_support_information for label in (found, left, right)), strict=True
    ):
        merged, *parts = (set(entry.supporting_sentence_keys) for entry in entries)
        assert merged == parts[0] | parts[1]


@given(labels(LEFT), labels(RIGHT))
def test_special_strings_stand_where_no_sentence_is_named(
    left: GPTLabelingOutput, right: GPTLabelingOutput
) -> None:
    """And an absence only where every window supports the sentence."""
    for key, entry in zip(
        RESPONSE, merge([left, right], WHOLE).sentence_support_information, strict=True
    ):
        said = [
            set(e.supporting_sentence_keys)
            for label in (left, right)
            for e in label.sentence_support_information
            if e.response_sentence_key == key
        ]
        absent = "supported_without_sentence"
        if not any(each.difference(SPECIAL_SUPPORT) for each in said):
            expected = said[0] | said[1]
            assert set(entry.supporting_sentence_keys) == (
                expected if all(said) else expected - {absent}
            )


@given(richer(LEFT), richer(RIGHT))
def test_a_merged_label_keeps_the_contract(
    left: ReferenceLabelingOutput, right: ReferenceLabelingOutput
) -> None:
    """Claims and support agree, whether the windows word claims alike or not."""
    checked = check_label(merge([left, right], REFERRING), REFERRING)
    assert checked.violations == ()
    assert checked.normalised == {}


@given(richer(LEFT), richer(RIGHT))
def test_a_merged_label_of_the_profile_claims_keeps_the_contract(
    left: ReferenceLabelingOutput, right: ReferenceLabelingOutput
) -> None:
    """The same rules without a reference answer."""

    def lowered(label: ReferenceLabelingOutput) -> ClaimsLabelingOutput:
        claims = [
            says(c.response_sentence_key, c.supporting_sentence_keys, claim=c.claim)
            for c in label.response_claims
        ]
        return claims_output(claims, silent=label.response_sentences_without_claims)

    found = merge([lowered(left), lowered(right)], WHOLE)
    assert type(found) is ClaimsLabelingOutput
    assert check_label(found, WHOLE).violations == ()


def labeled(windowed: Windowed) -> list[LabelRecord]:
    """Labels of all windows, by the embedded judge."""
    records = []
    for part in windowed.parts:
        reply = asyncio.run(EmbeddedJudge().label(part))
        record = part.record(reply)
        assert isinstance(record, LabelRecord)
        records.append(record)
    return records


@given(st.randoms())
def test_the_order_in_which_windows_come_back_is_irrelevant(dice: random.Random) -> None:
    """They are told apart by their sentences."""
    asked = request(long_example())
    windowed = cut(asked, ContextBudget(FRAME + 200, FRAME + 200))
    assert windowed is not None
    records = labeled(windowed)
    shuffled = list(records)
    dice.shuffle(shuffled)
    assert windowed.merged(shuffled) == windowed.merged(records)


def long_example() -> KeyedExample:
    """A record of several windows."""
    documents = [[f"Tower {d} has {d + s} floors." for s in range(6)] for d in range(4)]
    response = [f"Tower {d} has {d + 2} floors." for d in range(3)]
    assert [response_key(n) for n in range(3)] == ["a", "b", "c"]
    return keyed_example(question="How high?", documents=documents, response=response)
