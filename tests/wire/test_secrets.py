"""The API key goes to the server and to no other place, however the run ends."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeler
from support.command import Command
from wire.provider import Provider, Script, error
from wire.runs import process, settings

KEY = "sk-SENTINEL-KEY-0123456789"
DOCUMENT = "The vault of SENTINEL-DOCUMENT is open."


def echo_of_the_key(status: int) -> Script:
    """A server that repeats the key in its errors, as a whole and in part."""
    return lambda call: error(
        status,
        call.headers["authorization"],
        f"Incorrect API key provided: {call.headers['authorization']}",
        param=call.headers["authorization"],
        headers={
            "x-request-id": call.headers["authorization"],
            "www-authenticate": KEY,
            "location": KEY,
        },
    )


ENDS: dict[str, tuple[Script, int]] = {
    "success": ((), 0),
    "a refused key": (["401"] * 9, 2),
    "a refused key, repeated": (echo_of_the_key(401), 2),
    "a bad request, the key repeated": (echo_of_the_key(400), 1),
    "malformed answers": (["malformed"] * 9, 1),
    "broken contracts": (["unknown-key"] * 9, 1),
    "answers of another kind": (["html", "bad-json", "deep-json", "refusal"], 1),
    "a redirect": (["redirect"] * 9, 1),
    "a redirect, the key repeated": (echo_of_the_key(307), 1),
}


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
    contents = {
        str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()
    }
    contents |= {f"output {number}": text.encode() for number, text in enumerate(spoken)}
    return [
        name
        for name, content in contents.items()
        if any(form in unpacked(content) for form in forms(secret))
    ]


def arguments(folder: Path, provider: Provider, *more: str) -> list[str]:
    """The arguments of the command that labels two rows, which are written for it."""
    rows = [
        {"id": str(n), "question": f"Q{n}?", "documents": [DOCUMENT], "response": f"R{n}."}
        for n in range(2)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asking = ["--judge", "openai", "--model", "m", "--base-url", provider.url, *more]
    return ["label", "rows.jsonl", "-o", "labels.jsonl", *asking]


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
def test_the_key_is_written_nowhere(
    tmp_path: Path, command: Command, script: Script, code: int
) -> None:
    """Not in the store, the label file, the log or an output; and the server did get it."""
    with Provider(script) as provider:
        ended, *said = command(*arguments(tmp_path, provider, "--concurrency", "1"))
    assert ended == code, said
    assert {call.headers["authorization"] for call in provider.calls} == {f"Bearer {KEY}"}
    assert "the log is on" in (tmp_path / "debug.log").read_text()
    assert (tmp_path / ".labeler" / "cache.db").is_file()
    assert holders(KEY, tmp_path, *said) == []


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


def test_documents_are_written_where_they_belong(tmp_path: Path, command: Command) -> None:
    """In the rows, the labels and the store, where the same search finds them; in no log."""
    with Provider() as provider:
        _, *said = command(*arguments(tmp_path, provider))
    found = {name.partition("-")[0] for name in holders(DOCUMENT, tmp_path, *said)}
    assert found == {"rows.jsonl", "labels.jsonl", ".labeler/cache.db"}


def test_a_key_on_the_command_line_is_no_option(tmp_path: Path, command: Command) -> None:
    """Everyone on a machine can read what a program was started with."""
    with Provider() as provider:
        code, *_ = command(*arguments(tmp_path, provider, "--api-key", "sk-2"))
    assert code == 2
    assert provider.calls == []


def test_the_key_survives_in_no_traceback(tmp_path: Path) -> None:
    """Not even in one that shows the variables of every frame, as crash reporters do."""
    with Provider(["401"]) as provider:
        judge = labeler.OpenAIJudge("m", api_key=KEY, base_url=provider.url)
        row = {"id": "1", "question": "Q?", "documents": [DOCUMENT], "response": "R."}
        with pytest.raises(labeler.LabelerError) as caught:
            labeler.label([row], judge=judge, store=tmp_path / "s")
    shown, error_seen = [], caught.value.__traceback__
    while error_seen is not None:
        shown.append(repr(error_seen.tb_frame.f_locals))
        error_seen = error_seen.tb_next
    assert any("OpenAIJudge" in text for text in shown)
    ours = [text for text in shown if f"'{KEY}'" in text or f"Bearer {KEY}" in text]
    assert ours == []
