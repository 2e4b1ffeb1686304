"""The one address that is named is the only one that is spoken to, or even looked up."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeler
from labeler.errors import FatalJudgeError
from support.audit import AUDIT, Contact
from wire.provider import Provider, error

EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
TESTS = Path(__file__).parents[1]

HARMLESS = frozenset({"socket.__new__", "socket.bind"})
"""They tell nobody anything. A library binds one on import, to see whether there is IPv6."""

ROWS = [
    {"id": str(n), "question": f"Q {n}?", "documents": [f"Fact {n}."], "response": f"Fact {n}."}
    for n in range(8)
]


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """A server that every variable of the environment points to."""
    with Provider() as provider:
        for name, value in trapped(provider, tmp_path).items():
            monkeypatch.setenv(name, value)
        yield provider


def trapped(provider: Provider, folder: Path) -> dict[str, str]:
    """Variables that the libraries, or the libraries below them, are known to obey."""
    address = f"http://user:pass@127.0.0.1:{provider.port}"
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "SOCKS_PROXY")
    netrc = folder / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password from-environment\n")
    netrc.chmod(0o600)
    return {
        **dict.fromkeys(proxies, address),
        **{name.lower(): address for name in proxies},
        "NO_PROXY": "",
        "no_proxy": "",
        "OPENAI_BASE_URL": provider.url,
        "OPENAI_CUSTOM_HEADERS": "x-extra: from-environment",
        "OPENAI_ORG_ID": "org-from-environment",
        "OPENAI_PROJECT_ID": "proj-from-environment",
        "OPENAI_ADMIN_KEY": "sk-admin-from-environment",
        "OPENAI_WEBHOOK_SECRET": "secret-from-environment",
        "NETRC": str(netrc),
        "SSL_CERT_FILE": str(folder / "nowhere.pem"),
        "SSL_CERT_DIR": str(folder / "nowhere"),
        "REQUESTS_CA_BUNDLE": str(folder / "nowhere.pem"),
    }


def run(url: str) -> labeler.Labels:
    """Label a few rows by a server, and keep nothing."""
    judge = labeler.OpenAIJudge("model-1", api_key="sk-1", base_url=url)
    return labeler.label(ROWS, judge=judge, store=labeler.MemoryStore())


def talk(contacts: list[Contact]) -> set[tuple[str, object]]:
    """What was said to anyone, by event and whom."""
    return {(event, what) for event, what in contacts if event not in HARMLESS}


def test_a_run_looks_up_the_host_of_the_base_url_and_no_other_name(trap: Provider) -> None:
    """Whatever proxy, address, account or certificate the environment names."""
    with Provider() as provider, AUDIT.contacts() as contacts:
        outcomes = run(provider.url.replace("127.0.0.1", "localhost"))
    assert [outcome.kind for outcome in outcomes] == ["label"] * len(ROWS)
    said = {(event, *what[:2]) for event, what in talk(contacts) if isinstance(what, tuple)}
    looked_up = ("socket.getaddrinfo", "localhost", provider.port)
    reached = {("socket.connect", host, provider.port) for host in ("127.0.0.1", "::1")}
    assert looked_up in said
    assert said - {looked_up} <= reached
    assert trap.calls == []
    assert "from-environment" not in repr([call.headers for call in provider.calls])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_cannot_send_a_run_elsewhere(trap: Provider, status: int) -> None:
    """Not with a redirect, whichever kind, nor with an address in another header."""
    moved = {
        "location": f"{trap.url}/chat/completions",
        "alt-svc": f'h2="127.0.0.1:{trap.port}"',
        "link": f"<http://127.0.0.1:{trap.port}/>; rel=preconnect",
        "refresh": f"0; url={trap.url}",
    }
    with (
        Provider(lambda _: error(status, headers=moved)) as provider,
        AUDIT.contacts() as contacts,
        pytest.raises(FatalJudgeError, match="redirects elsewhere"),
    ):
        run(provider.url)
    assert talk(contacts) == {("socket.connect", ("127.0.0.1", provider.port))}
    assert trap.calls == []


def test_the_watch_sees_a_connection() -> None:
    """Connected sockets and looked-up names are written down, or nothing above would mean much."""
    with socket.create_server(("127.0.0.1", 0)) as listening, AUDIT.contacts() as contacts:
        port = listening.getsockname()[1]
        socket.create_connection(("localhost", port)).close()
    said = talk(contacts)
    assert ("socket.connect", ("127.0.0.1", port)) in said
    assert {event for event, _ in said} == {"socket.connect", "socket.getaddrinfo"}


COMMANDS = """
import json, sys
from support.audit import AUDIT
AUDIT.install()
with AUDIT.contacts() as contacts:
    from labeler.cli import run
    codes = []
    for arguments in json.loads(sys.argv[1]):
        sys.argv = ["labeler", *arguments]
        codes.append(run())
        print("", file=sys.stderr)
print(json.dumps([codes, contacts], default=repr), file=sys.stderr)
"""


def watched(
    folder: Path, environment: dict[str, str], *commands: list[str]
) -> tuple[list[int], list[Contact]]:
    """Run commands in one program; exit codes, and what was asked of sockets, imports included."""
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "LABELER_"))}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        cwd=folder,
        env=kept | environment | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    codes, contacts = json.loads(done.stderr.splitlines()[-1])
    # JSON has no tuples, and an address is one.
    return codes, [
        Contact(e, tuple(what) if isinstance(what, list) else what) for e, what in contacts
    ]


LABEL = ["label", str(EXAMPLES), "-o", "labels.jsonl"]


def test_a_command_with_a_model_connects_to_its_server_alone(tmp_path: Path) -> None:
    """From the first import to the last request."""
    with Provider() as trap, Provider() as provider:
        asking = [*LABEL, "--judge", "openai", "--model", "m", "--base-url", provider.url]
        codes, contacts = watched(tmp_path, trapped(trap, tmp_path), asking)
    assert codes == [0]
    assert talk(contacts) == {("socket.connect", ("127.0.0.1", provider.port))}
    assert trap.calls == []
    assert len(provider.calls) > 0


def test_the_embedded_judge_speaks_to_nobody(tmp_path: Path) -> None:
    """Its event loop has a pair of sockets for itself, which have no address."""
    with Provider() as trap:
        environment = trapped(trap, tmp_path)
        codes, contacts = watched(tmp_path, environment, [*LABEL, "--judge", "embedded"])
    assert codes == [0]
    assert set(contacts) == {Contact("socket.__new__", socket.AF_UNIX)}
    assert trap.calls == []


def test_reading_labels_asks_nothing_of_sockets(tmp_path: Path) -> None:
    """No event at all: from a store and from a file, by every command that reads."""
    watched(tmp_path, {}, [*LABEL, "--judge", "embedded"])
    with Provider() as trap:
        codes, contacts = watched(
            tmp_path,
            trapped(trap, tmp_path),
            *(
                command
                for labels in (".labeler", "labels.jsonl")
                for command in (["metrics", labels], ["show", labels, "log-rotation"])
            ),
            ["store", "export", "-o", "all.jsonl"],
            ["store", "import", "all.jsonl", "--store", "elsewhere"],
            ["prompt", "--rows", str(EXAMPLES)],
            ["prompt", "--schema", "label-trace/v1"],
        )
    assert set(codes) == {0}
    assert contacts == []
    assert trap.calls == []
