"""Programs of their own, without the second that each needs to import the package.

One process imports the package and forks for each program. A program has its own folder,
environment and streams, as if the shell had started it: ``python warm.py SOCKET ARGUMENT...`` runs
``labeler`` with the arguments, and ``python warm.py SOCKET -c CODE`` runs Python.
"""

from __future__ import annotations

import json
import os
import socket
import sys


def ask(path: str, arguments: list[str]) -> int:
    """Have a program run with this process's folder, environment and streams."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        what = json.dumps([arguments, os.getcwd(), dict(os.environ)])  # noqa: PTH109
        socket.send_fds(server, [b"\0"], [0, 1, 2])
        server.sendall(f"{what}\n".encode())
        return int(server.recv(4) or 70)


def serve(listener: socket.socket) -> None:
    """Fork for each program, until this process is ended."""
    from contextlib import suppress
    from importlib import import_module
    from pkgutil import walk_packages
    from signal import SIG_IGN, SIGCHLD, signal

    import pyarrow.parquet  # noqa: F401

    import labeler

    for module in walk_packages(labeler.__path__, "labeler."):
        with suppress(Exception):  # a package that is not installed
            import_module(module.name)
    signal(SIGCHLD, SIG_IGN)  # nobody waits for those that are forked
    while True:
        client, _ = listener.accept()
        with client:
            if os.fork() == 0:
                run(client)


def run(client: socket.socket) -> None:
    """Be the program, and report its exit code."""
    from signal import SIG_DFL, SIGCHLD, signal

    code = 70
    signal(SIGCHLD, SIG_DFL)
    try:
        _, streams, _, _ = socket.recv_fds(client, 1, 3)
        with client.makefile("rb") as told:
            arguments, folder, environment = json.loads(told.readline())
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = ["", *environment.get("PYTHONPATH", "").split(os.pathsep)]
        code = program(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        client.sendall(str(code).encode())
        os._exit(0)


def program(arguments: list[str]) -> int:
    """Run the command line or code, and return the exit code."""
    import traceback
    import warnings

    from labeler.__main__ import main

    try:
        if arguments[0] == "-c":
            warnings.simplefilter("error")
            exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
        else:
            sys.argv = ["labeler", *arguments]
            main()
    except SystemExit as end:
        return int(end.code or 0)
    except BaseException:  # noqa: BLE001 - shown, as the interpreter does
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[2:]:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        print(flush=True)  # noqa: T201 - programs can be asked for
        serve(listening)
