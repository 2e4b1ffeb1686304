"""Serves a small language model on loopback by llama.cpp's own OpenAI-compatible server.

A process of its own: it prints the address once it listens, and ends when its standard input does,
so that whatever ends the tests ends it too.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any


def open_server(weights: str, name: str) -> Any:
    """Load the weights and listen on a free port.

    Args:
        weights: a GGUF file.
        name: what the server calls the model, whatever a request calls it.
    """
    xllamacpp = import_module("xllamacpp")  # it has no types, and is not installed everywhere
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {name}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.offline, params.models_autoload, params.ui = True, False, False
    # One answer at a time on one thread: nothing depends on how requests happen to be batched.
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    # What a request shares with the one before is not read anew: the instructions are most of it,
    # and take twelve seconds.
    params.cache_prompt, params.cache_ram_mib = True, 0
    params.n_ctx = 4096
    params.warmup = False
    return xllamacpp.Server(params)


def main() -> None:
    """Serve until standard input ends."""
    server = open_server(*sys.argv[1:3])
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # an answer that is being written would keep the process for as long as it takes


if __name__ == "__main__":
    main()
