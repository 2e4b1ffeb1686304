"""Long records: judged in windows, each stored by itself, and merged into one label."""

from __future__ import annotations

import json
import threading
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import labeler
from command import Command
from fakes import CountingJudge, agreeable
from labeled import claims_output, output, says
from labeler.api import iter_labels, read_records, submit_batch
from labeler.calculators.rater_agreement import Votes
from labeler.data.parsing import to_example
from labeler.errors import FatalJudgeError, UsageError
from labeler.integrations.batch.client import OpenAIBatches
from labeler.integrations.batch.collect import Waiting
from labeler.judges.embedded.judge import EmbeddedJudge
from labeler.judges.judge import UnusableAnswer
from labeler.judges.openai.judge import OpenAIJudge
from labeler.judges.openai.spec import spec_of
from labeler.judges.pricing import given_price, price_of
from labeler.judges.task import JudgeReply, Task
from labeler.labeling.estimate import Unasked
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import context_budget, label_tasks
from labeler.labeling.window_merging import merge
from labeler.labeling.windows import VERSION, ContextBudget, context_budget_in, cut
from labeler.labels.answers import ClaimsLabelingOutput, GPTLabelingOutput, ResponseClaim
from labeler.labels.record import (
    AnyRecord,
    LabelFailure,
    LabelRecord,
    Outcome,
    SentenceScores,
    Usage,
    is_uncounted,
)
from labeler.labels.signature import Windows
from labeler.sentences.example import Frozen
from labeler.store.disk import DiskStore
from labeler.store.memory import MemoryStore
from samples import keyed_example, request
from windows import cut_into
from wire.clients import comes_true
from wire.provider import Call, Provider
from wire.runs import KEY, Watch, labeling, process, row_file, running

LIMIT = 2050
"""Tokens in which there are about a dozen sentences of :func:`long_row` in a prompt."""


PINNED = ["0ai", "1t", "1ax"]
"""The last sentences of its windows."""


def long_row(n: int = 0, *, sentences: int = 100, **changes: object) -> dict[str, Any]:
    """A row that is too long for :data:`LIMIT`; every n asks something else."""
    documents = [
        " ".join(
            f"Tower {n} of {d} has {d + s} floors and a red door." for s in range(sentences // 2)
        )
        for d in range(2)
    ]
    return {
        "id": f"long-{n}",
        "question": f"How high is tower {n}?",
        "documents": documents,
        "response": f"Tower {n} of 1 has 7 floors. It is blue.",
        **changes,
    }


def uncuttable_row() -> dict[str, Any]:
    """A row with a given sentence that is too long for :data:`LIMIT`."""
    given = ["A short one.", "word " * 9000]
    return long_row(
        9,
        documents=[" ".join(given)],
        documents_sentences=[given],
        response="It is so.",
        response_sentences=["It is so."],
    )


def short_row(n: int = 0) -> dict[str, Any]:
    """A row that fits."""
    return {
        "id": f"short-{n}",
        "question": f"How high is tower {n}?",
        "documents": [f"Tower {n} is high."],
        "response": f"Tower {n} is high.",
    }


def label(
    rows: list[dict[str, Any]],
    judge: Any,
    store: Any = None,
    **options: Any,
) -> list[Outcome]:
    """A run with windows."""
    given: dict[str, Any] = {"max_input_tokens": LIMIT, "concurrency": 1, **options}
    kept = MemoryStore() if store is None else store
    return list(iter_labels(rows, judge=judge, store=kept, **given))


def only_record(outcomes: list[Outcome]) -> LabelRecord:
    """The label of a run of one row."""
    [found] = outcomes
    assert isinstance(found, LabelRecord), found
    return found


def windows_of(record: LabelRecord) -> Windows:
    """How a merged label came about."""
    assert record.signature.windows is not None
    return record.signature.windows


def claims_of(label: GPTLabelingOutput) -> tuple[ResponseClaim, ...]:
    """The claims of a label that has them."""
    assert isinstance(label, ClaimsLabelingOutput)
    return label.response_claims


def only_failure(outcomes: list[Outcome]) -> LabelFailure:
    """The failure of a run of one row."""
    [found] = outcomes
    assert isinstance(found, LabelFailure)
    return found


class Refusing:
    """Refuses the window that holds a sentence, as often as it is asked.

    Args:
        key: of the sentence.
        lasting: whether asking again would end the same.
    """

    def __init__(self, key: str, *, lasting: bool = True) -> None:
        self.key, self.lasting = key, lasting

    def __call__(self, asked: Task) -> JudgeReply[Frozen]:
        """Refuse or agree."""
        if self.key in asked.example.document_keys():
            raise UnusableAnswer(
                "it would not say",
                reason="refusal",
                attempts=1,
                usage=Usage(prompt_tokens=5),
                lasting=self.lasting,
            )
        return agreeable(asked)


# -- when, and into what


def test_a_record_that_fits_keeps_its_key() -> None:
    """ContextBudget changes nothing for it: not what is asked, not what is stored."""
    judge = CountingJudge()
    whole = only_record(label([short_row()], judge, max_input_tokens=None))
    assert only_record(label([short_row()], judge, max_input_tokens=100_000)).key == whole.key


def test_a_long_record_gets_one_label_of_its_windows() -> None:
    """Under its own id, over all of its sentences, with what all windows took."""
    judge = CountingJudge()
    found = only_record(label([long_row()], judge))
    facts = windows_of(found)
    assert facts.number == len(judge.asked) > 2
    assert facts.limit == LIMIT
    assert set(judge.asked) == {"long-0"}
    assert list(found.label.all_relevant_sentence_keys) == found.example.document_keys()
    assert found.reply.attempts == facts.number
    assert found.reply.usage == Usage(
        prompt_tokens=10 * facts.number, completion_tokens=2 * facts.number
    )
    assert found.fault() is None


def test_the_printed_signature_tells_of_windows_but_not_of_how_many() -> None:
    """Numbers of records that were judged in windows belong together, and apart from others."""
    judge = CountingJudge()
    printed = [
        str(only_record(label([long_row(sentences=size)], judge)).signature) for size in (100, 200)
    ]
    assert printed[0] == printed[1]
    assert printed[0].endswith(f"|windows:{LIMIT}/1")


def test_the_windows_of_a_record_are_stored_as_parts() -> None:
    """They name the sentences that they hold, and enter no number."""
    store = MemoryStore()
    merged = only_record(label([long_row()], CountingJudge(), store))
    parts = [each for each in store if each.key != merged.key]
    assert len(parts) == windows_of(merged).number
    for part in parts:
        assert part.signature.part == "1"
        assert str(part.signature).endswith("|part:1")
        assert is_uncounted(part)
        assert part.fault() is None
    assert not is_uncounted(merged)


def test_the_metrics_of_a_store_count_the_record_and_not_its_windows(tmp_path: Path) -> None:
    """As `labeler metrics STORE` reads it."""
    label([long_row(), short_row()], CountingJudge(), tmp_path)
    rows = labeler.metrics(labeler.read_labels(tmp_path))
    assert sorted(row.id for row in rows) == ["long-0", "short-0"]
    assert sorted(record.id for record in read_records(tmp_path)) == ["long-0", "short-0"]


def test_a_sentence_that_no_window_holds_fails_before_any_spend() -> None:
    """It is not cut; the failure names it and says what to do."""
    judge = CountingJudge()
    failure = only_failure(label([uncuttable_row()], judge, splitter="given"))
    assert failure.reason == "too_long"
    assert "document sentence '0b' alone takes about" in failure.message
    assert "--max-input-tokens" in failure.message
    assert judge.asked == []


def test_a_response_that_leaves_no_room_fails_before_any_spend() -> None:
    """Every window would hold all of it."""
    judge = CountingJudge()
    failure = only_failure(label([long_row(response="It is so. " * 3000)], judge))
    assert failure.reason == "too_long"
    assert "its response and the instructions alone take about" in failure.message
    assert judge.asked == []


def test_a_document_is_cut_between_sentences_and_keeps_its_index() -> None:
    """What a window does not hold is empty there."""
    asked = request(keyed_example(documents=[["One of many words."] * 60, [], ["Last."]]))
    found = cut(asked, ContextBudget(LIMIT, LIMIT))
    assert found is not None
    assert [len(part.example.documents) for part in found.parts] == [3] * len(found.parts)
    assert found.parts[0].example.document_keys()[0] == "0a"
    assert found.parts[-1].example.document_keys()[-1] == "2a"
    assert found.place(0).startswith(f"window 1 of {len(found.parts)} (0a to 0")


def test_the_rules_of_cutting_are_those_of_their_version() -> None:
    """Whoever changes where records are cut counts the version up, or every window is paid anew."""
    asked = label_tasks(CountingJudge(), LabelOptions()).task(to_example(long_row(), "here"))
    found = cut(asked, ContextBudget(LIMIT, LIMIT))
    assert found is not None
    ends = [part.example.document_keys()[-1] for part in found.parts]
    assert (VERSION, ends) == ("1", PINNED)


def test_the_benchmark_cuts_into_just_so_many_windows() -> None:
    """By the smallest limit that gives them."""
    asked = request(keyed_example(documents=[["One of many words."] * 60]))
    for number in (2, 3, 5):
        found = cut_into(asked, number)
        assert found is not None
        sizes = [len(part.example.document_keys()) for part in found.parts]
        assert len(sizes) == number
        assert max(sizes) <= 60 // number + 3


# -- where the limit comes from


def test_the_context_budget_a_known_model_is_that_of_its_context_window() -> None:
    """What a cap keeps free is not there for a whole prompt; a window's takes two thirds."""
    judge = OpenAIJudge("gpt-4o-mini", api_key=KEY, max_output_tokens=8000)
    assert judge.price is not None
    known = judge.price.context_window
    assert known is not None
    assert context_budget(judge, None) == ContextBudget(known - 8000, known * 2 // 3)


def test_a_price_of_the_users_own_does_not_hide_the_context_window() -> None:
    """The table of prices is asked all the same."""
    judge = OpenAIJudge("gpt-4o-mini", api_key=KEY, price=given_price("1,2"))
    assert context_budget(judge, None) == context_budget(
        OpenAIJudge("gpt-4o-mini", api_key=KEY), None
    )


def test_an_estimate_has_the_context_budget_the_run() -> None:
    """Whether it is told a price or not."""
    spec = spec_of("gpt-4o-mini", {})
    run = context_budget(OpenAIJudge("gpt-4o-mini", api_key=KEY), None)
    assert run is not None
    assert context_budget(Unasked(spec), None) == run
    assert context_budget(Unasked(spec), None, price_of("gpt-4o-mini")) == run


def test_a_judge_that_no_table_knows_has_any_room() -> None:
    """The embedded one, and models of one's own."""
    assert context_budget(EmbeddedJudge(), None) is None
    assert (
        context_budget(OpenAIJudge("m", api_key=KEY, base_url="http://127.0.0.1:1/v1"), None)
        is None
    )


def test_a_cap_that_leaves_little_makes_windows_smaller() -> None:
    """And one that leaves nothing is not reckoned with: the server will say so."""
    assert context_budget_in(9000, 7000) == ContextBudget(2000, 2000)
    assert context_budget_in(9000, 9000) == ContextBudget(9000, 6000)


def test_a_limit_below_one_token_is_refused() -> None:
    """Nothing was asked."""
    with pytest.raises(UsageError, match="max_input_tokens must be 1 or more, got 0"):
        label_tasks(CountingJudge(), LabelOptions(max_input_tokens=0))


# -- nothing is bought twice


def test_a_second_run_asks_nothing() -> None:
    """The merged label is stored too."""
    store, judge = MemoryStore(), CountingJudge()
    first = only_record(label([long_row()], judge, store))
    asked, watch = len(judge.asked), Watch()
    assert only_record(label([long_row(id="other")], judge, store, listener=watch)).id == "other"
    assert len(judge.asked) == asked
    assert watch.origins == ["store"]
    assert store.get(first.key) == first


def test_rows_alike_are_judged_once() -> None:
    """Each under its own id, in one run."""
    judge = CountingJudge()
    found = label([long_row(), long_row(id="twin")], judge, concurrency=4)
    assert [each.id for each in found] == ["long-0", "twin"]
    assert len(judge.asked) == windows_of(only_record(found[:1])).number


def test_a_whole_label_that_is_stored_is_not_asked_again_in_windows() -> None:
    """Whatever room there is now."""
    store, judge = MemoryStore(), CountingJudge()
    whole = only_record(label([long_row()], judge, store, max_input_tokens=None))
    assert only_record(label([long_row()], judge, store)) == whole
    assert len(judge.asked) == 1


def test_a_run_that_was_cut_off_buys_only_the_windows_that_are_left() -> None:
    """Each is stored as it comes."""
    store = MemoryStore()

    def breaks(asked: Task) -> JudgeReply[Frozen]:
        if len(judge.asked) > 2:
            raise FatalJudgeError("no such model", reason="not_found")
        return agreeable(asked)

    judge = CountingJudge(breaks)
    with pytest.raises(FatalJudgeError):
        label([long_row()], judge, store)
    assert len(store) == 2
    again = CountingJudge()
    number = windows_of(only_record(label([long_row()], again, store))).number
    assert len(again.asked) == number - 2


def test_a_run_that_is_killed_between_windows_loses_none_that_was_stored(
    tmp_path: Path, labeler_command: Command
) -> None:
    """The next one buys the one that was on its way, and those after it."""
    rows, more = row_file(tmp_path, [long_row()]), ("--max-input-tokens", LIMIT)
    with Provider(["ok", "ok", "hang"]) as provider:
        asking = process(labeling(provider, rows, *more, "--concurrency", "1"))
        with running(asking, tmp_path) as first:
            assert comes_true(lambda: len(completions(provider)) == 3, 60)
            # One is asked at a time, and only when the one before it is stored.
            first.process.kill()
            first.end()
    with Provider() as provider:
        code = labeler_command(*labeling(provider, rows, *more))[0]
        assert (code, len(completions(provider))) == (0, len(PINNED) - 2)


def test_a_run_that_ended_before_its_label_was_merged_asks_nothing() -> None:
    """The windows are stored, and the label is made of them."""
    store = MemoryStore()
    merged = only_record(label([long_row()], CountingJudge(), store))
    parts, judge = MemoryStore(), CountingJudge()
    for record in store:
        if record.key != merged.key:
            parts.put(record).result()
    assert only_record(label([long_row()], judge, parts)) == merged
    assert judge.asked == []


class SlowMerges(MemoryStore):
    """Takes a while to save merged labels."""

    def put(self, value: AnyRecord) -> Future[bool]:
        """Save at once, and say so later where it is a merged label."""
        saved = super().put(value)
        if value.signature.windows is None:
            return saved
        later: Future[bool] = Future()
        threading.Timer(0.3, lambda: later.set_result(saved.result())).start()
        return later


def test_a_fatal_error_waits_for_a_label_that_is_being_merged() -> None:
    """Its windows are paid for, and so is the row behind it: both are passed on."""

    def expiring(asked: Task) -> JudgeReply[Frozen]:
        if asked.example.id == "short-2":
            raise FatalJudgeError("the key is not valid", reason="auth")
        return agreeable(asked)

    rows = [long_row(), short_row(1), short_row(2)]
    seen: list[Outcome] = []
    options: dict[str, Any] = {"max_input_tokens": LIMIT, "concurrency": 1}
    with pytest.raises(FatalJudgeError, match="not valid"):
        seen.extend(iter_labels(rows, judge=CountingJudge(expiring), store=SlowMerges(), **options))
    assert [outcome.id for outcome in seen] == ["long-0", "short-1"]


# -- failures


def test_a_failed_window_fails_the_row_and_keeps_the_others() -> None:
    """The failure names it; what was stored is not asked again."""
    store, judge = MemoryStore(), CountingJudge(Refusing("1a"))
    failure = only_failure(label([long_row()], judge, store))
    asked = len(judge.asked)
    assert failure.reason == "refusal"
    assert failure.lasting
    assert failure.message.startswith("'long-0': window ")
    assert f" of {asked} (" in failure.message
    assert failure.message.endswith("it would not say")
    assert (failure.attempts, failure.usage) == (1, Usage(prompt_tokens=5))
    assert len(store) == asked - 1
    again = only_failure(label([long_row()], judge, store))
    assert "asked again only on request" in again.message
    assert len(judge.asked) == asked


def test_only_the_failed_window_is_asked_again() -> None:
    """On request, where it failed for good."""
    store = MemoryStore()
    label([long_row()], CountingJudge(Refusing("1a")), store)
    judge = CountingJudge()
    only_record(label([long_row()], judge, store, retry_failed=True))
    assert len(judge.asked) == 1


def test_a_window_that_failed_in_passing_is_asked_again_by_the_next_run() -> None:
    """As any row is."""
    store = MemoryStore()
    assert not only_failure(
        label([long_row()], CountingJudge(Refusing("0a", lasting=False)), store)
    ).lasting
    judge = CountingJudge()
    only_record(label([long_row()], judge, store))
    assert len(judge.asked) == 1


def test_an_answer_that_breaks_the_contract_is_a_failure_of_its_window() -> None:
    """A key of another window was not shown there."""

    def strays(_: Task) -> JudgeReply[Frozen]:
        keys = {"a": ["0a"], "b": ["0a"]}
        return JudgeReply(output(relevant=["0a"], utilized=["0a"], support=keys))

    failure = only_failure(label([long_row()], CountingJudge(strays)))
    assert failure.reason == "contract"
    assert failure.message.startswith("'long-0': window 2 of ")
    assert "more of its windows have no label" in failure.message
    assert failure.violations


def test_a_stored_window_that_was_edited_makes_no_crash() -> None:
    """An entry that is missing supports nothing."""
    store = MemoryStore()
    merged = only_record(label([long_row()], CountingJudge(), store))
    parts = [each for each in store if isinstance(each, LabelRecord) and each.key != merged.key]
    lost = {"sentence_support_information": ()}
    edited = MemoryStore()
    for part in parts:
        changed = part.label.model_copy(update=lost)
        edited.put(part.model_copy(update={"label": changed})).result()
    found = only_record(label([long_row()], CountingJudge(), edited))
    assert not found.label.overall_supported


# -- how labels are merged


def entries(label: GPTLabelingOutput) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """Whether each response sentence is supported, and by what."""
    return {
        entry.response_sentence_key: (entry.fully_supported, entry.supporting_sentence_keys)
        for entry in label.sentence_support_information
    }


def test_explanations_are_those_of_the_windows_that_support() -> None:
    """Each under the number of its window; of what none supports, all are kept."""
    parts = [output(support={"a": ["0a"], "b": []}), output(support={"a": [], "b": []})]
    support = merge(parts, keyed_example()).sentence_support_information
    assert support[0].explanation == "[window 1 of 2] because"
    assert support[1].explanation == "[window 1 of 2] because\n[window 2 of 2] because"


def test_that_documents_do_not_say_something_needs_every_window() -> None:
    """One that says it refutes those that do not."""
    absent = "supported_without_sentence"
    silent = output(relevant=[], utilized=[], support={"a": [absent], "b": [absent]})
    speaks = output(relevant=[], utilized=[], support={"a": [], "b": [absent]})
    found = entries(merge([silent, speaks], keyed_example()))
    assert found == {"a": (False, ()), "b": (True, (absent,))}


def test_claims_of_one_sentence_may_be_supported_in_different_windows() -> None:
    """Where both windows word them alike; the sentence is supported then."""
    example = keyed_example(response=["Both."])
    left = claims_output([says("a", ["0a"], claim="One."), says("a", claim="Two.")])
    right = claims_output([says("a", claim="one"), says("a", ["1a"], claim="two")])
    found = merge([left, right], example)
    assert entries(found) == {"a": (True, ("0a", "1a"))}
    assert [claim.verdict for claim in claims_of(found)] == ["entailment"] * 2


def test_a_claim_that_no_window_entails_is_contradicted_where_one_contradicts_it() -> None:
    """And neutral where none does."""
    example = keyed_example(response=["Both."])
    left = claims_output([says("a", claim="One."), says("a", claim="Two.")])
    right = claims_output([says("a", against=["1a"], claim="One."), says("a", claim="Two.")])
    found = merge([left, right], example)
    assert [claim.verdict for claim in claims_of(found)] == ["contradiction", "neutral"]


def test_claims_that_are_worded_otherwise_come_from_one_window() -> None:
    """From the one that supports the sentence, or else has most of them decided."""
    example = keyed_example(response=["First.", "Second."])
    left = claims_output([says("a", claim="so"), says("b", claim="left")])
    right = claims_output(
        [says("a", ["1a"], claim="yes"), says("b", against=["1a"], claim="right")]
    )
    found = merge([left, right], example)
    assert [claim.claim for claim in claims_of(found)] == ["yes", "right"]


def test_the_score_of_a_sentence_is_the_best_of_its_windows() -> None:
    """So that thresholds mean in the merged label what they mean in its parts."""
    store = MemoryStore()
    merged = only_record(label([long_row()], EmbeddedJudge(), store))
    parts = [each for each in store if isinstance(each, LabelRecord) and each.key != merged.key]
    scores = [each.scores or SentenceScores() for each in parts]
    assert merged.scores is not None
    for key, score in merged.scores.support.items():
        assert score == max(each.support[key] for each in scores)
    assert list(merged.scores.relevance) == merged.example.document_keys()


# -- with everything else


def test_votes_may_be_windowed() -> None:
    """Each voter judges the same windows, and the majority is of the merged labels."""
    judge, votes = CountingJudge(), Votes()
    run = iter_labels(
        [long_row(), short_row()],
        judges=[judge],
        repeat=3,
        votes=votes,
        store=MemoryStore(),
        max_input_tokens=LIMIT,
        concurrency=1,
    )
    found = list(run)
    assert [each.kind for each in found] == ["label", "label"]
    assert judge.asked.count("long-0") % 3 == 0
    assert judge.asked.count("long-0") > 3
    assert votes.fields["overall_supported"].total() == 2


def test_batches_hold_windows_and_labeling_merges_them(tmp_path: Path) -> None:
    """What is on its way is told, and what came costs nothing."""
    with Provider() as provider:
        judge = OpenAIJudge("m", api_key=KEY, base_url=provider.url)
        service = OpenAIBatches(api_key=KEY, base_url=provider.url)
        done = submit_batch(
            [long_row(), short_row()],
            judge=judge,
            batches=service,
            store=tmp_path,
            max_input_tokens=LIMIT,
        )
        assert done.lines > 3
        waiting = label([long_row()], judge, tmp_path)
        assert only_failure(waiting).reason == "in_batch"
        labeler.collect_batches(
            OpenAIBatches(api_key=KEY, base_url=provider.url),
            tmp_path,
            waiting=Waiting(first=0.01, longest=0.01),
        )
        merged = only_record(
            label([long_row()], OpenAIJudge("m", api_key=KEY, base_url=provider.url), tmp_path)
        )
        assert windows_of(merged).number == done.lines - 1
        again = submit_batch(
            [long_row()],
            judge=OpenAIJudge("m", api_key=KEY, base_url=provider.url),
            batches=OpenAIBatches(api_key=KEY, base_url=provider.url),
            store=tmp_path,
            max_input_tokens=LIMIT,
        )
        assert (again.batch, again.left_out) == (None, {"stored": 1})


def completions(provider: Provider) -> list[Call]:
    """The requests for labels that came."""
    return [call for call in provider.calls if call.method == "POST"]


def test_an_estimate_counts_what_a_run_then_sends(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests by their number, and what an estimate says once they are stored."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    rows = row_file(tmp_path, [long_row(), long_row(1), long_row(id="alike"), short_row()])
    with Provider() as provider:
        options = (
            rows,
            "--model",
            "m",
            "--base-url",
            provider.url,
            "--max-input-tokens",
            LIMIT,
        )
        code, out, _ = labeler_command("estimate", *options, "--json")
        counts = json.loads(out)["rows"]
        assert code == 0
        assert counts["windowed"] == 2
        assert counts["windowed_ids"] == ["long-0", "long-1"]
        assert counts["windows"] == counts["asked"] - 1
        assert counts["shared"] == 1
        assert labeler_command("label", *options, "-o", "labels.jsonl")[0] == 0
        assert len(completions(provider)) == counts["asked"]
        after = json.loads(labeler_command("estimate", *options, "--json")[1])["rows"]
    assert (after["asked"], after["stored"], after["shared"]) == (0, 3, 1)


def test_an_estimate_names_the_rows_that_go_in_windows(
    labeler_command: Command, tmp_path: Path
) -> None:
    """And tells a row that windows do not help."""
    rows = row_file(tmp_path, [long_row(), long_row(1, response="It is so. " * 3000)])
    _, out, _ = labeler_command("estimate", rows, "--model", "m", "--max-input-tokens", LIMIT)
    assert "in windows" in out
    assert f"of at most {LIMIT:,} tokens, of too long rows: 'long-0'" in out
    assert "too_long 1" in out


def test_a_run_of_the_command_merges_windows(labeler_command: Command, tmp_path: Path) -> None:
    """And says how many rows have a label, not how many windows."""
    rows = row_file(tmp_path, [long_row(), short_row()])
    code, out, err = labeler_command(
        "label", rows, "--judge", "embedded", "--max-input-tokens", LIMIT
    )
    assert code == 0
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["label"] * 2
    assert err.startswith("2 labeled by embedded/lexical/1")


# -- scale


def huge_row(sentences: int) -> dict[str, Any]:
    """Half a kilobyte in each sentence of one document."""
    filler = "and so on and on, as was said of it before " * 12 + "and so on"
    return {
        "id": "huge",
        "question": "How high is tower 1,999?",
        "documents": [" ".join(f"Tower {s} has {s} floors {filler}." for s in range(sentences))],
        "response": "Tower 99 has 99 floors.",
    }


@pytest.mark.parametrize(
    ("sentences", "last", "limit"), [(2000, "0bxx", None), (200, "0gr", 10_000)]
)
def test_a_huge_document_passes_through_everything(
    labeler_command: Command, tmp_path: Path, sentences: int, last: str, limit: int | None
) -> None:
    """Label, show, metrics, audit, report, compare, export and import, whole and in windows.

    Whole, it is a megabyte, and keys go beyond ``zz``.
    """
    rows = row_file(tmp_path, [huge_row(sentences)])
    assert rows.stat().st_size > 500 * sentences
    window = () if limit is None else ("--max-input-tokens", limit)
    labeled = labeler_command("label", rows, "--judge", "embedded", *window, "-o", "one.jsonl")
    assert labeled[0] == 0
    found = only_record(list(labeler.read_labels("one.jsonl")))
    assert len(found.example.document_keys()) == sentences
    assert found.example.document_keys()[-1] == last
    assert (found.signature.windows is not None) is (limit is not None)
    assert labeler_command("show", "one.jsonl", "huge")[0] == 0
    code, out, _ = labeler_command("metrics", ".labeler", "--json")
    assert code == 0
    assert {(row["metric"], row["defined"]) for row in json.loads(out)} >= {("relevance", 1)}
    assert labeler_command("audit", "one.jsonl")[0] == 0
    assert labeler_command("report", "one.jsonl", "-o", "one.html")[0] == 0
    assert labeler_command("compare", "one.jsonl", ".labeler")[0] == 0
    assert labeler_command("export", "-o", "all.jsonl")[0] == 0
    assert labeler_command("import", "labels", "all.jsonl", "--store", "other")[0] == 0
    with closing(DiskStore("other", create=False)) as store:
        assert store.get(found.key) == found
