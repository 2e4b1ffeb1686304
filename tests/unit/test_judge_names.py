"""Judges by name, of other providers, and judges that are functions."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

import labeler
from labeler.errors import UsageError
from labeler.judges.judge import JUDGES
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.opening import hosted_spec, open_judge, open_judges
from labeler.judges.options import PROVIDERS, JudgeOptions
from labeler.judges.task import Task
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store import MemoryStore
from support.answers import trusting as answer
from wire.provider import Provider
from wire.runs import rows

KEYS = {name: f"{name}-key-0123456789" for name in PROVIDERS.names()}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of each provider in its own variable."""
    monkeypatch.delenv("LABELER_MODEL", raising=False)
    for name, key in KEYS.items():
        provider = PROVIDERS[name]
        for variable in provider.key_variables:
            monkeypatch.setenv(variable, key)
        for variable in provider.region_variables:
            monkeypatch.setenv(variable, "eu-central-1")


def spec_of(judge: str, **options: Any) -> OpenAISpec:
    """The settings of a judge that is named so."""
    spec = open_judge(JudgeOptions(judge=judge, **options)).spec
    assert isinstance(spec, OpenAISpec)
    return spec


def test_a_providers_name_means_its_address_and_settings() -> None:
    """The rest of the name is the model, which may hold a colon; openai is as it was."""
    named = spec_of("openai:m", seed=1)
    assert named == spec_of("openai", model=" m\n", seed=1)
    assert named.model_dump() == OpenAISpec(model="m", seed=1).model_dump()
    mistral = spec_of("mistral:mistral-large-latest")
    assert str(mistral) == "mistral/mistral-large-latest"
    assert (mistral.base_url, mistral.cap_field) == ("https://api.mistral.ai/v1", "max_tokens")
    assert (mistral.output_mode, mistral.prompt_cache) == ("tools", "off")
    ollama = spec_of("ollama:llama3.1:8b")
    assert (ollama.judge, ollama.model, ollama.output_mode) == ("ollama", "llama3.1:8b", None)
    assert ollama.base_url == "http://localhost:11434/v1"


@pytest.mark.parametrize("name", KEYS)
def test_every_provider_is_a_judge_of_its_name(name: str) -> None:
    """By name in the catalog, and by the same name in label keys."""
    assert vars(JUDGES[name])["provider"] == name
    spec = hosted_spec(JudgeOptions(judge=f"{name}:m"))
    assert (spec.judge, spec.model) == (name, "m")


def test_several_judges_are_named_the_same_way() -> None:
    """Each with its own key and model; shared options go to all."""
    judges = open_judges("openai:a, mistral: b ,embedded", JudgeOptions(temperature=0.0))
    assert [str(judge.spec) for judge in judges[:2]] == ["openai/a", "mistral/b"]
    assert [judge.spec.sampling().get("temperature") for judge in judges[:2]] == [0.0, 0.0]


def test_a_model_of_the_environment_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """One on the command line does not."""
    monkeypatch.setenv("LABELER_MODEL", "usual")
    assert spec_of("mistral:own", model="usual").model == "own"
    assert spec_of("mistral", model="usual").model == "usual"
    with pytest.raises(UsageError, match="judge='mistral:own' and model other name two models"):
        spec_of("mistral:own", model="other")


def test_each_provider_has_its_own_price() -> None:
    """A name of OpenAI's is worth nothing at another provider's address."""
    price = JudgeOptions(judge="mistral:mistral-large-latest").find_price()
    assert price is not None
    assert "mistral" in price.source
    assert JudgeOptions(judge="mistral:gpt-4o-mini").find_price() is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"judge": "mistral"}, "the mistral judge needs model"),
        ({"judge": "mistral:"}, "'mistral:' names no model: write mistral:MODEL"),
        ({"judge": ""}, "judge is empty: name a judge"),
        ({"judge": "mistrl:m"}, "did you mean 'mistral'"),
        ({"judge": "embedded:lexical-0"}, "did you mean 'embedded'"),
        ({"judge": "mistral:m", "seed": 1}, "judge mistral takes no seed"),
        ({"judge": "mistral:m", "output_mode": "strict"}, "output_mode is one of auto, tools, "),
        ({"judge": "mistral:m", "recorded": "x"}, "judge mistral takes no recorded"),
        ({"judges": "openai:a,mistral:b", "base_url": "https://h"}, "base_url would send the"),
        ({"judges": "openai:a,mistral:b", "price": "1,2"}, "price is for one model"),
        *(({"judge": odd, "model": "m"}, "a judge has a name") for odd in (3, [3])),
        ({"judges": "embedded,embedded"}, "names 'embedded' twice"),
        ({"judges": "embedded", "temperature": 1}, "takes no temperature"),
        ({"judges": "embedded", "judge": "embedded"}, "give one of the two"),
        ({"judges": 3}, "judges must be a list"),
        ({"judges": ["embedded", None]}, "a judge has a name"),
    ],
)
def test_what_a_judge_cannot_mean_is_refused(options: dict[str, Any], said: str) -> None:
    """Before a row is read."""
    with pytest.raises(UsageError, match=said):
        labeler.label(ROWS, store=MemoryStore(), **options)


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the provider's variable; Ollama needs none."""
    for provider in map(PROVIDERS.__getitem__, KEYS):
        for variable in provider.key_variables:
            monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match="needs a key in MISTRAL_API_KEY or from api_key_comma"):
        open_judge(JudgeOptions(judge="mistral:m"))
    assert open_judge(JudgeOptions(judge="ollama:m")).spec.model == "m"


@pytest.mark.parametrize(
    ("region", "said"),
    [
        *((region, None) for region in ("eu-central-1", "us-gov-west-1")),
        ("", "no region is named: give base_url=.*, or set AWS_REGION"),
        ("evil.test/x?-1", "'evil.test/x\\?-1' is not a region"),
        ("eu-central-1.evil.test#", "is not a region"),
    ],
)
def test_a_region_of_the_environment_names_a_host_of_the_provider(
    region: str, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else; an address on the command line needs none."""
    monkeypatch.setenv("AWS_REGION", region)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "")
    assert spec_of("bedrock:m", base_url="https://h.test").base_url == "https://h.test"
    with pytest.raises(UsageError, match=said) if said else nullcontext():
        assert spec_of("bedrock:m").base_url == f"https://bedrock-runtime.{region}.amazonaws.com"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        *(("anthropic", "ANTHROPIC_BASE_URL"), ("gemini", "GOOGLE_GEMINI_BASE_URL")),
        *(("bedrock", f"AWS_ENDPOINT_URL{end}") for end in ("_BEDROCK_RUNTIME", "")),
    ],
)
def test_an_address_of_the_environment_is_not_passed_by(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's key would go to the provider's own address."""
    monkeypatch.setenv(variable, "https://gateway.test")
    for key in (None, "key"):
        with pytest.raises(UsageError, match=f"{variable} is set"):
            JUDGES[provider]("m", api_key=key)
    assert JUDGES[provider]("m", base_url="https://gateway.test").spec.model == "m"


ROWS = [{"id": "1", "question": "Q?", "documents": ["D is E."], "response": "D is E."}]


def test_a_function_is_asked_once_for_each_version() -> None:
    """Its labels are stored like any other's, under its name and version."""
    asked: list[str] = []
    store = MemoryStore()

    def trusting(task: Task) -> dict[str, Any]:
        asked.append(task.example.id)
        return answer(task)

    async def later(task: Task) -> dict[str, Any]:
        return trusting(task)

    for version, function in (("1", trusting), ("1", trusting), ("2", later)):
        judge = labeler.judge("mine", version=version)(function)
        (record,) = labeler.label(ROWS, judge=judge, store=store)
        assert isinstance(record, LabelRecord)
        assert f"judge:function/mine/{version}|" in str(record.signature)
    assert len(asked) == len({"1", "2"})


def raising(error: BaseException) -> Callable[[Task], dict[str, Any]]:
    """Return a function that raises; an asyncio future cannot carry a StopIteration."""

    def judge(_: Task) -> dict[str, Any]:
        raise error

    return judge


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (partial(answer, overall_supported="perhaps"), "malformed"),
        (partial(answer, all_relevant_sentence_keys=["9z"]), "contract"),
        *(
            (raising(error()), "judge_error")
            for error in (CancelledError, SystemExit, StopIteration)
        ),
    ],
)
def test_a_function_that_fails_or_answers_wrongly_fails_its_row(
    function: Callable[[Task], dict[str, Any]], reason: str, *, is_async: bool
) -> None:
    """An answer is checked as that of a model is; the run goes on."""

    def judge(task: Task) -> dict[str, Any]:
        return function(task) if task.example.id == "1" else answer(task)

    async def later(task: Task) -> dict[str, Any]:
        return judge(task)

    both = [*ROWS, ROWS[0] | {"id": "2", "question": "Another?"}]
    asked = labeler.judge("mine", version=1)(later if is_async else judge)
    failure, record = labeler.label(both, judge=asked, store=MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert failure.reason == reason
    assert isinstance(record, LabelRecord)


def test_a_function_without_a_name_and_a_version_is_refused() -> None:
    """Another function could have the same labels, as with a slash in either."""
    with pytest.raises(UsageError, match=r"@labeler\.judge\(NAME, version=VERSION\)"):
        labeler.label(ROWS, judge=answer, store=MemoryStore())  # type: ignore[arg-type]
    for name, version, said in (
        ("", 1, "a name and a version"),
        ("mine", None, "a name and a version"),
        ("strict", "a/1", "without a slash"),
    ):
        with pytest.raises(UsageError, match=said):
            labeler.judge(name, version=version)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'mine' decorates a function, got 5"):
        labeler.judge("mine", version=1)(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(("judge", "mode"), [("mistral:m", "tools"), ("ollama:m", "strict")])
def test_a_preset_asks_as_its_provider_expects(
    judge: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cap by its old name, no fields of OpenAI's alone, and the provider's name in the key."""
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-0123456789")
    with Provider(modes=[mode]) as provider:
        (outcome,) = labeler.label(
            rows(1), judge=judge, base_url=provider.url, max_output_tokens=900, store=MemoryStore()
        )
    (call,) = provider.calls
    assert isinstance(outcome, LabelRecord)
    assert (outcome.signature.judge, outcome.signature.model) == (judge[:-2], "m")
    assert (call.mode, call.body["max_tokens"]) == (mode, 900)
    assert not {"prompt_cache_key", "max_completion_tokens"} & call.body.keys()
