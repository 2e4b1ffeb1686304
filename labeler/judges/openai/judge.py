"""Judges behind OpenAI's chat completions API, or any server that speaks it."""

from __future__ import annotations

from labeler.judges.openai.client import (
    WIRE_ERRORS,
    Server,
    headers_of,
    may_be_charged,
    observed_error,
)
from labeler.judges.openai.completion import parse_completion
from labeler.judges.openai.hosted import HostedJudge
from labeler.judges.openai.preflight import Preflight, preflight
from labeler.judges.openai.request import request_body
from labeler.judges.openai.spec import OpenAISpec
from labeler.judges.openai.wire import FailedRequest, Reply, Request


class OpenAIWire:
    """Chat completions through openai."""

    errors = WIRE_ERRORS

    def __init__(self, server: Server, spec: OpenAISpec) -> None:
        self._chat = server.open_chat(spec.timeout)

    async def send(self, asked: Request) -> Reply:
        """Request a completion."""
        body = request_body(*asked[:4], cached=asked.cached)
        # Some servers send an event stream unless they are asked for none.
        response = await self._chat.send({**body, "stream": False})
        completion = parse_completion(response.content)
        if completion is None or completion.error is not None:
            response.spoil()  # as after an error status
        return Reply(completion, response.headers)

    def observe(self, error: Exception) -> FailedRequest:
        """Describe an error."""
        return FailedRequest(observed_error(error), may_be_charged(error), headers_of(error))

    async def look_up(self, model: str) -> Preflight:
        """Look the model up."""
        return await preflight(self._chat.client, model)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._chat.client.close()


class OpenAIJudge(HostedJudge):
    """Labels records with a model behind OpenAI's chat completions.

    Args:
        model: name of the model.
        settings: as for :class:`~labeler.judges.openai.hosted.HostedJudge`, such as ``api_key``,
            ``base_url`` and ``temperature``.

    Example:
        >>> judge = labeler.OpenAIJudge("MODEL", base_url="http://127.0.0.1:8000/v1")
        >>> judge.spec.model
        'MODEL'
    """

    provider = "openai"

    @staticmethod
    def wires() -> type[OpenAIWire]:
        """Return the wire."""
        return OpenAIWire


class MistralJudge(OpenAIJudge):
    """Labels records with a model of Mistral's API; arguments as for :class:`OpenAIJudge`.

    Example:
        >>> labeler.MistralJudge("MODEL", api_key="key").spec.model
        'MODEL'
    """

    provider = "mistral"


class OllamaJudge(OpenAIJudge):
    """Labels records with a model of Ollama, on this machine unless another address is given.

    Arguments as for :class:`OpenAIJudge`; no key is needed.

    Example:
        >>> labeler.OllamaJudge("qwen3:8b").spec.model
        'qwen3:8b'
    """

    provider = "ollama"
