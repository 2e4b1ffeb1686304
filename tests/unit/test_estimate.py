"""What a run would ask, cost and take, reckoned before anything is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from labeler.api import open_rows
from labeler.data.parsing import to_example
from labeler.errors import StoreError, UsageError
from labeler.judges.embedded import EmbeddedJudge
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.request import spec_of
from labeler.judges.pricing import Price, given_price
from labeler.judges.task import Task
from labeler.judges.tokens import ANSWER_BASE, ANSWER_PER_SENTENCE, TokenCounter, answer_tokens
from labeler.labeling.estimate import ENOUGH_LABELS, Unasked, estimate
from labeler.labeling.estimates import Estimate
from labeler.labeling.options import EstimateOptions, LabelOptions
from labeler.labeling.tasks import LabelTasks, label_tasks
from labeler.labels.record import LabelFailure, LabelRecord, ReplyFacts, Usage
from labeler.plugins.ragbench import read_ragbench
from labeler.store import LabelStore, MemoryStore
from support.audit import AUDIT
from support.command import Command
from support.real_data import needs_ragbench, ragbench_files
from support.samples import request as any_request
from wire.runs import row_file

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"


def asking(
    model: str = "fake-1", profile: str = "trace", judge: str = "fake", **settings: Any
) -> LabelTasks:
    """How a model is asked; a hosted one by its settings."""
    spec = JudgeSpec(judge=judge, model=model)
    hosted = spec if judge == "fake" else spec_of(model, settings, judge)
    return label_tasks(Unasked(hosted), LabelOptions(profile=profile))


HOW, OTHER, AUTO = asking(), asking("fake-2"), asking(profile="auto")


class Flat(TokenCounter):
    """Every text has 1,000 tokens: 2,007 are the same in each prompt, and 1,004 its own."""

    def count(self, text: str) -> int:
        """Always the same."""
        del text
        return 1000

    def count_json(self, text: str) -> int:
        """The same too."""
        return self.count(text)

    def at_most(self, text: str) -> int:
        """Twice as many."""
        return 2 * self.count(text)


PROMPT, SAME = 3011, 2007


def row(n: int, *, sentences: int = 1, **changes: object) -> dict[str, Any]:
    """A row of one document sentence; every n asks something else."""
    return {
        "id": f"row-{n}",
        "question": f"How high is tower {n}?",
        "documents": [f"Tower {n} is high."],
        "response": " ".join(f"It has {s + 2} floors." for s in range(sentences)),
        **changes,
    }


def reckon(
    rows: Sequence[dict[str, Any]],
    store: LabelStore | None = None,
    *,
    how: LabelTasks = HOW,
    price: str | Price | None = "1,10",
    **options: Any,
) -> Estimate:
    """An estimate with a counter that anyone can follow."""
    return estimate(
        open_rows(rows),
        how,
        MemoryStore() if store is None else store,
        EstimateOptions(**{"concurrency": 4, **options}),
        price=given_price(price) if isinstance(price, str) else price,
        counter=Flat(),
    )


def asked(fields: dict[str, Any], how: LabelTasks = HOW) -> Task:
    """What a run would ask about a row."""
    return how.task(to_example(fields, "here"))


def label(request: Task, *, tokens: int = 100, seconds: float = 1.0) -> LabelRecord:
    """A label of a request, of the profile that it asks for."""
    answer = asyncio.run(EmbeddedJudge().label(request)).answer
    return LabelRecord(
        key=request.key,
        example=request.example,
        label=answer,
        signature=request.signature,
        reply=ReplyFacts(usage=Usage(prompt_tokens=1, completion_tokens=tokens), seconds=seconds),
    )


def test_every_row_is_accounted_for() -> None:
    """Read, unusable, alike, stored, failed (asked again on request) and to be asked."""
    store, refused = MemoryStore(), asked(row(2))
    store.put(label(asked(row(1)))).result()
    store.put(
        LabelFailure(id="row-2", reason="refusal", message="no", key=refused.key, lasting=True)
    ).result()
    rows = [
        *(row(1), row(2), row(3)),
        *(row(3), row(3, id="other")),  # alike
        row(3, response="Another."),  # its id is taken
        *(row(4, response=" "), row(5, documents=7)),
    ]
    counts = reckon(rows, store).rows
    assert (counts.read, counts.shared) == (8, 2)
    assert counts.unusable == {"empty_response": 1, "wrong_type": 1, "id_conflict": 1}
    assert (counts.stored, counts.failed, counts.asked) == (1, 1, 1)
    counts = reckon(rows, store, retry_failed=True).rows
    assert (counts.stored, counts.failed, counts.asked) == (1, 0, 2)


PAID = Decimal("0.013022")
"""6,022 prompt tokens at 1 dollar a million, 700 of answers at 10."""


@pytest.mark.parametrize(
    ("how", "price", "batch"),
    [
        (HOW, "1,10", None),
        (asking("gpt-5.6", judge="openai"), "1,10,0.1,1.25", PAID / 2),
        (asking("m", judge="anthropic"), "1,10", None),
    ],
)
def test_the_expected_cost_is_tokens_times_price(
    how: LabelTasks, price: str, batch: Decimal | None
) -> None:
    """As if the provider cached nothing; half in a batch, which is OpenAI's."""
    found = reckon([row(1), row(2)], how=how, price=price)
    assert found.online is not None
    assert found.online.expected == PAID
    assert (found.prompt.total, found.prompt.same) == (2 * PROMPT, SAME)
    assert (found.batch and found.batch.expected) == batch


def test_without_a_cap_the_worst_case_is_that_of_a_budget() -> None:
    """Of a prompt 6,011 bytes at most; an answer has 4,096 tokens and 4 times the expected ones."""
    found, given = reckon([row(1)]), reckon([row(1)], max_output_tokens=500)
    free = reckon([row(1)], price=None, max_output_tokens=500)
    assert found.online is not None
    assert given.online is not None
    assert given.online.at_most == Decimal("0.011011")
    longer = 4096 + 4 * answer_tokens(1) - 500
    assert found.online.at_most - given.online.at_most == longer * Decimal("0.00001")
    assert (given.answers.cap, found.answers.cap) == (500, None)
    assert (free.price, free.online, free.batch) == (None, None, None)


def stored(count: int, how: LabelTasks = HOW, **facts: Any) -> MemoryStore:
    """A store of labels of other rows."""
    store = MemoryStore()
    for n in range(count):
        store.put(label(asked(row(1000 + n), how), **facts)).result()
    return store


USUAL = ANSWER_BASE + ANSWER_PER_SENTENCE


@pytest.mark.parametrize(
    ("store", "labels", "times"),
    [
        (stored(ENOUGH_LABELS, tokens=3 * USUAL), ENOUGH_LABELS, 3),
        (stored(ENOUGH_LABELS - 1, tokens=3000), 0, 1),
        (stored(ENOUGH_LABELS, OTHER, tokens=3000), 0, 1),
        # A store is a file: its numbers may be anything.
        (stored(ENOUGH_LABELS, tokens=10**400, seconds=float("inf")), 0, 1),
    ],
)
def test_enough_stored_labels_say_how_long_answers_are(
    store: MemoryStore, labels: int, times: int
) -> None:
    """Three times what the fitted lengths expect, so these too; another model says nothing."""
    found = reckon([row(1, sentences=3)], store)
    assert found.answers.labels == labels
    assert found.answers.expected == times * (ANSWER_BASE + 3 * ANSWER_PER_SENTENCE)


@pytest.mark.parametrize(
    ("rows", "store", "options", "latency", "seconds"),
    [
        # Ten answers of six seconds, four at once.
        (10, stored(1, seconds=6.0), {}, 6.0, 15.0),
        # One request takes as long as one answer; a stated latency counts before stored ones.
        (1, stored(1, seconds=6.0), {"latency": 2.0}, 2.0, 2.0),
        (1, stored(1, OTHER, seconds=6.0), {}, None, None),
        (1, stored(1, seconds=float("inf")), {}, None, None),
        (1, None, {}, None, None),
    ],
)
def test_time_is_shared_by_the_requests_at_once(
    rows: int,
    store: MemoryStore | None,
    options: dict[str, Any],
    latency: float | None,
    seconds: float | None,
) -> None:
    """Without any time nobody knows how long a run takes: undefined, not 0."""
    found = reckon([row(n) for n in range(rows)], store, **options)
    assert (found.latency, found.seconds) == (latency, seconds)


def test_a_damaged_label_of_another_row_does_not_stop_the_estimate() -> None:
    """It would not stop the run either."""

    class Damaged(MemoryStore):
        def __iter__(self) -> Iterator[LabelRecord]:
            raise StoreError("damaged")

    assert reckon([row(1)], Damaged()).rows.asked == 1


def test_nothing_to_ask_costs_nothing() -> None:
    """And takes no time; nobody is asked meanwhile, which would be a mistake in the code."""
    found = reckon([], max_output_tokens=5, latency=3.0)
    assert found.online is not None
    assert found.online.expected == found.online.at_most == Decimal(0)
    assert found.seconds == 0
    with pytest.raises(UsageError, match="only stands for one"):
        asyncio.run(HOW.judge.label(any_request()))


def test_each_row_is_reckoned_with_the_profile_that_it_is_asked_for() -> None:
    """Its prompt, its schema, its answer; a row that lacks a reference would be a failure."""
    rows = [row(1), row(2), row(3, reference="It is high."), row(4, reference="So.")]
    found = reckon(rows, how=AUTO)
    assert found.profiles == {"claims": 2, "reference": 2}
    assert (found.prompt.total, found.prompt.same) == (4 * PROMPT, SAME)
    both = answer_tokens(1, "claims") + answer_tokens(1, "reference", 1)
    assert found.answers.expected == 2 * both
    found = reckon(rows, how=asking(profile="reference"))
    assert (found.rows.unusable, found.profiles) == ({"no_reference": 2}, {"reference": 2})


def test_stored_lengths_count_for_each_profile_that_would_be_asked() -> None:
    """Labels of both teach how much longer this model writes than expected."""
    store = MemoryStore()
    for n in range(ENOUGH_LABELS):
        request = asked(row(n, reference="It is high." if n % 2 else None), AUTO)
        expected = answer_tokens(1, request.kind.name, n % 2)
        store.put(label(request, tokens=3 * expected)).result()
    found = reckon([row(100), row(101, reference="So.")], store, how=AUTO)
    both = answer_tokens(1, "claims") + answer_tokens(1, "reference", 1)
    assert (found.answers.expected, found.answers.labels) == (3 * both, ENOUGH_LABELS)


@needs_ragbench
def test_the_fitted_lengths_are_those_of_published_labels() -> None:
    """In sum; the approximation that counts here guesses JSON of short texts a tenth too high."""
    file = next(file for file in ragbench_files() if "delucionqa" in file.name)
    labels = [o for o in read_ragbench(file) if isinstance(o, LabelRecord)]
    answers = [json.dumps(record.label.model_dump(), ensure_ascii=False) for record in labels]
    written = sum(map(TokenCounter().count, answers))
    expected = sum(answer_tokens(len(record.example.response)) for record in labels)
    assert 0.85 * written < expected < written


def test_the_table_tells_what_is_asked_and_what_it_costs(
    labeler_command: Command, tmp_path: Path
) -> None:
    """Numbers for people, and what they rest on; without a key, a network or a store."""
    options = "--model gpt-4o --max-output-tokens 4096 --latency 8"
    with AUDIT.contacts() as contacts:
        code, out, err = labeler_command("estimate", EXAMPLES, *options.split())
    assert (code, err, contacts, list(tmp_path.iterdir())) == (0, "", [], [])
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert {"requests 14 to gpt-4o", "US dollars online in a batch"} <= {*lines}
    assert any(line.startswith("at most ") for line in lines)
    assert "price: genai-prices" in out
    assert "time: 8 s with 16 requests at once of 8 s each, if no rate limit slows them" in lines


def test_scripts_read_the_estimate_as_json(labeler_command: Command) -> None:
    """Dollars are texts: no float comes between."""
    _, out, _ = labeler_command("estimate", EXAMPLES, "--model", "m", "--price", "1,10", "--json")
    found = json.loads(out)
    assert (found["rows"]["asked"], found["price"]) == (14, "--price 1,10")
    expected = found["prompt"]["total"] + 10 * found["answers"]["expected"]
    assert Decimal(found["online"]["expected"]) == Decimal(expected) / 10**6


def test_an_unknown_price_is_asked_for(labeler_command: Command) -> None:
    """With the form that it must have; a cap below the expected answer is reported, too."""
    options = ["--model", "no-such-model", "--max-output-tokens", "100"]
    told = " ".join(labeler_command("estimate", EXAMPLES, *options)[1].split())
    assert "answers may be cut off: 411 tokens are expected, 100 allowed" in told
    assert "no table has a price for no-such-model; give --price IN,OUT" in told
    assert "US dollars online" not in told


def test_the_table_escapes_what_strangers_wrote(labeler_command: Command, tmp_path: Path) -> None:
    """An id that would colour the terminal, of a prompt that is too long for the model."""
    rows = row_file(tmp_path, [row(1, id="\x1b[31m", documents=["0 " * 70_000])])
    _, out, _ = labeler_command("estimate", rows, "--model", "gpt-3.5-turbo")
    assert "context_length 1" in out
    assert "\x1b" not in out
