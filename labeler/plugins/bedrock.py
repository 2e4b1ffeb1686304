"""A judge behind Amazon Bedrock's Converse API."""

from __future__ import annotations

from typing import Any

from labeler.judges.native import NativeAnswers, set_only, texts_of
from labeler.judges.openai.judge import HostedJudge
from labeler.judges.openai.request import Form, Request, schema_name
from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

BEDROCK = Provider(
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    address_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
    modes=NATIVE_MODES,
    lacks=OPENAI_ONLY | {"seed"},
)

_CONVERSE_ENDS = {
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), "content_filter"),
    **dict.fromkeys(("malformed_model_output", "malformed_tool_use"), "error"),
    "refusal": "refusal",
}


def _converse_body(asked: Request) -> dict[str, Any]:
    instructions, messages, schema = texts_of(asked)
    spec = asked.spec
    system: list[dict[str, Any]] = [{"text": instructions}]
    if asked.cached:
        system.append({"cachePoint": {"type": "default"}})  # the tools stand before it
    body: dict[str, Any] = {
        **(spec.extra_body or {}),
        "system": system,
        "messages": [{"role": role, "content": [{"text": text}]} for role, text in messages],
        "inferenceConfig": set_only(
            temperature=spec.temperature, topP=spec.top_p, maxTokens=asked.cap
        ),
    }
    if schema is not None:
        name = schema_name(asked.task.schema)
        body["toolConfig"] = {
            "tools": [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}}],
            "toolChoice": {"tool": {"name": name}},
        }
    return body


_READ, _WRITTEN = "cacheReadInputTokens", "cacheWriteInputTokens"
_ANSWERS = NativeAnswers(
    blocks=["output", "message", "content"],
    call=["toolUse", "input"],
    end=["stopReason"],
    ends=_CONVERSE_ENDS,
    usage="usage",
    prompt=["inputTokens", _READ, _WRITTEN],
    answer=["outputTokens"],
    read=_READ,
    written=_WRITTEN,
)


class BedrockJudge(HostedJudge):
    """Labels records with a model on Amazon Bedrock, by its Converse API.

    An API key of Bedrock is a bearer token, so no request is signed. Arguments are those of its
    base.

    Raises:
        UsageError: neither ``base_url`` nor ``AWS_REGION`` names a region, or as for its base.

    Example:
        >>> url = "https://bedrock-runtime.eu-central-1.amazonaws.com"
        >>> labeler.BedrockJudge("MODEL", api_key="key", base_url=url).spec.model
        'MODEL'
    """

    provider = "bedrock"
    form = Form("/model/{model}/converse", _converse_body, _ANSWERS.completion)
