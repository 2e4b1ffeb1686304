"""Rows of the table of faults in the words and headers of servers in service, 2025 and 2026."""

from __future__ import annotations

import gzip
import json
from functools import partial
from time import time
from typing import Any

from wire.behaviors import Behavior, changes, error, says
from wire.calls import Call
from wire.connections import Wire
from wire.damaged import label_text, sent, whole
from wire.dialects import Fault, flat, google, minimax, nested
from wire.fault_table import Row, answered, called, edited, raw_body, responds

_AGAIN: dict[str, Any] = {"outcome": "transport", "requests": 3, "waits": (0, 0)}
_FAILED, _NO_ANSWER = "the server failed", "the server sent a completion without an answer"
_LIMITED: dict[str, Any] = {
    "outcome": "rate_limit", "requests": 3, "waits": (0, 0),
    "says": "the server is limiting the rate of requests",
}  # fmt: skip
_CUT_OFF: dict[str, Any] = {
    "outcome": "transport", "requests": 2, "waits": (0,), "says": "the server's answer is damaged",
}  # fmt: skip
_BUSY = "the server has more requests than it takes at once"
_EMPTY, _FILTERED = "the account has no credit left", "the provider's filter blocked the request"
_LONG, _KEY = "the record is too long for the model", "the API key was not accepted"


def fails(fault: Fault, outcome: str, text: str) -> Row:
    """An error that is not asked again."""
    return Row(fault.behave(), outcome, 1, text)


def fails_for_a_while(fault: Fault, text: str = _FAILED) -> Row:
    """An error that may pass."""
    return Row(fault.behave(), says=text, **_AGAIN)


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


def chosen(value: dict[str, Any], **fields: object) -> None:
    """The first choice has these fields."""
    value["choices"][0].update(fields)


def ended(reason: str) -> Behavior:
    """Half an answer that ends so."""
    return says('{"relevance_expl', finish=reason)


_BURST = "the record alone exceeds the limit of tokens per minute"
_TPM = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7000"
_FIREWALL = b"<!DOCTYPE html>\n<html><title>Attention Required! | Cloudflare</title></html>"
_HARMONY = "<|channel|>analysis<|message|>Is {0a} it?<|end|><|channel|>final"
_REDACTED = {"type": "redacted_thinking", "data": "x"}

WAITS = {
    "RateLimit, IETF": limits(30, ratelimit='"default";r=0;t=30'),
    "x-ratelimit-reset, passed on by OpenRouter": Row((routed, "ok"), requests=2, waits=(20,)),
    "retry-after with a unit": limits(9, retry_after="9s"),
    "retry-after of nonsense": limits(0, retry_after="5, 5"),
    **{
        f"in words, {words}": Row((nested(429, f"Please {words}").behave(), "ok"), "label", 2,
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

_REFUSED = (
    ("parameter", "the model does not write as many tokens as the cap allows", {
        "Anthropic": nested(400, "max_tokens: 9000 > 8192, which is the maximum allowed number"),
        "requested": nested(400, "The maximum tokens you requested exceeds the model limit."),
        "Vertex": nested(400, "it has a maxOutputTokens value of 9000 but the supported range is"),
    }),
    ("quota", _EMPTY, {
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
    ("stop quota", _EMPTY, {
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
    ("permission", "the API key may not use this model", {
        "OpenAI": nested(401, "Missing scopes: model.request", "missing_scope"),
        "LiteLLM": nested(401, "key not allowed to access model.", "key_model_access_denied"),
        "Groq": nested(400, "The model m requires terms acceptance.", "model_terms_required"),
    }),
    ("authentication", _KEY, {
        "Gemini, leaked": google(403, "Your API key was reported as leaked."),
        "Gemini": google(403, "Method doesn't allow unregistered callers"),
        "Cloudflare": Fault(403, {"errors": [{"code": 10000, "message": "Authentication error"}]}),
        "Databricks": Fault(403, {"error_code": 403, "message": "Invalid access token."}),
        "Databricks, none": Fault(403, {"error_code": "DENIED", "message": "Invalid Token"}),
        "xAI": Fault(400, {"code": "invalid", "error": "Incorrect API key provided: x***9."}),
        "xAI, blocked": Fault(403, {"error": "API key is currently blocked: xai-…"}),
        "Groq": nested(400, "Organization has been restricted", "organization_restricted"),
    }),
    ("stop authentication", _KEY, {
        "Vertex": google(401, "Request had invalid authentication credentials."),
        "in a 200": Fault(200, {"code": 401, "msg": "token invalid", "success": False}),
        "in a text": Fault(200, {"statusCode": 401, "body": '{"error": {"message": "wrong key"}}'}),
    }),
    ("stop not_found", "no such model", {
        "Azure": nested(404, "The API deployment does not exist", "DeploymentNotFound"),
        "Groq": nested(400, "The model has been decommissioned", "model_decommissioned"),
        "Together": nested(400, "Unable to access model m", "model_not_available"),
        "Perplexity": nested(400, "Invalid model 'm'.", "invalid_model"),
        "Hugging Face": nested(400, "Not supported.", "model_not_supported", param="model"),
        "LM Studio": nested(404, "No models loaded", "model_not_found"),
    }),
    ("not_found", "no such model", {
        "llama.cpp": nested(400, "model 'm' not found"),
        "Xinference": Fault(400, {"detail": "[address=0.0.0.0:1] Model not found, uid: m"}),
    }),
    ("not_found", "no such model or address", {
        "Fireworks": nested(404, "Model not found", "NOT_FOUND"),
        "Databricks": Fault(404, {"error_code": "ENDPOINT_NOT_FOUND", "message": "No endpoint"}),
        "OpenRouter": nested(404, "No endpoints found matching …", 404),
        "Ollama": nested(404, "model 'm' not found"),
        "LM Studio": Fault(200, {"error": "Unexpected endpoint or method. Returning 200 anyway"}),
        "410": Fault(410, {"error": "The model is deprecated"}),
    }),
    ("content_filter", _FILTERED, {
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
    ("context_length", _BURST, {"Groq, in a minute": nested(413, _TPM, "rate_limit_exceeded")}),
    ("context_length", _LONG, {
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
    f"{name}: {outcome}, {text}": fails(fault, outcome, text)
    for outcome, text, faults in _REFUSED
    for name, fault in faults.items()
}

LIMITED = {
    f"{name}, a limit": Row(fault.behave(), **_LIMITED)
    for name, fault in {
        "API Management": Fault(403, {"statusCode": 403, "message": "Out of call volume quota."}),
        "GitHub": Fault(403, {"message": "You have exceeded a secondary rate limit."}),
        "MiniMax": minimax(1039, "token limit"),
        "Cerebras, of a day": nested(429, "Tokens per day limit", "token_quota_exceeded"),
        "Ollama, of an hour": Fault(429, {"error": "you've reached your hourly usage limit"}),
        "Databricks": Fault(429, {"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Exceeded"}),
        "in a 200": Fault(200, {"error": {"status": 429}}),
        "in a 200, without a status": nested(200, "Too many", "rate_limit_exceeded"),
        "in words like events": Fault(200, {"code": 429, "detail": "id: too many requests"}),
        "within data": Fault(200, {"code": 1, "data": {"error": {"code": 429, "message": "busy"}}}),
    }.items()
} | {
    f"{name}, busy": Row(fault.behave(), **_LIMITED | {"says": _BUSY})
    for name, fault in {
        "Anthropic": nested(529, "Overloaded", "overloaded_error"),
        "Azure": nested(503, "The service is currently experiencing high demand.", "no_capacity"),
        "Google": google(503, "The model is overloaded. Please try again later."),
        "Groq": nested(498, "Flex tier capacity exceeded", "capacity_exceeded"),
        "NVIDIA": Fault(503, {"detail": "Worker local total request limit reached"}),
        "Ollama": flat(503, "server busy, please try again. maximum pending requests exceeded"),
        "OpenAI": nested(503, "Slow down", "slow_down"),
        "SGLang": nested(503, "The request queue is full."),
    }.items()
}  # fmt: skip

_BLOCKED = "the provider's filter blocked the answer"
RECORDS = {
    **{
        f"{end!r}, {text!r}": Row(says(text, finish=end), "content_filter", 1, _BLOCKED)
        for end, text in (
            ("content_filter: PROHIBITED_CONTENT", ""), ("content_filter", '{"relevance_expl'),
            ("ERROR_TOXIC", ""),
        )
    },
    **{
        f"no message, {end}": Row(
            edited(partial(chosen, message=None, finish_reason=end)), outcome, 1, text
        )
        for end, outcome, text in (
            ("content_filter", "content_filter", _BLOCKED),
            ("length", "truncated", "the answer was cut off"),
        )
    },
    **{
        f"{name} of a firewall": Row(
            responds(content, 403, content_type="text/html"), "permission", 1,
            "a firewall before the server rejected the request",
        )
        for name, content in (("a page", _FIREWALL), ("a code", b"error code: 1010"))
    },
    "a refusal as a part": Row(
        answered(content=[{"type": "refusal", "refusal": "I can't help with that."}]),
        "refusal", 1, "the model refused to answer",
    ),
    "a refusal of another type": Row(
        answered(content=None, refusal={"reason": "policy"}), "refusal", 1,
        "the model refused to answer",
    ),
    **{
        f"{name}, which writes no label": Row(
            says(text), "malformed", 2, "the answer does not fit the label's schema"
        )
        for name, text in {
            "Llama Guard": "unsafe\nS1",
            "Granite Guardian": "<score> yes </score>",
            "Lynx": '{"REASONING": ["It is blue."], "SCORE": "FAIL"}',
            "MiniCheck": "1",
            "an apology": "I'm sorry, but I can't help with that.",
        }.items()
    },
}  # fmt: skip

PASSING = {
    "text-generation-inference, 424": fails_for_a_while(
        Fault(424, {"error": "Request failed during generation", "error_type": "generation"})
    ),
    "499": fails_for_a_while(google(499, "The operation was cancelled.")),
    "LiteLLM, nothing healthy": fails_for_a_while(
        nested(400, "There are no healthy deployments for this model.")
    ),
    "LM Studio, crashed": fails_for_a_while(flat(400, "The model has crashed (Exit code: 6)")),
    "OpenRouter, an error in a choice": Row(
        changes(lambda v: v["choices"][0].update(error={"code": 502, "message": "Upstream"})),
        says=_FAILED, **_AGAIN,
    ),
    "Azure, a choice less": Row(
        changes(lambda v: v.update(choices=[], usage=None, prompt_filter_results=[])),
        says=_NO_ANSWER, **_AGAIN,
    ),
    **{
        f"a page, {status}": Row(
            responds(b"<html><h1>error</h1></html>", status, content_type="text/html"),
            says=_FAILED, **_AGAIN,
        )
        for status in (500, 502, 504, 511, 520, 522, 524, 530)
    },
    **{f"{status}": Row(error(status), says=_FAILED, **_AGAIN) for status in (421, 423)},
    "a page that checks the client": Row(
        responds(b"<!DOCTYPE html><html><head><title>Just a moment...</title>", 403),
        says=_FAILED, **_AGAIN,
    ),
    "a page of maintenance, 429": Row(
        responds(b"error code: 1015", 429, content_type="text/html"), **_LIMITED
    ),
    "a page that redirects": Row(
        responds(b"", 302, location="https://login.example.org/"), "redirect", 1,
        "the server redirects elsewhere, and documents are not sent on",
    ),
    **{
        f"status {status} of nothing": Row(
            responds(b"", status), says="the server answered with something that is not a "
            "completion", **_AGAIN,
        )
        for status in (200, 202, 204)
    },
    "Bedrock, throttled": fails_for_a_while(nested(500, "Too many tokens, please wait")),
    "an answer within a failure": Row(
        raw_body(lambda b: json.dumps({"statusCode": 502, "body": b.decode()}).encode()),
        says=_FAILED, **_AGAIN,
    ),
    "a flat error in a 200": Row(flat(200, "too many").behave(), says=_FAILED, **_AGAIN),
    "a detail in a 200": fails_for_a_while(Fault(200, {"detail": "model overloaded"})),
    "an error event": Row(
        streamed(_piece("HEAD"), 'event: error\ndata: {"message": "busy", "code": 503}'),
        says=_FAILED, **_AGAIN,
    ),
    **{
        f"ended by {reason}": Row(ended(reason), says=_NO_ANSWER, **_AGAIN)
        for reason in (
            *("abort", "insufficient_system_resource", "network_error", "timeout", "time_limit"),
            "load",
        )
    },
    **{
        f"ended by {reason}": Row(
            ended(reason), "malformed", 2,
            "the model wrote nothing that its provider passes on", (0.0,),
        )
        for reason in ("OTHER", "function_call_filter: MALFORMED_FUNCTION_CALL")
    },
    **{
        f"Groq, {code} in a {status}": Row(
            nested(status, f"See {code} for more details.", code).behave(), "malformed", 3,
            "the model wrote no valid JSON", (0.0, 0.0),
        )
        for code, status in (("failed_generation", 400), ("output_parse_failed", 200))
    },
    "Cloudflare, an answer with errors": Row(
        raw_body(lambda b: b'{"errors": [{"message": "JSON Mode couldn\'t be met"}], "a": %s}' % b),
        "malformed", 3, "the model wrote no valid JSON", (0.0, 0.0),
    ),
    "OpenRouter, a provider's slip": Row(
        changes(partial(chosen, finish_reason="error", native_finish_reason="MALFORMED_RESPONSE")),
        "malformed", 2, "the model wrote nothing that its provider passes on", (0.0,),
    ),
    "a whole answer, ended by abort": Row(
        edited(lambda value: value["choices"][0].update(finish_reason="abort"))
    ),
    "ended by the context": Row(
        ended("model_context_window_exceeded"), "truncated", 1, "the answer was cut off"
    ),
    **{
        f"ended by {reason}": Row(ended(reason), "truncated", 1, "the answer was cut off")
        for reason in ("max_output_tokens", "token_limit", "ERROR_LIMIT", "repetition")
    },
    "events that break off": Row(streamed(_piece("HEAD")), **_CUT_OFF),
    "events that break off in one": Row(
        streamed(": waiting", _piece("HEAD"), 'data: {"choi'), **_CUT_OFF
    ),
    "whole events without an end": Row(streamed(_piece("HEAD"), _piece("REST"))),
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
        f"ended by {reason!r}": Row(
            edited(partial(chosen, finish_reason=reason))
        )
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

SERVER_ROWS = {**WAITS, **REFUSED, **LIMITED, **RECORDS, **PASSING, **FORMS}
