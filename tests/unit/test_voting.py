"""The label that most judgments agree with, and how rows come to be judged several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import labeler
from labeler.api import MemoryStore, iter_labels
from labeler.calculators.rater_agreement import Votes
from labeler.errors import JudgeError, UsageError
from labeler.judges.judge import JudgeSpec, UnusableAnswer
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.failures import record_or_failure
from labeler.labeling.vote import electorate, majority
from labeler.labels.answers import GPTLabelingOutput
from labeler.labels.record import LabelRecord, Outcome
from labeler.labels.signature import load_schema
from labeler.sentences.example import Frozen
from support.command import Command
from support.fakes import Behavior, CountingJudge, agreeable
from support.labeled import output
from support.samples import request
from wire.runs import reasons, row_file, rows

SCHEMA = load_schema("label-trace/v1").artifact


def vote(number: int, label: GPTLabelingOutput) -> LabelRecord:
    """One judge's record of the same sentences."""
    asked = request(spec=JudgeSpec(judge="test", model=f"m{number}"))
    record = record_or_failure(asked, JudgeReply(label))
    assert isinstance(record, LabelRecord)
    return record


def elect(*labels: GPTLabelingOutput, voters: int | None = None) -> LabelRecord:
    """What most of the given labels say."""
    votes = [vote(number, label) for number, label in enumerate(labels)]
    signature = electorate([one.signature for one in votes], SCHEMA)
    return majority(votes, signature, voters or len(votes))


def supports(label: GPTLabelingOutput) -> Mapping[str, Sequence[str]]:
    """Supporting keys by response sentence."""
    return {
        entry.response_sentence_key: entry.supporting_sentence_keys
        for entry in label.sentence_support_information
    }


def test_each_sentence_is_decided_by_itself() -> None:
    """0a is relevant to all three, 0b to two, 1a to one; b is supported by one voter only."""
    record = elect(
        output(relevant=["0a", "0b"], utilized=["0a"], support={"a": ["0a"], "b": ["0b"]}),
        output(relevant=["0a", "0b", "1a"], utilized=["1a"], support={"a": ["0a", "1a"], "b": []}),
        output(relevant=["0a"], utilized=["1a", "0a"], support={"a": ["0b", "1a"], "b": []}),
    )
    assert record.label.all_relevant_sentence_keys == ("0a", "0b")
    assert record.label.all_utilized_sentence_keys == ("0a", "1a")
    assert supports(record.label) == {"a": ("0a", "1a"), "b": ()}
    assert record.label.overall_supported is False
    assert record.scores is not None
    assert record.scores.support == {"a": 1.0, "b": 1 / 3}
    assert record.scores.relevance == {"0a": 1.0, "0b": 2 / 3, "1a": 1 / 3}


def test_the_whole_response_follows_from_its_sentences() -> None:
    """Three voters find another sentence unsupported each: none of them is, by most votes."""
    faults = [
        output(support={"a": [], "b": ["0b"]}),
        output(support={"a": ["0a"], "b": []}),
        output(support={"a": ["0a"], "b": ["0b"]}),
    ]
    assert elect(*faults).label.overall_supported is True
    opposed = [faults[0].model_copy(update={"overall_supported": True})] * 3
    label = elect(*opposed).label
    assert label.overall_supported is False
    assert label.overall_supported_explanation.startswith("[0 of 3 votes] No vote on the whole")


def test_ties_and_missing_votes_are_a_no() -> None:
    """Voters who differ support nothing; two of three may decide if they agree."""
    record = elect(
        output(relevant=["0a"], support={"a": ["0a"], "b": ["0b"]}),
        output(relevant=["0b"], support={"a": ["0a"], "b": []}),
    )
    assert record.label.all_relevant_sentence_keys == ()
    assert supports(record.label) == {"a": ("0a",), "b": ()}
    yes, no = output(relevant=["0a"]), output(relevant=[])
    assert elect(yes, yes, voters=3).label.all_relevant_sentence_keys == ("0a",)
    assert elect(yes, no, voters=3).label.all_relevant_sentence_keys == ()


def test_the_quoted_voter_names_the_keys_that_are_kept() -> None:
    """An explanation that speaks of other sentences would contradict them."""

    def because(*keys: str) -> GPTLabelingOutput:
        made = output(support={"a": keys, "b": []})
        first, *others = made.sentence_support_information
        said = first.model_copy(update={"explanation": f"by {' '.join(keys)}"})
        return made.model_copy(update={"sentence_support_information": (said, *others)})

    def quoted(*labels: GPTLabelingOutput) -> tuple[Sequence[str], str]:
        entry = elect(*labels).label.sentence_support_information[0]
        return entry.supporting_sentence_keys, entry.explanation

    assert quoted(because("1a"), because("0a"), because("0a")) == (("0a",), "[3 of 3 votes] by 0a")
    most = quoted(because("0a"), because("0a", "0b", "1a"), because("0b"))
    assert most == (("0a", "0b"), "[3 of 3 votes] by 0a 0b 1a")
    # No key is named by most of them: those that most often occur are taken.
    assert quoted(because("0a"), because("0b"), because("1a"))[0] == ("0a", "0b", "1a")


def test_a_majority_is_a_sound_record_that_names_its_voters() -> None:
    """Its key follows from its sentences and its voters; nobody was asked for it."""
    record = elect(output(), output(), output())
    assert record.fault() is None
    assert str(record.signature).startswith("judge:majority/3 votes|")
    assert "test/m0" in str(record.signature)
    assert record.reply.attempts == 0
    other = elect(output(), output(), output(relevant=["1a"]))
    assert other.key == record.key
    assert elect(output(), output()).key != record.key


def failing(error: JudgeError) -> Behavior:
    """Fails on the second row."""

    def answer(asked: Task) -> JudgeReply:
        if asked.example.id == "r1":
            raise error
        return agreeable(asked)

    return answer


REFUSING = failing(UnusableAnswer("no", reason="refusal", attempts=1, lasting=True))


def vote_on(judges: Sequence[Any], count: int = 3, **options: Any) -> list[Outcome]:
    """Label rows by judges that vote."""
    return list(iter_labels(rows(count), judges=judges, **{"store": MemoryStore(), **options}))


def test_repeats_are_stored_by_themselves_and_bought_once() -> None:
    """Three trials of each row the first time, none the second."""
    store, judge = MemoryStore(), CountingJudge()
    for _ in range(2):
        assert reasons(vote_on([judge], 4, repeat=3, store=store)) == ["label"] * 4
    assert len(judge.asked) == 12
    assert {r.signature.trial for r in store if isinstance(r, LabelRecord)} == {0, 1, 2}
    assert reasons(labeler.label(rows(4), judge=judge, store=store)) == ["label"] * 4
    assert len(judge.asked) == 12


def test_a_row_needs_more_than_half_of_its_votes() -> None:
    """One of three may fail; where two do, the row fails for their reason."""
    judges = [CountingJudge(model=f"m{n}") for n in range(2)]
    refusers = [CountingJudge(REFUSING, model=f"no{n}") for n in range(2)]
    assert reasons(vote_on([*judges, refusers[0]])) == ["label"] * 3
    for voters in ([judges[0], *refusers], [judges[0], refusers[0]]):
        assert reasons(vote_on(voters)) == ["label", "refusal", "label"]


def test_a_vote_that_may_still_come_is_no_no() -> None:
    """The row waits for it; once it is there the label is what all votes say."""
    store = MemoryStore()
    judges = [CountingJudge(model=f"m{n}") for n in range(2)]
    late = CountingJudge(failing(JudgeError("no answer", reason="transport")), model="late")
    outcomes = vote_on([*judges, late], store=store)
    assert reasons(outcomes) == ["label", "transport", "label"]
    assert "2 of 3 votes are there, which does not settle it" in str(outcomes[1])
    (row,) = labeler.summary(outcomes, "adherence")  # the failure counts with the majority
    assert (row.defined, row.failed) == (2, {"transport": 1})
    mended = CountingJudge(model="late")
    assert reasons(vote_on([*judges, mended], store=store)) == ["label"] * 3
    assert mended.asked == ["r1"]


class Crowd(CountingJudge):
    """One of several judges that count their calls at once together."""

    now: int = 0
    most: int = 0

    async def label(self, request: Task[Any]) -> JudgeReply[Frozen]:
        """Answer after a moment."""
        Crowd.now += 1
        Crowd.most = max(Crowd.most, Crowd.now)
        try:
            return await super().label(request)
        finally:
            Crowd.now -= 1


def test_voters_run_side_by_side_within_the_concurrency() -> None:
    """They share its places; each judge is closed once, however often it votes."""
    judges = [Crowd(model=name, seconds=0.01) for name in "abc"]
    run = iter_labels(rows(8), judges=judges, repeat=2, store=MemoryStore(), concurrency=4)
    first = next(run)
    assert all(judge.asked for judge in judges)
    assert [first.id, *(outcome.id for outcome in run)] == [f"r{n}" for n in range(8)]
    assert Crowd.most == 4
    assert [judge.closed for judge in judges] == [1, 1, 1]
    assert [len(judge.asked) for judge in judges] == [16, 16, 16]


def test_one_judge_has_one_vote_and_nobody_none() -> None:
    """However often, and under whatever name, it is among the voters; nothing is asked."""
    judge = CountingJudge()
    with pytest.raises(UsageError, match="fake/fake-1 is named twice"):
        vote_on([judge, judge])
    assert (judge.asked, judge.closed) == ([], 1)
    with pytest.raises(UsageError, match="needs a voter"):
        vote_on([])
    with pytest.raises(UsageError, match="repeat must be a whole number, 1 or more"):
        vote_on(["embedded"], repeat=0)


def test_a_voter_that_cannot_keep_the_budget_is_found_before_any_is_paid() -> None:
    """Its price is not known: the first one is not asked either."""
    first = CountingJudge()
    unknown = OpenAIJudge("m", api_key="k" * 20, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(UsageError, match="a budget needs a price"):
        vote_on([first, unknown], budget=1)
    assert first.asked == []


def test_agreement_is_counted_over_all_votes() -> None:
    """Who failed left a gap; the rest is compared."""
    votes = Votes()
    vote_on([CountingJudge(model="m"), CountingJudge(REFUSING, model="n")], votes=votes)
    found = {one.field: one for one in votes.agreement()}
    assert (found["supported"].units, found["supported"].left_out) == (4, 2)
    assert found["supported"].raw == 1.0
    assert found["supported"].kappa.undefined == "one_class"


def test_the_command_votes_and_tells_how_far_they_agree(
    tmp_path: Path, labeler_command: Command
) -> None:
    """The label file holds the majority; metrics read it like any other. Copies count once."""
    given, out = row_file(tmp_path, [*rows(3), *rows(1)]), tmp_path / "labels.jsonl"
    embedded = ("--judge", "embedded", "--repeat", 3, "--store", tmp_path / "s")
    code, _, err = labeler_command("label", given, *embedded, "-o", out)
    assert code == 0
    assert "4 labeled by the majority of embedded/lexical/1, 3 times each" in err
    assert "vote 3 of 3: embedded/lexical/1" in err
    assert "The voters agree pairwise on 100 % of 3 answers, supported as a whole or not." in err
    assert not any(head in err for head in ("by chance", ": yes", "group"))
    assert reasons(labeler.api.read_labels(out)) == ["label"] * 4
