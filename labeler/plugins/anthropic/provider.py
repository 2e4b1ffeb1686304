"""Address, key and options of Anthropic's Messages API."""

from __future__ import annotations

from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

ANTHROPIC = Provider(
    base_url="https://api.anthropic.com",
    key_variables=("ANTHROPIC_API_KEY",),
    address_variable="ANTHROPIC_BASE_URL",
    modes=NATIVE_MODES,
    requires_cap=True,
    lacks=OPENAI_ONLY | {"seed"},
)
