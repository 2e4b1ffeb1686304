"""A label's key: all that can change the label, and nothing else."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from labeler.errors import UsageError
from labeler.judges.judge import JudgeSpec
from labeler.judges.openai.attempts import REASK_VERSION
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.options import InKey, NotInKey
from labeler.judges.prompting import Prompt, load_prompt, parse_prompt
from labeler.labeling.estimate import Unasked
from labeler.labeling.options import LabelOptions
from labeler.labeling.tasks import label_tasks
from labeler.labels.signature import (
    Artifact,
    Signature,
    canonical_json,
    label_key,
    load_schema,
    retrieval_key,
    shown,
)
from labeler.plugins.scores.criteria import Criterion
from labeler.plugins.scores.records import score_key, steps_key
from labeler.plugins.similarity.records import questions_key
from labeler.sentences.example import KeyedExample, KeyedTurn, key_sentences
from support.samples import keyed_example, pieces, signature


class Forgetful(JudgeSpec):
    """A judge whose author forgot to mark a field."""

    creativity: float = 1.0


class Marked(JudgeSpec):
    """A judge with a setting of either kind."""

    temperature: Annotated[float | None, InKey] = None
    patience: Annotated[float, NotInKey] = 1.0


def test_fields_of_a_judge_enter_the_key_if_they_are_sent() -> None:
    """A field without a mark fails, an unset one is not sent, and a time-out is in no key."""
    with pytest.raises(TypeError, match=r"Forgetful\.creativity must be marked"):
        Forgetful(judge="x", model="y").sampling()
    assert Forgetful.model_config["frozen"]
    assert Marked(judge="x", model="y", patience=9).sampling() == {}
    assert Marked(judge="x", model="y", temperature=0.0).sampling() == {"temperature": 0.0}
    fields = OpenAISpec.model_fields.items()
    assert {name for name, field in fields if InKey in field.metadata} == {
        *("judge", "model", "temperature", "top_p", "seed", "reasoning_effort", "extra_body"),
        *("output_mode", "schema_frame", "reask"),
    }
    found = OpenAISpec(model="m", timeout=1, seed=7, temperature=0.0).sampling()
    assert found == {"seed": 7, "temperature": 0.0, "reask": REASK_VERSION}
    spaced: dict[str, Any] = {"reasoning_effort": " low", "extra_body": {}}
    assert OpenAISpec(model="m ", **spaced) == OpenAISpec(model="m", reasoning_effort="low")


def key(example: KeyedExample | None = None, **changes: Any) -> str:
    """The key of a judgment with some facts changed."""
    facts = signature().model_dump() | changes
    return label_key(example or keyed_example(), Signature(**facts))


CHANGED: dict[str, Any] = {
    "judge": "other",
    "model": "test-2",
    "sampling": {"temperature": 0.0},
    "prompt": {"name": "trace/v1", "digest": "0" * 64},
    "response_schema": {"name": "label-trace/v1", "digest": "0" * 64},
    "splitter": "general/1",
    "source": "lamps_test/17/gen-1",
    "instructions": "Prices are in euro.",
    "trial": 1,
    "thresholds": {"support": 0.9},
}


@pytest.mark.parametrize("fact", Signature.model_fields)
def test_each_fact_changes_the_key(fact: str) -> None:
    """Putting it back gives the key back; equal values that JSON writes otherwise are others."""
    assert key(**{fact: CHANGED[fact]}) != key()
    assert key() == key()
    keys = [key(sampling={"temperature": number}) for number in (0, 0.0, False, None) * 2]
    assert len(set(keys)) == 4
    assert keys[:4] == keys[4:]


def test_texts_and_their_places_change_the_key_and_names_do_not() -> None:
    """One character is enough; an id and other columns are nothing to a judge."""
    question, document = "What is the capital of France", "Paris is the capital of France!"
    changes: list[dict[str, Any]] = [
        *({"question": f"{question}{end}"} for end in ("?", "!", "? ")),
        {"documents": [[document, "It lies on the Seine."], ["x"]]},
        {"response": ["Paris is the capital."]},
        *({"documents": one} for one in ([["A.", "B."]], [["A."], ["B."]])),
    ]
    assert len({key(keyed_example(**one)) for one in changes}) == 7
    assert key(keyed_example(id="other", metadata={"run": 7})) == key()


def test_the_digest_of_a_prompt_is_of_all_that_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """One character of the system part or the frame; another rendering is another prompt."""
    name, system, user = (prompt := load_prompt()).name, prompt.system, prompt.user
    others = [Prompt(name, f"{system}.", user), Prompt(name, system, f"{user}.")]
    digests = {one.artifact.digest for one in (prompt, *others)}
    monkeypatch.setattr("labeler.judges.prompting.RENDERING", -1)
    digests.add(Prompt(name, system, user).artifact.digest)
    assert len(digests | {load_schema().artifact.digest}) == 5


def test_a_fact_that_is_added_later_changes_no_key() -> None:
    """A record of today stands under the same key in every version."""

    class Later(Signature):
        """A later version's signature, with new facts at their defaults."""

        audience: str | None = None
        decisions: tuple[str, ...] = ()

    later = Later(**signature().model_dump())
    assert label_key(keyed_example(), later) == key()


@pytest.mark.parametrize(
    "parts", [{"reference": None}, {"reference": ()}, {"history": (), "tool_outputs": ()}]
)
def test_an_absent_part_is_not_in_the_key(parts: dict[str, Any]) -> None:
    """Neither by name nor as an empty list, so that a part added later changes no key."""
    example = keyed_example().model_copy(update=parts)
    assert shown(example, reference=True) == shown(keyed_example())
    assert list(shown(example, reference=True)) == ["question", "documents", "response"]
    schema: dict[str, Any] = {"response_schema": {"name": "label-reference/v1", "digest": "0" * 64}}
    assert key(example, **schema) == key(**schema)


def test_keys_stay() -> None:
    """Where this fails, stored answers would be bought again. Their JSON has one form."""
    how = Artifact(name="x/v1", digest="0" * 64)
    facts: dict[str, Any] = {
        "prompt": how,
        "response_schema": how,
        "sampling": {"temperature": 0.0},
    }
    by = Signature(judge="openai", model="m", splitter="general/1", **facts)
    example = keyed_example().model_copy(
        update={"history": (KeyedTurn("user", key_sentences("h0", pieces(["Hello."]))),)}
    )
    criterion = Criterion(name="tone", criteria="Is it kind?", shows=("question", "response"))
    keys = [label_key(example, by), retrieval_key(example, by), score_key(example, criterion, by)]
    keys += [steps_key(criterion, by), questions_key(example, by)]
    assert [one[:16] for one in keys] == [
        *("412dd36f7c6617a4", "4d6be73a24713232", "d957cbcc5c3854a1"),
        *("4bc1e5d1b8866659", "6e74514fd21fd3a0"),
    ]
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))
    # A model's name cannot forge another fact in print.
    printed = str(signature(JudgeSpec(judge="x", model="ft:a|prompt:forged")))
    assert printed.count("|prompt:") == 1


def test_a_prompt_needs_its_parts_and_variables() -> None:
    """Errors name what is missing and what is unknown."""
    with pytest.raises(Exception, match="needs a line '# System'"):
        parse_prompt("mine", "Judge this.")
    blocks = [f"{name}_block" for name in ("question", "documents", "history", "tool_outputs")]
    used = "".join(f"{{{{{name}}}}}" for name in ("fence", *blocks, "answer"))
    with pytest.raises(Exception, match=r"missing \['response_block'\], unknown \['answer'\]"):
        parse_prompt("mine", f"# System\nx\n# User\n{used}")


def test_a_recipe_does_not_remember_a_judge_that_changed() -> None:
    """Requests of one recipe share their signature, as long as it is the same judge's."""
    judge = Unasked(JudgeSpec(judge="fake", model="one"))
    how = label_tasks(judge, LabelOptions())
    first, second = how.keyed_task(keyed_example()), how.keyed_task(keyed_example())
    assert first.signature is second.signature
    object.__setattr__(judge, "spec", JudgeSpec(judge="fake", model="two"))
    assert how.keyed_task(keyed_example()).signature.model == "two"


def test_settings_that_no_label_could_hold_are_rejected() -> None:
    """A judge of the user's own may have any: its labels could not be read again."""

    class Spec(JudgeSpec):
        options: Annotated[Any, InKey] = None

    def signed(depth: int) -> object:
        options: object = 0
        for _ in range(depth):
            options = [options]
        spec, prompt = Spec(judge="own", model="1", options=options), load_prompt("trace/v1")
        return spec.signature(prompt, load_schema(), "general/v3")

    assert signed(100)
    for depth in (198, 250, 3000):
        with pytest.raises(UsageError, match="judge own: a setting holds"):
            signed(depth)
