"""Find turns of phrase that read as translated; ``scripts/check lint`` runs it.

python scripts/banned_turns.py
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TURNS = {
    r"beside(?! (the point|it\b))": "next to",
    r"anew": "again",
    r"of which": "name the thing, or begin a new sentence",
    r"(is|are|was|were) told": "gets, reads, is named",
    r"go(es|ing|ne)? on with(out)?": "continue with",
    r"otherwise than": "differently from",
    r"none of that": "name the thing",
    r"there is none of": "has no",
    r"what is no": "name the thing",
    r"whoever": "anyone who",
    r"of its own accord": "by itself",
    r"by default that of": "by default from",
    r"(?<!there\s)(is|are|was|were) no (?!longer|fewer|more|less|such|or|and)\w+": "is not a",
}
"""Each turn, and what to write instead. A space also matches a line break inside a text."""
BREAK = r"\s*[\"']?\s+(?:# |f?[\"'])?"
"""White space, and what stands between the lines of a comment or of adjacent literals."""


def banned(text: str) -> list[tuple[int, str, str]]:
    """Return line, words and the remedy of each banned turn in a text."""
    found = [
        (text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), remedy)
        for turn, remedy in TURNS.items()
        for match in re.finditer(rf"\b{turn.replace(' ', BREAK)}\b", text, re.IGNORECASE)
    ]
    return sorted(found)


def main() -> None:
    """Print each banned turn in code and pages; exit with 1 if there is any."""
    pages = [*ROOT.glob("labeler/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    lines = [
        f"{path.relative_to(ROOT)}:{line}: {words!r}: {remedy}"
        for path in sorted(pages)
        for line, words, remedy in banned(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(lines))
    raise SystemExit(bool(lines))


if __name__ == "__main__":
    main()
