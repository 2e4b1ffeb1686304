"""The API key and documents go to the server that is named, and to no other place."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeler
from labeler.errors import FatalJudgeError
from support.audit import AUDIT, Contact
from support.command import Command
from wire.provider import Provider, Script, error
from wire.runs import labeling, process, row_file, rows, settings

KEY = "sk-SENTINEL-KEY-0123456789"
DOCUMENT = "The vault of SENTINEL-DOCUMENT is open."


def echo_of_the_key(status: int) -> Script:
    """A server that repeats the key, and the documents, in its errors."""
    headers = dict.fromkeys(("x-request-id", "www-authenticate", "location"), KEY)
    words = f"Incorrect API key provided: {KEY}: "
    return lambda call: error(status, KEY, f"{words}{call.data}", param=KEY, headers=headers)


ENDS: dict[str, tuple[Script, int]] = {
    "success": ((), 0),
    "a refused key": (["401"] * 9, 2),
    "a refused key, repeated": (echo_of_the_key(401), 2),
    "a bad request, the key repeated": (echo_of_the_key(400), 1),
    "malformed answers": (["malformed"] * 9, 1),
    "broken contracts": (["unknown-key"] * 9, 1),
    "answers of another kind": (["html", "refusal", "bad-json", "deep-json"], 1),
    "a redirect": (["redirect"] * 9, 1),
    "a redirect, the key repeated": (echo_of_the_key(307), 1),
}
DOCUMENT_HOLDERS = {"rows.jsonl", "labels.jsonl", ".labeler/cache.db"}


def forms(secret: str) -> list[bytes]:
    """A secret as it might be written."""
    plain = secret.encode()
    return [plain, plain.hex().encode(), base64.b64encode(plain).rstrip(b"=")[:-1], plain[::-1]]


def unpacked(content: bytes) -> bytes:
    """The content, and each part of it that is compressed as the store does it."""
    parts, start = [content], content.find(b"\x78")
    while start >= 0:
        with contextlib.suppress(zlib.error):
            parts.append(zlib.decompressobj().decompress(content[start:]))
        start = content.find(b"\x78", start + 1)
    return b"\n".join(parts)


def holders(secret: str, folder: Path, *spoken: str) -> list[str]:
    """Files of a folder, and outputs, in which a secret stands."""
    files = (path for path in folder.rglob("*") if path.is_file())
    contents = {str(path.relative_to(folder)): unpacked(path.read_bytes()) for path in files}
    contents |= {f"output {number}": text.encode() for number, text in enumerate(spoken)}
    held = forms(secret)
    return [name for name, text in contents.items() if any(form in text for form in held)]


def arguments(folder: Path, provider: Provider, *more: str) -> list[str]:
    """The arguments of the command that labels two rows, which are written for it."""
    secret = [{**row, "documents": [DOCUMENT]} for row in rows(2)]
    return labeling(provider, row_file(folder, secret), *more)


@pytest.fixture
def command(
    labeler_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Command]:
    """The command with a key and everybody's logging on, as a program around it may have it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    root, log = logging.getLogger(), logging.FileHandler(tmp_path / "debug.log")
    level = root.level
    root.addHandler(log)
    root.setLevel(logging.DEBUG)
    logging.getLogger("there").debug("the log is on")
    yield labeler_command
    root.setLevel(level)
    root.removeHandler(log)
    log.close()


@pytest.mark.parametrize(("script", "code"), ENDS.values(), ids=ENDS.keys())
def test_key_and_documents_are_written_nowhere_else(
    tmp_path: Path, command: Command, script: Script, code: int
) -> None:
    """The key in no store, label file, log or output, though the server got it.

    Documents stand in the rows, the labels and the store alone.
    """
    with Provider(script) as provider:
        ended, *said = command(*arguments(tmp_path, provider, "--concurrency", "1"))
    logging.getLogger("aiohttp.client").warning("sent with %s", KEY)  # as a library may log
    assert ended == code, said
    assert {call.headers["authorization"] for call in provider.calls} == {f"Bearer {KEY}"}
    assert "the log is on" in (tmp_path / "debug.log").read_text()
    assert (tmp_path / ".labeler" / "cache.db").is_file()
    assert holders(KEY, tmp_path, *said) == []
    found = {name.partition("-")[0] for name in holders(DOCUMENT, tmp_path, *said)}
    assert found == DOCUMENT_HOLDERS if code == 0 else found <= DOCUMENT_HOLDERS


def test_a_process_ends_without_a_word_of_the_key(tmp_path: Path) -> None:
    """Also where what is left of it is closed after the last line."""
    with Provider(echo_of_the_key(401)) as provider:
        done = subprocess.run(
            process(arguments(tmp_path, provider)),
            cwd=tmp_path,
            env=settings() | {"OPENAI_API_KEY": KEY, "PYTHONDEVMODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert holders(KEY, tmp_path, done.stdout, done.stderr) == []


def test_the_key_survives_in_no_traceback(tmp_path: Path) -> None:
    """Not even in one that shows the variables of every frame, as crash reporters do."""
    with Provider(["401"]) as provider:
        judge = labeler.OpenAIJudge("m", api_key=KEY, base_url=provider.url)
        with pytest.raises(labeler.LabelerError) as caught:
            labeler.label(rows(1), judge=judge, store=tmp_path / "s")
    shown = [repr(frame.f_locals) for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert any("OpenAIJudge" in text for text in shown)
    assert not any(f"'{KEY}'" in text or f"Bearer {KEY}" in text for text in shown)


EXAMPLES = Path(__file__).parents[2] / "examples" / "rows.jsonl"
TESTS = Path(__file__).parents[1]

HARMLESS = frozenset({"socket.__new__", "socket.bind"})
"""They tell nobody anything. A library binds one on import, to see whether there is IPv6."""


@pytest.fixture
def trap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """A server that every variable points to that the libraries below are known to obey."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login user password from-environment\n")
    netrc.chmod(0o600)
    with Provider() as provider:
        address = f"http://user:pass@127.0.0.1:{provider.port}"
        proxies = [f"{name}_PROXY" for name in ("HTTP", "HTTPS", "ALL", "FTP", "SOCKS")]
        for name, value in {
            **dict.fromkeys([*proxies, *map(str.lower, proxies)], address),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
            "OPENAI_BASE_URL": provider.url,
            "OPENAI_CUSTOM_HEADERS": "x-extra: from-environment",
            "OPENAI_ORG_ID": "org-from-environment",
            "OPENAI_PROJECT_ID": "proj-from-environment",
            "OPENAI_ADMIN_KEY": "sk-admin-from-environment",
            "OPENAI_WEBHOOK_SECRET": "secret-from-environment",
            "NETRC": str(netrc),
            "SSL_CERT_FILE": str(tmp_path / "nowhere.pem"),
            "SSL_CERT_DIR": str(tmp_path / "nowhere"),
            "REQUESTS_CA_BUNDLE": str(tmp_path / "nowhere.pem"),
        }.items():
            monkeypatch.setenv(name, value)
        yield provider


def labeled(url: str) -> list[str]:
    """The kinds of what a server makes of a few rows."""
    judge = labeler.OpenAIJudge("model-1", api_key="sk-1", base_url=url)
    return [one.kind for one in labeler.label(rows(8), judge=judge, store=labeler.MemoryStore())]


def talk(contacts: list[Contact]) -> set[tuple[str, object]]:
    """What was said to anyone, by event and whom."""
    return {(event, what) for event, what in contacts if event not in HARMLESS}


def test_a_run_looks_up_the_host_of_the_base_url_and_no_other_name(trap: Provider) -> None:
    """Whatever proxy, address, account or certificate the environment names."""
    with Provider() as provider, AUDIT.contacts() as contacts:
        assert labeled(provider.url.replace("127.0.0.1", "localhost")) == ["label"] * 8
    said = {(event, *what[:2]) for event, what in talk(contacts) if isinstance(what, tuple)}
    looked_up = ("socket.getaddrinfo", "localhost", provider.port)
    reached = {("socket.connect", host, provider.port) for host in ("127.0.0.1", "::1")}
    assert looked_up in said
    assert said - {looked_up} <= reached
    assert trap.calls == []
    assert "from-environment" not in repr([call.headers for call in provider.calls])


@pytest.mark.parametrize("status", [301, 307])
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
        labeled(provider.url)
    assert talk(contacts) == {("socket.connect", ("127.0.0.1", provider.port))}
    assert trap.calls == []


COMMAND = """
import json, sys
from support.audit import AUDIT
AUDIT.install()
with AUDIT.contacts() as contacts:
    from labeler.cli import run
    code = run()
print(json.dumps([code, contacts], default=repr), file=sys.stderr)
"""


LABEL = ["label", str(EXAMPLES), "-o", "labels.jsonl"]


def test_a_command_with_a_model_connects_to_its_server_alone(
    trap: Provider, tmp_path: Path
) -> None:
    """From the first import to the last request."""
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    with Provider() as provider:
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *labeling(provider, EXAMPLES)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
    code, contacts = json.loads(done.stderr.splitlines()[-1])
    said = {(event, *what) for event, what in contacts if event not in HARMLESS}
    assert (code, said) == (0, {("socket.connect", "127.0.0.1", provider.port)})
    assert trap.calls == []
    assert len(provider.calls) > 0


def test_the_embedded_judge_speaks_to_nobody(trap: Provider, labeler_command: Command) -> None:
    """Its event loop has a pair of sockets for itself, which have no address."""
    with AUDIT.contacts() as contacts:
        assert labeler_command(*LABEL, "--judge", "embedded")[0] == 0
    assert set(contacts) == {Contact("socket.__new__", socket.AF_UNIX)}
    assert trap.calls == []


def test_reading_labels_asks_nothing_of_sockets(trap: Provider, labeler_command: Command) -> None:
    """No event at all: from a store and from a file, by every command that reads."""
    labeler_command(*LABEL, "--judge", "embedded")
    with AUDIT.contacts() as contacts:
        for command in (
            *(["metrics", labels] for labels in (".labeler", "labels.jsonl")),
            *(["show", labels, "log-rotation"] for labels in (".labeler", "labels.jsonl")),
            ["store", "export", "-o", "all.jsonl"],
            ["store", "import", "all.jsonl", "--store", "elsewhere"],
            ["prompt", "--rows", str(EXAMPLES)],
            ["prompt", "--schema", "label-trace/v1"],
        ):
            assert labeler_command(*command)[0] == 0
    assert (contacts, trap.calls) == ([], [])
