"""Address, key and options of Amazon Bedrock's Converse API."""

from __future__ import annotations

from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

BEDROCK = Provider(
    base_url="https://bedrock-runtime.{region}.amazonaws.com",
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    address_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    region_variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
    modes=NATIVE_MODES,
    lacks=OPENAI_ONLY | {"seed"},
)
