"""Rows of the table of faults in the words and headers of servers in service, 2025 and 2026."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from functools import partial
from time import time

from wire import fault_table as table
from wire.behaviors import Behavior, body, changes, error, says
from wire.calls import Call
from wire.connections import Wire
from wire.damaged import label_text, sent, whole
from wire.dialects import Fault, flat, google, minimax, nested
from wire.fault_table import (
    AGAIN,
    DAMAGED,
    Row,
    Steps,
    answered,
    called,
    chosen,
    edited,
    ending,
    raw_body,
)


def limits(seconds: float, **headers: str) -> Row:
    """One 429 with headers, underscores for hyphens, and the pause after it."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Row((error(429, headers=named), "ok"), requests=2, waits=(seconds,))


async def routed(_: Call, wire: Wire) -> None:
    """A 429 of OpenRouter, which passes a provider's headers on: half a second over the pause."""
    passed = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": f"{1000 * time() + 20_500:.0f}"}
    stated = {"code": 429, "message": "free-models", "metadata": {"headers": passed}}
    await wire.json(429, {"error": stated})


def streamed(*lines: str) -> Behavior:
    """Events, each with a piece of the answer in place of ``HEAD`` and ``REST``."""

    async def behave(call: Call, wire: Wire) -> None:
        text = label_text(call)
        head, rest = json.dumps(text[:40])[1:-1], json.dumps(text[40:])[1:-1]
        events = "".join(f"{line}\n\n" for line in lines)
        content = events.replace("HEAD", head).replace("REST", rest).encode()
        await wire.respond(200, content, {"content-type": "text/event-stream"})

    return behave


def _piece(text: str) -> str:
    return f'data: {{"choices": [{{"index": 0, "delta": {{"content": "{text}"}}}}]}}'


def ended(reason: str) -> Behavior:
    """Half an answer that ends so."""
    return says('{"relevance_expl', finish=reason)


_TPM = "Request too large for model `m` on tokens per minute (TPM)"
_FIREWALL = b"<!DOCTYPE html>\n<html><title>Attention Required! | Cloudflare</title></html>"
_HARMONY = "<|channel|>analysis<|message|>Is {0a} it?<|end|><|channel|>final"
_REDACTED = {"type": "redacted_thinking", "data": "x"}

WAITS = {
    "RateLimit, IETF": limits(30, ratelimit='"default";r=0;t=30'),
    "x-ratelimit-reset, passed on by OpenRouter": Row((routed, "ok"), requests=2, waits=(20,)),
    "retry-after with a unit": limits(9, retry_after="9s"),
    "retry-after of nonsense": limits(0, retry_after="5, 5"),
    **{
        f"in words, {words}": Row((nested(429, f"Please {words}"), "ok"), "label", 2,
                                  waits=(seconds,))
        for words, seconds in {
            "retry after 26 seconds.": 26, "try again in 7.66s. Visit": 7.66,
            "try again in 0m59.5s": 59.5, "try again in 120ms.": 0.12, "try again in 5 minutes": 0,
            "wait 36 seconds before retrying.": 36,
            "retry after 2026-12-01": 0,
        }.items()
    },
    **{
        f"retry-after, {status}": Row(
            (error(status, headers={"retry-after": "4"}), "ok"), requests=2, waits=(4,)
        )
        for status in (500, 503, 529)
    },
}  # fmt: skip

_REFUSED: tuple[tuple[str, str, Mapping[str, Steps]], ...] = (
    ("bad_request", "the server did not accept the request", {
        "not implemented": error(501),
        "400": "400",
        "418": error(418),
        "422, unknown words": error(422, message="Extra inputs are not permitted"),
    }),
    ("parameter", table.OTHER_MODE, {
        "400, in words": error(400, message="json_schema is not supported"),
        "500, a grammar": error(500, message="failed to parse grammar"),
    }),
    ("parameter", "the model does not accept a parameter of the request", {
        "422": error(422, "unsupported_parameter"),
    }),
    ("parameter", "the server does not know a field of the request", {
        "400": error(400, message='Unknown name "top_k": Cannot find field.'),
    }),
    ("parameter", "the server does not know max_completion_tokens", {
        "400": error(400, message="Unknown parameter: max_completion_tokens"),
    }),
    ("redirect", table.REDIRECTS, {
        "307": "redirect", "302": body(b"", 302, location="https://login.example.org/"),
    }),
    ("parameter", "the model does not write as many tokens as the cap allows", {
        "Anthropic": nested(400, "max_tokens: 9000 > 8192, which is the maximum allowed number"),
        "requested": nested(400, "The maximum tokens you requested exceeds the model limit."),
        "Vertex": nested(400, "it has a maxOutputTokens value of 9000 but the supported range is"),
    }),
    ("quota", table.NO_CREDIT, {
        "400": error(400, message="Your credit balance is too low"),
        "Zhipu": nested(429, "余额不足或无可用资源包,请充值。", "1113"),
        "Z.ai": nested(429, "Insufficient balance or no resource package.", "1113"),
        "SiliconFlow": Fault(403, {"code": 30001, "message": "your balance is insufficient"}),
        "OpenRouter": nested(403, "Key limit exceeded (total limit).", 403),
        "xAI, new": Fault(403, {"error": "Your new team doesn't have any credits yet."}),
        "xAI": Fault(429, {"error": "Your team has either used all available credits or …"}),
        "Bedrock": Fault(400, {"message": "Your request exceeds the service quota."}),
        "Fireworks": nested(412, "Account is suspended, possibly due to reaching the limit"),
        "Portkey": Fault(412, {"status": "failure", "message": "Usage limit exceeded"}),
        "Vertex": google(403, "This API method requires billing to be enabled."),
        "Cohere": Fault(429, {"message": "a Trial key, limited to 1000 API calls / month."}),
        "Anthropic": nested(400, "You have reached your specified API usage limits."),
        "funds": nested(403, "You have insufficient funds"),
        "spend": nested(403, "Your organization has exceeded its monthly spend limit"),
        "credits": nested(429, "You have run out of credits"),
        "LiteLLM": nested(429, "Budget has been exceeded! Current cost: 5.0, Max budget: 1.0"),
        "Novita": Fault(403, {"reason": "NOT_ENOUGH_BALANCE", "message": "not enough balance"}),
        "new-api": nested(401, "该令牌额度已用尽"),
    }),
    ("stop quota", table.NO_CREDIT, {
        "MiniMax": minimax(1008, "text"),
        "LiteLLM": nested(400, "Exceeded", "budget_exceeded"),
        "new-api": nested(403, "Exceeded", "insufficient_user_quota"),
        "Volcengine": nested(403, "Overdue", "AccountOverdueError"),
        "watsonx": Fault(403, {"errors": [{"code": "token_quota_reached", "message": "Monthly"}]}),
        "Perplexity": nested(401, "You exceeded your quota", "insufficient_quota"),
        "DashScope": nested(403, "The free tier is exhausted", "AllocationQuota.FreeTierOnly"),
        "OpenRouter, in a 200": nested(200, "Insufficient credits", 402),
        "DeepSeek": nested(402, "Insufficient Balance"),
        "FastAPI": Fault(429, {"detail": nested(429, "Your quota", "insufficient_quota").body}),
    }),
    ("permission", table.NO_ACCESS, {
        "403": "403",
        "OpenAI": nested(401, "Missing scopes: model.request", "missing_scope"),
        "LiteLLM": nested(401, "key not allowed to access model.", "key_model_access_denied"),
        "Groq": nested(400, "The model m requires terms acceptance.", "model_terms_required"),
    }),
    ("authentication", table.WRONG_KEY, {
        "403": error(403, message="API key expired"),
        "Gemini, leaked": google(403, "Your API key was reported as leaked."),
        "Gemini": google(403, "Method doesn't allow unregistered callers"),
        "Cloudflare": Fault(403, {"errors": [{"code": 10000, "message": "Authentication error"}]}),
        "Databricks": Fault(403, {"error_code": 403, "message": "Invalid access token."}),
        "Databricks, none": Fault(403, {"error_code": "DENIED", "message": "Invalid Token"}),
        "xAI": Fault(400, {"code": "invalid", "error": "Incorrect API key provided: x***9."}),
        "xAI, blocked": Fault(403, {"error": "API key is currently blocked: xai-…"}),
        "Groq": nested(400, "Organization has been restricted", "organization_restricted"),
    }),
    ("stop authentication", table.WRONG_KEY, {
        "Vertex": google(401, "Request had invalid authentication credentials."),
        "in a 200": Fault(200, {"code": 401, "msg": "token invalid", "success": False}),
        "MiniMax": minimax(1004, "text"),
        "in a text": Fault(200, {"statusCode": 401, "body": '{"error": {"message": "wrong key"}}'}),
    }),
    ("stop not_found", table.NO_MODEL, {
        "Azure": nested(404, "The API deployment does not exist", "DeploymentNotFound"),
        "Groq": nested(400, "The model has been decommissioned", "model_decommissioned"),
        "Together": nested(400, "Unable to access model m", "model_not_available"),
        "Perplexity": nested(400, "Invalid model 'm'.", "invalid_model"),
        "Hugging Face": nested(400, "Not supported.", "model_not_supported", param="model"),
        "LM Studio": nested(404, "No models loaded", "model_not_found"),
    }),
    ("not_found", table.NO_MODEL, {
        "400": error(400, message="The model m does not exist"),
        "llama.cpp": nested(400, "model 'm' not found"),
        "OpenRouter, 400": nested(400, "m is not a valid model ID", 400),
        "LiteLLM": nested(400, "Invalid model name passed", "400", param="None", type="None"),
        "Xinference": Fault(400, {"detail": "[address=0.0.0.0:1] Model not found, uid: m"}),
    }),
    ("not_found", table.NO_ADDRESS, {
        "404": error(404, "not_found"),
        "405": error(405),
        "Fireworks": nested(404, "Model not found", "NOT_FOUND"),
        "Databricks": Fault(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": "No endpoint"}),
        "OpenRouter": nested(404, "No endpoints found matching …", 404),
        "Ollama": nested(404, "model 'm' not found"),
        "LM Studio": Fault(200, {"error": "Unexpected endpoint or method. Returning 200 anyway"}),
        "410": Fault(410, {"error": "The model is deprecated"}),
    }),
    ("content_filter", table.BLOCKED, {
        "400": "400-filter",
        "403": error(403, "content_filter"),
        "DeepSeek": nested(400, "Content Exists Risk"),
        "Zhipu": nested(400, "内容可能包含不安全或敏感内容", "1301"),
        "MiniMax": minimax(1026, "input new_sensitive"),
        "OpenRouter": nested(403, "Input was flagged", 403),
        "OpenRouter, passed on": nested(400, "Error", metadata={"raw": '"content_filter"'}),
        "Azure": nested(400, "The response was filtered", "content_filter", param="prompt"),
        "Azure, in words": nested(400, "triggering Azure OpenAI's content management policy"),
        "LiteLLM": nested(400, "litellm.ContentPolicyViolationError: AzureException"),
        "LiteLLM, guardrail": nested(400, "{'error': 'Violated guardrail policy'}"),
        "Anthropic": nested(400, "Output blocked by content filtering policy"),
        "DashScope": nested(400, "Input data may contain inappropriate content."),
        "Moonshot": nested(400, "it was considered high risk"),
        "OpenAI": nested(400, "flagged as potentially violating our usage policy."),
        "Gemini": nested(400, "The prompt was blocked due to prohibited contents"),
        "Volcengine": nested(400, "the input text may contain sensitive information."),
        "Portkey": nested(446, "Guardrail check failed"),
        "451": nested(451, "Content filter"),
        "Kong": nested(400, "prompt pattern is blocked"),
        "API Management": Fault(403, {"message": "Request failed content safety check."}),
        "Cloudflare": Fault(424, {"success": False, "error": [
            {"code": 2016, "message": "Prompt blocked due to security configurations"},
        ]}),
    }),
    ("context_length", "the record alone exceeds the limit of tokens per minute", {
        "OpenAI": error(429, message="Request too large for m: Limit 30000, Requested 40000"),
        "Groq": nested(413, f"{_TPM}: Limit 6000, Requested 7000", "rate_limit_exceeded"),
    }),
    ("context_length", table.TOO_LONG, {
        "400": "400-context",
        "413": "413",
        "422": error(422, message="This model's maximum context length is 8192"),
        "Moonshot": nested(400, "Your request exceeded model token limit: 8192"),
        "Zhipu": nested(400, "Prompt 超长", "1261"),
        "Cohere": Fault(400, {"message": "too many tokens: total number of tokens in the prompt"}),
        "Fireworks": nested(400, "The prompt is too long: 140000"),
        "xAI": Fault(400, {"error": "This model's maximum prompt length is 131072"}),
        "Databricks": Fault(400, {"message": "Input tokens exceeded the limit of 65536"}),
        "vLLM": nested(400, "max_tokens must be at least 1, got -4677.", param="max_tokens"),
        "SiliconFlow": Fault(400, {"message": "tokens (9) must be less than max_seq_len (8)"}),
        "Together": nested(422, "`inputs` tokens + `max_new_tokens` must be"),
        "llama.cpp": nested(500, "Context size has been exceeded."),
        "llama.cpp, a batch": nested(500, "input is too large to process. increase the size"),
        "OpenRouter": nested(400, "", metadata={"raw": "the maximum context length is 8192"}),
        "Groq": nested(400, "Please reduce the length of the messages or completion."),
        "input": nested(400, "max input tokens is 4096, but got 9000"),
        "watsonx": nested(400, "the number of input tokens 9 cannot exceed the total limit 4"),
        "limit": nested(400, "Input exceeds the maximum token limit of 8192"),
        "total": nested(422, "Total number of tokens exceeds the maximum allowed"),
    }),
)  # fmt: skip
REFUSED = {
    f"{name}: {outcome}, {text}": Row(fault, outcome, says=text)
    for outcome, text, faults in _REFUSED
    for name, fault in faults.items()
}

BUSY = {
    **ending("rate_limit", table.LIMITED, {
        "API Management": Fault(403, {"statusCode": 403, "message": "Out of call volume quota."}),
        "GitHub": Fault(403, {"message": "You have exceeded a secondary rate limit."}),
        "MiniMax": minimax(1039, "token limit"),
        "MiniMax, requests": minimax(1002, "text"),
        "Cerebras, of a day": nested(429, "Tokens per day limit", "token_quota_exceeded"),
        "Ollama, of an hour": Fault(429, {"error": "you've reached your hourly usage limit"}),
        "Databricks": Fault(429, {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Exceeded"}),
        "in a 200": Fault(200, {"error": {"status": 429}}),
        "in a 200, without a status": nested(200, "Too many", "rate_limit_exceeded"),
        "in words like events": Fault(200, {"code": 429, "detail": "id: too many requests"}),
        "a page, 429": body(b"error code: 1015", 429, content_type="text/html"),
    }, **AGAIN),
    **ending("rate_limit", "the server has more requests than it takes at once", {
        "Anthropic, busy": nested(529, "Overloaded", "overloaded_error"),
        "Azure, busy": nested(503, "The service is experiencing high demand.", "no_capacity"),
        "Google, busy": google(503, "The model is overloaded. Please try again later."),
        "Groq, busy": nested(498, "Flex tier capacity exceeded", "capacity_exceeded"),
        "NVIDIA, busy": Fault(503, {"detail": "Worker local total request limit reached"}),
        "Ollama, busy": flat(503, "server busy, please try again. maximum pending requests"),
        "OpenAI, busy": nested(503, "Slow down", "slow_down"),
        "SGLang, busy": nested(503, "The request queue is full."),
    }, **AGAIN),
}  # fmt: skip

RECORDS = {
    **ending("content_filter", table.BLOCKED_ANSWER, {
        "of prohibited content": says("", finish="content_filter: PROHIBITED_CONTENT"),
        "half an answer": ended("content_filter"),
        "Cohere": says("", finish="ERROR_TOXIC"),
        "no message": edited(partial(chosen, message=None, finish_reason="content_filter")),
    }),
    **ending("truncated", table.CUT_OFF, {
        "no message, length": edited(partial(chosen, message=None, finish_reason="length")),
        **{
            f"ended by {reason}": ended(reason)
            for reason in (
                *("max_output_tokens", "token_limit", "ERROR_LIMIT", "repetition"),
                "model_context_window_exceeded",
            )
        },
    }),
    **ending("permission", "a firewall before the server rejected the request", {
        "a page of a firewall": body(_FIREWALL, 403, content_type="text/html"),
        "a code of a firewall": body(b"error code: 1010", 403, content_type="text/html"),
    }),
    **ending("refusal", table.REFUSED, {
        "a refusal as a part": answered(content=[{"type": "refusal", "refusal": "I can't help."}]),
        "a refusal of another type": answered(content=None, refusal={"reason": "policy"}),
    }),
    **ending("malformed", table.UNFIT, {
        f"{name}, which writes no label": says(text)
        for name, text in {
            "Llama Guard": "unsafe\nS1",
            "Granite Guardian": "<score> yes </score>",
            "Lynx": '{"REASONING": ["It is blue."], "SCORE": "FAIL"}',
            "MiniCheck": "1",
            "an apology": "I'm sorry, but I can't help with that.",
        }.items()
    }, requests=2),
}  # fmt: skip

PASSING = {
    **ending("transport", table.FAILING, {
        "text-generation-inference": Fault(424, {"error": "Failed", "error_type": "generation"}),
        "499": google(499, "The operation was cancelled."),
        "LiteLLM": nested(400, "There are no healthy deployments for this model."),
        "LM Studio, crashed": flat(400, "The model has crashed (Exit code: 6)"),
        "OpenRouter, an error in a choice": changes(
            partial(chosen, error={"code": 502, "message": "Upstream"})
        ),
        "a page that checks the client": body(
            b"<!DOCTYPE html><html><head><title>Just a moment...</title>", 403
        ),
        "an answer within a failure": raw_body(
            lambda b: json.dumps({"statusCode": 502, "body": b.decode()}).encode()
        ),
        "a flat error in a 200": flat(200, "too many"),
        "MiniMax, failing": minimax(1000, "text"),
        "Bedrock, throttled": nested(500, "Too many tokens, please wait"),
        "a detail in a 200": Fault(200, {"detail": "model overloaded"}),
        "an error event": streamed(
            _piece("HEAD"), 'event: error\ndata: {"message": "busy", "code": 503}'
        ),
        **{f"{status}": error(status) for status in (421, 423)},
        **{
            f"a page, {status}": body(b"<html>error</html>", status, content_type="text/html")
            for status in (500, 502, 504, 511, 520, 522, 524, 530)
        },
    }, **AGAIN),
    **ending("transport", "the server sent a completion without an answer", {
        "MiniMax, without a code": body(b'{"choices": null, "base_resp": {"status_code": [1004]}}'),
        "Azure, a choice less": changes(
            lambda v: v.update(choices=[], usage=None, prompt_filter_results=[])
        ),
        **{
            f"ended by {reason}": ended(reason)
            for reason in (
                *("abort", "insufficient_system_resource", "network_error", "timeout"),
                *("time_limit", "load"),
            )
        },
    }, **AGAIN),
    **ending("transport", table.NO_COMPLETION, {
        f"status {status} of nothing": body(b"", status) for status in (200, 202, 204)
    }, **AGAIN),
    **ending("malformed", table.NOT_PASSED_ON, {
        "ended by OTHER": ended("OTHER"),
        "a malformed call": ended("function_call_filter: MALFORMED_FUNCTION_CALL"),
        "OpenRouter, a provider's slip": changes(
            partial(chosen, finish_reason="error", native_finish_reason="MALFORMED_RESPONSE")
        ),
    }, requests=2, waits=(0,)),
    **ending("malformed", table.NO_JSON, {
        "Groq": nested(400, "See failed_generation for more details.", "failed_generation"),
        "Groq, in a 200": nested(200, "See output_parse_failed.", "output_parse_failed"),
        "Cloudflare, an answer with errors": raw_body(
            lambda b: b'{"errors": [{"message": "JSON Mode couldn\'t be met"}], "a": %s}' % b
        ),
    }, **AGAIN),
    "events that break off": Row(streamed(_piece("HEAD")), **DAMAGED),
    "events that break off in one": Row(
        streamed(": waiting", _piece("HEAD"), 'data: {"choi'), **DAMAGED
    ),
    "whole events without an end": Row(streamed(_piece("HEAD"), _piece("REST"))),
    "a whole answer, ended by abort": Row(edited(partial(chosen, finish_reason="abort"))),
}  # fmt: skip

FORMS = {
    **{
        f"thoughts of gpt-oss{form}": Row(
            answered(content=lambda text, f=form: f"{_HARMONY}{f}<|message|>{text}<|return|>")
        )
        for form in ("", " <|constrain|>json")
    },
    **{
        f"thoughts, {first}": Row(
            answered(content=lambda t, a=first, z=last: f"{a}Is {{0a}} it?{z}{t}")
        )
        for first, last in (
            ("<thought>", "</thought>"), ("<seed:think>", "</seed:think>"), ("◁think▷", "◁/think▷")
        )
    },
    "thoughts that are hidden": Row(
        answered(content=lambda text: [_REDACTED, {"type": "text", "text": text}])
    ),
    "several thoughts": Row(
        answered(content=lambda text: f"<think>a</think>\n<think>{{b}}</think>{text}")
    ),
    **{
        f"thoughts in a part, {kind}": Row(
            answered(content=lambda text, k=kind: [{"type": k, "text": "{0a}"}, text])
        )
        for kind in ("thinking", "reasoning", "reasoning_text")
    },
    "thoughts next to the answer": Row(
        answered(reasoning="a", reasoning_content="b", thinking_blocks=[{"thinking": "c"}])
    ),
    **{
        f"ended by {reason!r}": Row(edited(partial(chosen, finish_reason=reason)))
        for reason in (None, "", 1, {"type": "stop"}, "STOP", "eos_token", "tool_calls")
    },
    **{
        f"{name}: {value}": Row(edited(partial(dict.update, **{name: value})))
        for name, value in (
            ("error", None), ("error", {}), ("model", None), ("id", None), ("citations", ["x"]),
        )
    },
    **{
        f"as {kind}": Row(sent(partial(whole, content_type=kind)))
        for kind in ("text/plain", "text/html", "text/event-stream", "application/x-ndjson")
    },
    "lines before it": Row(sent(lambda w, body: whole(w, b"\n\n \r\n" + body))),
    "a comment before it": Row(sent(lambda w, body: whole(w, b": processing\n\n" + body))),
    "201": Row(sent(lambda w, b: whole(w, b).replace(b"200 OK", b"201 Created", 1))),
    "arguments in a text of a text": Row(
        answered(content=None, tool_calls=lambda text: called(json.dumps(text)))
    ),
    "a text of a text": Row(answered(content=json.dumps)),
    "an empty call next to the answer": Row(answered(tool_calls=called("{}"))),
    "x-gzip": Row(sent(lambda w, body: whole(w, gzip.compress(body), content_encoding="x-gzip"))),
    "gzip that is stated only": Row(sent(lambda w, body: whole(w, body, content_encoding="gzip"))),
    "gzip that is not stated": Row(sent(lambda w, body: whole(w, gzip.compress(body)))),
    "early hints": Row(sent(
        lambda w, body: b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + whole(w, body)
    )),
    "usage without details": Row(changes(lambda v: v["usage"].update(prompt_tokens_details=None))),
}  # fmt: skip

SERVER_ROWS = {**WAITS, **REFUSED, **BUSY, **RECORDS, **PASSING, **FORMS}
