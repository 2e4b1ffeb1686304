"""Dialects of chat completions: what servers that claim to speak OpenAI's API do otherwise.

Each is a few rules before the made-up server. ``source`` names the public pages that the rules come
from, and their dates. Where servers differ by model or version, the rule is that of the harder one.
Texts are shortened; the words that a client can tell an error by are theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from labeler.judges.task import MODES
from wire.behaviors import Behavior, changes, error, says_of
from wire.calls import Call, label_for
from wire.connections import Wire
from wire.provider import Provider

KEY = "sk-SENTINEL-0123456789"
LONG = 40_000
"""Bytes of a request from which it is too long for every model here."""
CONTEXT = 4096
"""Tokens that a server reads which cuts the rest off."""


@dataclass(frozen=True)
class Fault:
    """An error response, as a behavior."""

    status: int
    body: object

    async def __call__(self, _: Call, wire: Wire) -> None:
        """Answer with it."""
        await wire.json(self.status, self.body)


# Forms of errors


def nested(status: int, message: str, code: object = None, **more: object) -> Fault:
    """As OpenAI does."""
    kind = "invalid_request_error"
    return Fault(status, {"error": {"message": message, "type": kind, "code": code, **more}})


def flat(status: int, message: str) -> Fault:
    """As vLLM and SGLang do."""
    kind = "BadRequestError" if status == 400 else "Unauthorized"
    return Fault(status, {"object": "error", "message": message, "type": kind, "code": status})


def google(status: int, message: str) -> Fault:
    """A list of one."""
    fault = {"code": status, "message": message, "status": "INVALID_ARGUMENT"}
    return Fault(status, [{"error": fault}])


def mistral(field_name: str) -> Fault:
    """Where the text should be, an object is."""
    detail = {"type": "extra_forbidden", "loc": ["body", field_name], "msg": "Extra inputs"}
    return Fault(422, {"object": "error", "message": {"detail": [detail]}, "code": None})


def minimax(code: int, message: str) -> Fault:
    """An error with status 200."""
    base = {"status_code": code, "status_msg": message}
    return Fault(200, {"id": "x", "choices": None, "base_resp": base})


# What models write


def plain(label: str) -> str:
    """Nothing but the object."""
    return label


def fenced(label: str) -> str:
    """As models do that nothing binds to a schema."""
    return f"Here is the label:\n```json\n{label}\n```"


def thinking(tag: str, rest: str = "") -> Callable[[str], str]:
    """Thoughts, in which keys stand in braces, before the object."""
    return lambda label: f"<{tag}>Is {{0a}} it?</{tag}>\n{label}{rest}"


_WRONG_KEY = nested(401, "Incorrect API key provided", "invalid_api_key")
_TOO_LONG = nested(
    400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"
)


@dataclass(frozen=True)
class Dialect:
    """One kind of server."""

    name: str
    source: str
    base: str = "/v1"
    """Path of the base URL."""
    key_header: str = "authorization"
    wrong_key: Fault = _WRONG_KEY
    unknown: Callable[[str], Fault] | None = None
    """Refuses a field that is not known; ``None``: such fields are ignored."""
    also_known: frozenset[str] = frozenset()
    refused: Mapping[str, Fault] = field(default_factory=dict)
    """Output modes that it does not take."""
    too_long: Fault | None = _TOO_LONG
    """``None``: the prompt is cut without a word."""
    writes: Callable[[str], str] = plain
    ignored: frozenset[str] = frozenset()
    """Output modes that it takes and ignores."""
    stumbles: Mapping[int, Behavior] = field(default_factory=dict)
    """Answers that go wrong, by their number from 1."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Parameters of the query without which nothing is found."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``--extra-body`` that users give."""

    @property
    def options(self) -> list[str]:
        """What the command line needs besides model and address; ``extra.json`` holds the body."""
        header = self.key_header
        options = [] if header == "authorization" else ["--header", f"{header}=@OPENAI_API_KEY"]
        for name, value in self.needs.items():
            options += ["--query", f"{name}={value}"]
        return [*options, *(["--extra-body", "extra.json"] if self.body else [])]


_KNOWN = frozenset({
    *("model", "messages", "response_format", "tools", "tool_choice"),
    *("max_tokens", "temperature", "top_p", "seed", "stream"),
})  # fmt: skip
_SCHEMAS = ("strict", "schema")


def _refusing(fault: Fault, *modes: str) -> dict[str, Fault]:
    return dict.fromkeys(modes, fault)


def _unknown_name(name: str) -> Fault:
    return google(400, f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')


def _google_schema(place: str) -> Fault:
    text = f"Unknown name \"additionalProperties\" at '{place}': Cannot find field."
    return google(400, f"Invalid JSON payload received. {text}")


def _unknown_to_serde(name: str) -> Fault:
    known = "messages, model, max_tokens, response_format, seed, temperature, tools, tool_choice"
    text = f"{name}: unknown field {name}, expected one of {known} at line 1 column 445"
    return Fault(400, {"message": f"Failed to deserialize the JSON body: {text}"})


def _unsupported(*names: str) -> Fault:
    text = f"litellm.UnsupportedParamsError: zai does not support parameters: {[*names]}"
    return nested(
        400, f"{text}, for model=glm. To drop these, set `litellm.drop_params=True`", "400"
    )


_CUT_OFF = changes(lambda value: value["usage"].update(prompt_tokens=CONTEXT))
_UPSTREAM = Fault(200, {"error": {"code": 502, "message": "Provider returned error"}})


def _fails(value: dict[str, Any]) -> None:
    choice = value["choices"][0]
    choice.update(finish_reason="error", error={"code": 502, "message": "Upstream error"})


AZURE = Dialect(
    "Azure OpenAI", "learn.microsoft.com/azure/ai-services/openai/reference, 2026; "
    "www.dotnetstudioai.com/hospital/fix-azure-openai-content-filter-error-csharp, 2026-03",
    base="/openai/deployments/DEPLOYMENT", key_header="api-key",
    needs={"api-version": "2024-10-21"},
    wrong_key=Fault(401, {"error": {"code": "401", "message": "Access denied due to invalid "
                                    "subscription key or wrong API endpoint."}}),
    unknown=lambda name: nested(400, f"Unrecognized request argument supplied: {name}"),
    also_known=frozenset({"max_completion_tokens"}),
)  # fmt: skip
DIALECTS = (
    Dialect("OpenAI", "developers.openai.com/api/docs/guides/structured-outputs, 2026",
            unknown=lambda name: nested(400, f"Unrecognized request argument supplied: {name}"),
            also_known=frozenset({"max_completion_tokens", "prompt_cache_key"})),
    AZURE,
    replace(AZURE, name="Azure OpenAI, api-version of 2024-06",
            source="github.com/EvoTestOps/AISysRev/issues/104, 2025-08",
            needs={"api-version": "2024-06-01"},
            refused=_refusing(nested(400, "Response_format value as json_schema is enabled only "
                                     "for api versions 2024-08-01-preview and later",
                                     "BadRequest"), *_SCHEMAS)),
    Dialect("Anthropic, compatible", "platform.claude.com/docs/en/api/openai-sdk, 2026",
            writes=fenced, ignored=frozenset({*_SCHEMAS, "json"}),
            too_long=nested(400, "prompt is too long: 210000 tokens > 200000 maximum")),
    Dialect("Gemini, compatible", "github.com/mozilla-ai/any-llm/issues/1143, 2026-06; "
            "github.com/continuedev/continue/issues/10748, 2026-02; "
            "github.com/google-gemini/gemini-cli/issues/12214, 2025-10",
            base="/v1beta/openai", unknown=_unknown_name,
            wrong_key=google(400, "API key not valid. Please pass a valid API key."),
            refused={**_refusing(_google_schema("generation_config.response_schema"), *_SCHEMAS),
                     "tools": _google_schema("tools[0].function_declarations[0].parameters")},
            too_long=google(400, "The input token count (134123) exceeds the maximum number of "
                            "tokens allowed (131072).")),
    Dialect("Bedrock, compatible", "docs.aws.amazon.com bedrock inference-chat-completions, 2026; "
            "github.com/BerriAI/litellm/issues/13959, 2025-08; "
            "github.com/promptfoo/promptfoo/pull/9587, 2026-06",
            base="/openai/v1", unknown=_unknown_to_serde,
            also_known=frozenset({"max_completion_tokens"}), writes=thinking("reasoning"),
            wrong_key=Fault(403, {"Message": "Authentication failed: Please make sure your API "
                                  "Key is valid."}),
            too_long=Fault(400, {"message": "Input is too long for requested model."})),
    Dialect("Mistral", "github.com/editor-code-assistant/eca/issues/231, 2025-12",
            unknown=mistral, wrong_key=Fault(401, {"detail": "Unauthorized"}),
            too_long=nested(400, "Prompt contains 40000 tokens, too large for model with 32768 "
                            "maximum context length")),
    Dialect("OpenRouter", "openrouter.ai/docs/api/errors, 2026; "
            "github.com/EvoTestOps/AISysRev/issues/104, 2025-08",
            base="/api/v1", wrong_key=Fault(401, {"error": {"code": 401, "message": "No auth"}}),
            refused=_refusing(Fault(404, {"error": {"code": 404, "message": "No endpoints found "
                                    "that can handle the requested parameters."}}), *_SCHEMAS),
            stumbles={3: _UPSTREAM, 7: changes(_fails)},
            body={"provider": {"require_parameters": True}}),
    Dialect("Ollama", "docs.ollama.com/context-length, 2026; "
            "github.com/ralphgrewe/TradingAgents/issues/168, 2026-09", too_long=None),
    Dialect("vLLM", "github.com/1Panel-dev/MaxKB/issues/2912, 2025-04; docs.vllm.ai, 2026",
            wrong_key=Fault(401, {"error": "Unauthorized"}), writes=thinking("think"),
            too_long=flat(400, "This model's maximum context length is 4096 tokens. However, you "
                          "requested 12000 tokens.")),
    Dialect("llama.cpp", "github.com/ggml-org/llama.cpp/pull/15780, 2025-09; "
            "github.com/melagiri/code-insights/issues/271, 2026-04",
            wrong_key=Fault(401, {"error": {"code": 401, "message": "Invalid API Key",
                                            "type": "authentication_error"}}),
            too_long=Fault(400, {"error": {"code": 400, "type": "exceed_context_size_error",
                                           "message": "the request exceeds the available context "
                                           "size", "n_prompt_tokens": 12000, "n_ctx": 4096}})),
    Dialect("LiteLLM proxy", "github.com/mcdonc/klangk/pull/2067, 2026-08",
            unknown=_unsupported,
            wrong_key=Fault(400, {"error": {"message": "No connected db.", "param": None,
                                            "type": "no_db_connection", "code": "400"}}),
            refused={**_refusing(_unsupported("response_format"), *_SCHEMAS, "json"),
                     "tools": _unsupported("tools", "tool_choice")},
            writes=fenced,
            too_long=nested(400, "litellm.ContextWindowExceededError: ZaiException", "400")),
    Dialect("Groq", "console.groq.com/docs/structured-outputs, 2026",
            refused=_refusing(nested(400, "This model does not support response format "
                                     "`json_schema`.", param="response_format"), *_SCHEMAS),
            stumbles={5: error(400, "tool_use_failed"), 9: error(400, "json_validate_failed")},
            too_long=nested(400, "Please reduce the length of the messages or completion.",
                            "context_length_exceeded")),
    Dialect("Together", "github.com/BerriAI/litellm/issues/6972, 2024-12",
            refused=_refusing(nested(400, "response_format is not supported for this model",
                                     param="response_format"), *_SCHEMAS)),
    Dialect("Fireworks", "github.com/vercel/ai/pull/18306, 2026-08",
            unknown=lambda name: nested(
                400, f"Extra inputs are not permitted, field: '{name}', value: 'x'"),
            also_known=frozenset({"prompt_cache_key"})),
    Dialect("DeepSeek", "github.com/llm-exe/llm-exe/issues/662, 2026-07; "
            "github.com/deepseek-ai/DeepSeek-V3/issues/1376, 2026-08",
            wrong_key=nested(401, "Authentication Fails", "invalid_request_error"),
            refused={**_refusing(nested(400, "This response_format type is unavailable now",
                                        "invalid_request_error"), *_SCHEMAS),
                     "tools": nested(400, "Thinking mode does not support this tool_choice")}),
    Dialect("Qwen, thinking", "github.com/presenton/presenton/issues/184, 2025-08; "
            "github.com/cloudwego/eino/issues/994, 2026-04; "
            "github.com/QwenLM/qwen-code/issues/98, 2025-07",
            base="/compatible-mode/v1", writes=thinking("think"),
            refused={**_refusing(nested(400, "Json mode response is not supported when "
                                        "enable_thinking is true", "invalid_parameter_error"),
                                 *_SCHEMAS, "json"),
                     "tools": nested(400, "The tool_choice parameter does not support being set "
                                     "to required or object in thinking mode",
                                     "invalid_parameter_error")},
            too_long=nested(400, "Range of input length should be [1, 30720]",
                            "invalid_parameter_error")),
    Dialect("MiniMax", "platform.minimax.io/docs/api-reference/errorcode, 2026; "
            "github.com/iblogc/GithubStarsIndex/issues/1, 2026-02; "
            "github.com/github/app/issues/2128, 2026-07",
            wrong_key=minimax(2049, "invalid api key"), ignored=frozenset({*_SCHEMAS, "json"}),
            writes=thinking("think", rest="]<]minimax[>["),
            too_long=minimax(2013, "invalid params, context window exceeds limit"),
            stumbles={4: minimax(1002, "rate limit")}),
    Dialect("SGLang", "github.com/sgl-project/sglang test_request_length_validation.py, 2026",
            wrong_key=Fault(401, {"error": "Unauthorized"}), writes=thinking("think"),
            too_long=flat(400, "The input (12000 tokens) is longer than the model's context "
                          "length (4096 tokens).")),
    Dialect("LM Studio", "github.com/lmstudio-ai/lmstudio-bug-tracker/issues/307, 2025-01; "
            "github.com/lmstudio-ai/lmstudio-bug-tracker/issues/546, 2025-03",
            refused={"json": Fault(400, {"error": "'response_format.type' must be 'json_schema' "
                                         "or 'text'"})},
            too_long=Fault(400, {"error": "Trying to keep the first 12000 tokens when context "
                                 "overflows. However, the model is loaded with context length of "
                                 "only 4096 tokens"})),
)  # fmt: skip
"""Every dialect."""


class Stand(Provider):
    """A server of a dialect, on loopback.

    Args:
        dialect: what it speaks.
        key: the key that it takes; "" for any, and none.
        settings: those of the provider.
    """

    def __init__(self, dialect: Dialect, key: str = KEY, **settings: Any) -> None:
        self._dialect, self._key, self._answered = dialect, key, 0
        models = {"GET /v1/models/{id}": self._model_step}
        super().__init__(self._step, at=models, modes=MODES, **settings)

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self.port}{self._dialect.base}"

    async def _answer(self, call: Call, wire: Wire) -> None:
        """Take a call where the dialect has it, with the key that it has for it."""
        base, query = self._dialect.base, self._dialect.needs
        if call.path.startswith(f"{base}/") and query.items() <= call.query.items():
            key = call.headers.get(self._dialect.key_header, "none")
            headers = {**call.headers, "authorization": f"Bearer {key.removeprefix('Bearer ')}"}
            call = replace(call, path=f"/v1{call.path.removeprefix(base)}", headers=headers)
        else:
            call = replace(call, path=f"/nowhere{call.path}")
        await super()._answer(call, wire)

    def _model_step(self, call: Call) -> Behavior | None:
        right = call.headers["authorization"].endswith(self._key)
        return None if right else self._dialect.wrong_key

    def _step(self, call: Call) -> Behavior | None:
        """What becomes of a request for a completion."""
        return self._model_step(call) or self._refusal(call) or self._reply(call)

    def _refusal(self, call: Call) -> Behavior | None:
        dialect = self._dialect
        strange = sorted(call.body.keys() - _KNOWN - dialect.also_known - dialect.body.keys())
        if dialect.unknown is not None and strange:
            return dialect.unknown(strange[0])
        if call.mode in dialect.refused:
            return dialect.refused[call.mode]
        if len(call.raw) > LONG:
            return _CUT_OFF if dialect.too_long is None else dialect.too_long
        return None

    def _reply(self, call: Call) -> Behavior:
        self._answered += 1
        writes = plain if call.mode == "tools" else self._dialect.writes
        reply = says_of(lambda call: writes(json.dumps(label_for(call))))
        return self._dialect.stumbles.get(self._answered, reply)
