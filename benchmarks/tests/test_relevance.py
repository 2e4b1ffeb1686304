"""The benchmark of relevance with and without the response, at a small scale."""

from __future__ import annotations

from relevance import (
    groups_of,
    groups_table,
)


def test_blind_relevance_is_equal_over_equal_retrieval() -> None:
    """With the response, a judge that looks at it differs, and its figures say so."""
    documents = ["Crimson paint covers the door. Eleven hinges carry it."]
    rows = [
        {"question": f"What about door {n}?", "documents": documents, "response": text}
        for n in range(6)
        for text in ("Crimson is what covers it.", "It is unknown.")
    ]
    pairs = groups_of([*rows, {**rows[0], "question": "Another?"}])
    assert len(pairs) == 6
    lines, kept = groups_table(pairs)
    assert kept
    found = {line.split(" | ")[0].strip("| "): line.strip(" |").split(" | ")[1:] for line in lines}
    assert found["requests"] == ["12", "18"]
    differ, blind = map(int, found["groups whose retriever metrics differ"])
    assert differ > blind == 0
    assert found["verdict of `compare` on relevance"] == ["judge inconsistency", "no difference"]
    assert float(found["lean to used sentences"][0]) > 0
