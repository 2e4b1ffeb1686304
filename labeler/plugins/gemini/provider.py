"""Address, key and options of Google's Gemini API."""

from __future__ import annotations

from labeler.judges.providers import NATIVE_MODES, OPENAI_ONLY, Provider

GEMINI = Provider(
    base_url="https://generativelanguage.googleapis.com",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    address_variable="GOOGLE_GEMINI_BASE_URL",
    modes=NATIVE_MODES,
    preset={"prompt_cache": "off"},  # it caches unasked
    lacks=OPENAI_ONLY | {"prompt_cache"},
)
