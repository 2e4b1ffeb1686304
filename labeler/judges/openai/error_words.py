"""Words by which the errors of servers are known, in codes and messages, as patterns by meaning.

A message may quote a document, so none of them shows alone that an error concerns every record.
"""

from __future__ import annotations

import re


def any_of(*texts: str) -> re.Pattern[str]:
    """Return a pattern that finds any of some, in any case."""
    return re.compile("|".join(texts), re.IGNORECASE)


QUOTA = any_of(
    "insufficient_(user_)?quota", "billing_(hard_limit|not_active)",  # OpenAI, new-api
    "exceeded_current_quota", "arrearage", "FreeTierOnly", "budget_exceeded", "AccountOverdue",
    "token_quota_reached",  # watsonx
)  # fmt: skip
NO_BALANCE = any_of(
    "(insufficient|not enough) (balance|credits|funds)", "balance is (insufficient|too low)",
    "no credit", "credit limit exceeded", "budget has been exceeded|over budget",  # LiteLLM
    "(doesn't have any|used all available|run out of) credits", "key limit exceeded",
    "reached your specified API usage limits", "monthly spend(ing)? limit",
    "(余额|额度)不足", "额度已用尽",  # Zhipu, new-api
    "billing to be enabled", "api calls / month", "service quota",  # Vertex, Cohere, Bedrock
)  # fmt: skip
BURST = any_of("request too large")
LIMITED = any_of("rate_limit_(exceeded|error)", "secondary rate limit", "call volume quota")
BUSY = any_of(
    "overloaded", "experiencing high", "slow.?down",  # Gemini, Azure, OpenAI
    "(queue is|server) (full|busy)", "pending requests exceeded",  # SGLang, Ollama
    "request limit reached", "capacity exceeded",  # NVIDIA, Groq
)  # fmt: skip
"""What servers write that take more requests again once fewer are under way."""
TOO_LONG = any_of(
    "string_above_max_length", "context.?(length|size|window)", "input token count", "input length",
    "(prompt|input)( is too (long|large)|.{0,40} exceed.{0,30}(max|limit))",
    "too many tokens(?!, please wait)", "less than max_seq_len",  # not Bedrock's rate limit
    "tokens must be at least 1, got -",  # vLLM, whose own cap is what the prompt leaves
    "maximum (model|prompt|(supported )?sequence) length", "model token limit", "prompt 超长",
    "reduce the length of the (messages|prompt)", "tokens_limit_reached",  # Groq, GitHub
    "max(imum)? (input tokens|token limit)", "total (number of )?tokens .{0,30}exceed",
    r"\binputs\W{1,3}(tokens \+ |must have less than )",  # text-generation-inference
)  # fmt: skip
WRONG_KEY = any_of(
    "api.?key (is )?(not valid|invalid)", "(api.?key|bearer token) (has )?expired",
    "(invalid|incorrect) api.?key", "api.?key is .{0,20}blocked", "authentication failed",
    "security token .{0,30}is (invalid|expired)",
    "reported as leaked", "unregistered callers", "organization_restricted",  # Gemini, Groq
    "authentication error", r"invalid access token|invalid token\W*$",  # Cloudflare, Databricks
    "no_db_connection",  # LiteLLM's proxy looks an unknown key up where it has no database
)  # fmt: skip
NO_ACCESS = any_of("missing.scope", "key_model_access_denied", "model_terms_required")
"""What OpenAI, LiteLLM and Groq write of a key that lacks a permission."""
UNKNOWN_FIELD = (
    r"(unknown (name|field|parameter)|unrecognized request argument supplied|not permitted, field"
    r"|does not support parameters|'extra_forbidden', 'loc': \['body',)\W{0,9}"
)
UNKNOWN_CAP = any_of(f"{UNKNOWN_FIELD}max_completion_tokens")
UNKNOWN = any_of(rf"{UNKNOWN_FIELD}(?P<field>[a-z]\w{{0,63}})")
"""What servers write that do not know a field of the request."""
FILTERED = any_of(
    "content.?(filter|policy|management policy)", "invalid_prompt", "Responsible ?AI",
    "data_?inspection_?failed", "violat(es|ing) (our )?usage (guidelines|policy)",  # DashScope
    "content exists risk", "new_sensitive", "input was flagged",  # DeepSeek, MiniMax, OpenRouter
    "(unsafe or sensitive|inappropriate|prohibited) content", "不安全或敏感内容",  # Zhipu
    "guardrail", "moderation policy", "considered high risk",  # LiteLLM, OpenAI, Moonshot
    "due to security configurations", "sensitive ?(content ?detected|information)",  # Cloudflare
    "prompt pattern is blocked", "match any allowed pattern", "content safety",  # Kong, Azure
)  # fmt: skip
SLIPPED = any_of(
    "json_validate_failed", "(tool_use|output_parse)_failed", "failed_generation",  # Groq
    "JSON mode couldn.t be met",  # Cloudflare
)  # fmt: skip
HIGH_CAP = any_of(r"max_tokens: \d+ >", "tokens you requested exceeds", "maxOutputTokens value")
PARAMETER = any_of("unsupported_(parameter|value)", "unknown_parameter")
GRAMMARS = (
    "grammar", "guided.?(json|decoding|generation)", "constrained (decoding|generation)",
    "json.?schema", "unsupported (schema )?keyword", "unimplemented keys", "too many states",
    "required for format", "requires --jinja",
)  # fmt: skip
"""What servers write that cannot make a grammar of a schema, also with status 500."""
FORMAT_NAMES = any_of(
    "(response|output).?(format|schema)", "json.?(schema|object|mode)", "tool.?(choice|calling)",
    "support.{0,40} tool", "function.?(call|declaration)", "structured.?output",
    "handle the requested parameters", *GRAMMARS,
    "(invalid|unsupported|complex|convert|compil|pars).{0,40} schema",
    "schema.{0,60}(invalid|support|complex|too |convert|compil|pars)",
)  # fmt: skip
"""What servers write that do not know an output mode, or cannot keep to the schema in it."""
NO_MODEL = any_of(
    "model_not_(found|supported)", r"invalid.model( name)?\b",
    r"\bmodel\b.{0,120}(does not exist|not found|not supported by any provider)",  # Hugging Face
    "model identifier is invalid", "not a valid model ID", "no such model",
    "model ID .{1,200} with on-demand throughput",
    "DeploymentNotFound", "model_(decommissioned|not_available)",  # Azure; Groq, Together
)  # fmt: skip
NO_ADDRESS = any_of("unexpected endpoint or method")  # LM Studio, in a 200
FAILING = any_of(
    "no healthy deployments", "model (has crashed|unloaded)",  # LiteLLM, LM Studio
    r"<title>just a moment\.",  # Cloudflare checks the client
)  # fmt: skip
"""What servers write that fail and call it the request's fault."""
