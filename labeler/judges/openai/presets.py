"""Judges behind other providers that speak OpenAI's chat completions API.

They differ in the row of :data:`~labeler.judges.providers.PROVIDERS` alone.
"""

from __future__ import annotations

from labeler.judges.openai.judge import OpenAIJudge


class MistralJudge(OpenAIJudge):
    """Labels records with a model of Mistral's API."""

    provider = "mistral"


class OllamaJudge(OpenAIJudge):
    """Labels records with a model of Ollama, on this machine unless another address is given."""

    provider = "ollama"
