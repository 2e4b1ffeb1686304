"""Texts of the user in requests: instructions that are added to a prompt, and whole prompts."""

from __future__ import annotations

import re
from pathlib import Path

from labeler.errors import UsageError
from labeler.judges.judge import Judge
from labeler.judges.prompting import OWN, Prompt, parse_prompt

MOST_CHARACTERS = 10_000
"""Of instructions: every request and every label holds them."""
_MOST_OF_PROMPT = 100_000
_TEXT_FILE = re.compile(r"\S+\.(?:md|txt)", re.IGNORECASE)
_PUBLISHED = re.compile(r"(?:[\w-]+/)?v\d+")


def read_instructions(given: str | Path | None) -> str:
    """Return instructions, given as a text or as a file; "" without any.

    Raises:
        UsageError: the file cannot be read, or the text is empty or too long.
    """
    if given is None:
        return ""
    path = _file_of(given)
    text = str(given) if path is None else _read("--instructions", path)
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    where = f"--instructions{'' if path is None else f' {path}'}"
    if not text:
        raise UsageError(f"{where} is empty: give domain rules, or leave the option out")
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{where} has {len(text):,} characters, and {MOST_CHARACTERS:,} are allowed: every "
            "request holds them; a whole prompt of your own is --prompt FILE"
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{where} is not Unicode text: {error.reason}") from None
    return text


def prompt_file(prompt: str | Path) -> Path | None:
    """Return the file of a user's own prompt; ``None`` for the name of a prompt of the package."""
    return None if _PUBLISHED.fullmatch(str(prompt)) else _file_of(prompt)


def read_prompt(path: Path, profile: str) -> Prompt:
    """Read a whole prompt of the user for a profile.

    Raises:
        UsageError: it cannot be read, is too long, or lacks a part or a placeholder.
    """
    text = _read("--prompt", path)
    if len(text) > _MOST_OF_PROMPT:
        raise UsageError(
            f"--prompt {path} has {len(text):,} characters, and {_MOST_OF_PROMPT:,} are allowed"
        )
    try:
        return parse_prompt(f"{OWN}/{profile}", text)
    except UsageError as error:
        raise UsageError(
            f"--prompt {path}: {error}; 'labeler prompt {profile}/v1' prints one to begin with"
        ) from None


def require_reader(judge: Judge, option: str) -> None:
    """Check that a judge reads prompts.

    Raises:
        UsageError: it decides by rules of its own.
    """
    if not getattr(judge, "reads_prompts", True):
        raise UsageError(
            f"judge {judge.spec} takes no {option}: it reads no prompt; use a model, such as "
            "--judge openai:MODEL"
        )


def _file_of(given: str | Path) -> Path | None:
    """Return the file that is given: a path, an existing file, or a name such as ``rules.md``."""
    try:
        is_file = isinstance(given, Path) or Path(given).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null character
        is_file = False
    return Path(given) if is_file or _TEXT_FILE.fullmatch(str(given)) else None


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        fault = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read {option} {path}: {fault}") from None
