"""Judges by name, of other providers, and judges that are functions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import labeler
from labeler.errors import UsageError
from labeler.judges.judge import JUDGES
from labeler.judges.openai.address import environment_key
from labeler.judges.openai.request import OpenAISpec
from labeler.judges.opening import hosted_spec, open_judge, open_judges
from labeler.judges.options import PROVIDERS, JudgeOptions
from labeler.judges.task import Task
from labeler.labels.record import LabelFailure, LabelRecord
from labeler.store import MemoryStore
from support.answers import answer as trace_answer
from wire.provider import Provider
from wire.runs import rows

ROW = {"question": "What?", "documents": ["A harbor."], "response": "A harbor."}
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
    assert named == spec_of("openai", model="m", seed=1)
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


@pytest.mark.parametrize("judges", [3, [3], ["embedded", None]])
def test_another_object_is_no_judge(judges: Any) -> None:
    """Alone, or among judges."""
    with pytest.raises(UsageError, match=r"judges must be a list|a judge has a name"):
        open_judges(judges, JudgeOptions())
    with pytest.raises(UsageError, match="a judge has a name"):
        open_judge(JudgeOptions(judge=judges, model="m"))


def test_several_judges_are_named_the_same_way() -> None:
    """Each with its own key and model; shared options go to all."""
    judges = open_judges("openai:a,mistral:b,embedded", JudgeOptions(temperature=0.0))
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
    options = JudgeOptions(judge="mistral:mistral-large-latest")
    price = options.find_price()
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
        ({"judge": "mistral:m", "seed": 1}, "judge mistral takes no seed"),
        ({"judge": "mistral:m", "output_mode": "strict"}, "output_mode is one of auto, tools, "),
        ({"judge": "mistral:m", "recorded": "x"}, "judge mistral takes no recorded"),
        ({"judges": "openai:a,mistral:b", "base_url": "https://h"}, "base_url would send the"),
        ({"judges": "openai:a,mistral:b", "price": "1,2"}, "price is for one model"),
    ],
)
def test_what_a_judge_cannot_mean_is_refused(options: dict[str, Any], said: str) -> None:
    """Before a row is read."""
    with pytest.raises(UsageError, match=said):
        labeler.label([ROW], store=MemoryStore(), **options)


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
        ("eu-central-1", None),
        ("us-gov-west-1", None),
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
    if said is None:
        expected = f"https://bedrock-runtime.{region}.amazonaws.com"
        assert spec_of("bedrock:m").base_url == expected
    else:
        with pytest.raises(UsageError, match=said):
            spec_of("bedrock:m")


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_BASE_URL"),
        ("gemini", "GOOGLE_GEMINI_BASE_URL"),
        ("bedrock", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        ("bedrock", "AWS_ENDPOINT_URL"),
    ],
)
def test_an_address_of_the_environment_is_not_passed_by(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway's key would go to the provider's own address."""
    monkeypatch.setenv(variable, "https://gateway.test")
    with pytest.raises(UsageError, match=f"{variable} is set"):
        environment_key(None, provider)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    with pytest.raises(UsageError, match=f"{variable} is set"):
        JUDGES[provider]("m", api_key="key")
    assert environment_key("https://gateway.test", provider)


ROWS = [{"id": "1", "question": "Q?", "documents": ["D is E."], "response": "D is E."}]


def answer(task: Task, **changes: Any) -> dict[str, Any]:
    """The answer of a judge who trusts everything, as JSON."""
    keys = task.example.document_keys()
    support = dict.fromkeys(task.example.response_keys(), keys)
    return trace_answer(support, relevant=keys, used=keys, said="It is so.") | changes


def test_a_function_is_asked_once_for_each_version() -> None:
    """Its labels are stored like any other's, under its name and version."""
    asked: list[str] = []
    store = labeler.MemoryStore()

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


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"overall_supported": "perhaps"}, "malformed"),
        ({"all_relevant_sentence_keys": ["9z"]}, "contract"),
    ],
)
def test_an_answer_of_a_function_is_checked(changes: dict[str, Any], reason: str) -> None:
    """As that of a model is; the row fails and the run goes on."""
    judge = labeler.judge("wrong", version=1)(lambda task: answer(task, **changes))
    (failure,) = labeler.label(ROWS, judge=judge, store=labeler.MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert failure.reason == reason


def test_a_function_without_a_name_and_a_version_is_refused() -> None:
    """Its labels could not be told from those of another function."""
    with pytest.raises(UsageError, match=r"@labeler\.judge\(NAME, version=VERSION\)"):
        labeler.label(ROWS, judge=answer, store=labeler.MemoryStore())  # type: ignore[arg-type]
    for name, version in (("", 1), ("mine", None)):
        with pytest.raises(UsageError, match="a name and a version"):
            labeler.judge(name, version=version)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'mine' decorates a function, got 5"):
        labeler.judge("mine", version=1)(5)  # type: ignore[arg-type]


def test_a_function_that_cancels_itself_fails_its_row() -> None:
    """Such as one that awaits a task of its own which was cancelled; the run goes on."""

    @labeler.judge("cancelled", version=1)
    async def cancelled(task: Task) -> dict[str, Any]:
        if task.example.id == "1":
            raise asyncio.CancelledError
        return answer(task)

    both = [*ROWS, ROWS[0] | {"id": "2", "question": "Another?"}]
    failure, record = labeler.label(both, judge=cancelled, store=labeler.MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert failure.reason == "judge_error"
    assert isinstance(record, LabelRecord)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_ends_the_program_fails_its_row(is_async: bool) -> None:
    """As a library of commands does; the labels before it are kept."""

    def leave(_: Task) -> dict[str, Any]:
        raise SystemExit(3)

    async def leave_later(task: Task) -> dict[str, Any]:
        return leave(task)

    judge = labeler.judge("leaving", version=1)(leave_later if is_async else leave)
    (failure,) = labeler.label(ROWS, judge=judge, store=labeler.MemoryStore())
    assert isinstance(failure, LabelFailure)
    assert failure.reason == "judge_error"


def test_an_exhausted_iterator_fails_the_row() -> None:
    """An asyncio future cannot carry it: the run would never end."""

    @labeler.judge("exhausted", version=1)
    def exhausted(_: Any) -> Any:
        return next(iter(()))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(exhausted.label(None))  # type: ignore[arg-type]


def test_a_version_has_no_slash() -> None:
    """Name and version would be cut elsewhere: two judges would share their labels."""
    with pytest.raises(UsageError, match="without a slash"):
        labeler.judge("strict", version="a/1")


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
