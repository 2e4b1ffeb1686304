"""The rows that other packages write, and that the tests expect back; a chain that answers them."""

# mypy: disable-error-code="import-not-found, import-untyped, misc, no-any-unimported"
# LangChain is installed in environments of its own only.

from __future__ import annotations

from typing import Any

COUNT = 20
AGENT_TURNS = (("user", "Hello."), ("assistant", "Hello!"))
AGENT_ROW: dict[str, Any] = {
    "question": "How long is quay 1, and how late is it?",
    "documents": ["Quay 1 is 91 m long."],
    "response": "It is 91 m long, and it is noon.",
    "history": [{"role": role, "text": text} for role, text in AGENT_TURNS],
    "tool_outputs": [{"name": "clock", "text": "It is noon."}],
}
"""The row of an agent that searches and looks at the clock."""


def import_rows() -> list[dict[str, Any]]:
    """Return made-up rows with quotes, line breaks, separators and letters beyond ASCII."""
    return [
        {
            "question": f"How long is quay {n}; and of what is it made?",
            "documents": [
                f'Quay {n} is {90 + n} m long, says the "harbour master\'s" book.',
                f"It was built in {1900 + n} of oak,\n\tas O'Hara \\ Søn wrote: 長い.",
                "Nobody lives there.",
            ][: 1 + n % 3],
            "response": f'It\'s {90 + n} m long, and of "oak".',
            "reference": f"{90 + n} m; oak.",
        }
        for n in range(COUNT)
    ]


def retriever(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - a class of LangChain
    """Return a retriever of LangChain that finds the documents of each row's question."""
    from langchain_core.documents import Document  # noqa: PLC0415 - of some environments only
    from langchain_core.retrievers import BaseRetriever  # noqa: PLC0415

    class Retriever(BaseRetriever):
        """Finds the documents of a row."""

        def _get_relevant_documents(self, query: str, **_: object) -> list[Document]:
            (row,) = (row for row in rows if row["question"] == query)
            return [
                Document(page_content=text, metadata={"source": f"{n}.md"}, id=str(n))
                for n, text in enumerate(row["documents"])
            ]

    return Retriever()


def retrieval_chain(rows: list[dict[str, Any]], prompt: Any) -> Any:  # noqa: ANN401 - LangChain's
    """Return a retrieval chain with a stand-in model that answers the rows in order."""
    from langchain_classic.chains import create_retrieval_chain  # noqa: PLC0415 - as above
    from langchain_classic.chains.combine_documents import (  # noqa: PLC0415
        create_stuff_documents_chain,
    )
    from langchain_core.language_models import FakeListChatModel  # noqa: PLC0415

    model = FakeListChatModel(responses=[row["response"] for row in rows])
    return create_retrieval_chain(retriever(rows), create_stuff_documents_chain(model, prompt))
