"""Make rows with other packages, and read them with labeler; runs in the packages' environment.

    python imports_made.py ENVIRONMENT FOLDER > RESULTS

Prints a line of JSON for each source: its name, the package and its version, the rows read without
any option, the message otherwise, and the rows read with the options that the message names. Files
stay in FOLDER. Nothing leaves the machine: models and retrievers are the packages' own stand-ins.
"""

# ruff: noqa: ANN401, PLC0415 - the packages' classes, of which an environment has some
# mypy: disable-error-code="import-not-found, import-untyped, misc, no-any-unimported"
# Each package is installed in an environment of its own only.

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from import_rows import import_rows, retrieval_chain, retriever
from labeler.data.options import RowsOptions
from labeler.errors import UsageError
from labeler.sentences.example import Example

ROWS = import_rows()
FIELDS = ("question", "documents", "response", "reference")
OLDER_RAGAS = ("question", "contexts", "answer", "ground_truth")
"""Column names of ragas before 0.2."""


class Made(NamedTuple):
    """A source of rows."""

    package: str
    how: str
    source: Any
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    """What a message names as its remedy."""
    reference: bool = True
    """False if the package has no place for a reference answer."""


def renamed(*names: str) -> list[dict[str, Any]]:
    """Return the rows with these names of question, documents, response and reference."""
    return [dict(zip(names, row.values(), strict=True)) for row in ROWS]


def ragas(folder: Path) -> Iterator[Made]:
    """Samples and data sets of ragas."""
    from ragas import EvaluationDataset, SingleTurnSample

    names = ("user_input", "retrieved_contexts", "response", "reference")
    samples = [SingleTurnSample(**row) for row in renamed(*names)]
    data = EvaluationDataset(samples=samples)
    data.to_jsonl(folder / "ragas.jsonl")
    data.to_csv(folder / "ragas.csv")
    yield Made("ragas", "list of `SingleTurnSample`", samples)
    yield Made("ragas", "`EvaluationDataset`", data)
    yield Made("ragas", "`EvaluationDataset.to_jsonl`", folder / "ragas.jsonl")
    yield Made("ragas", "`EvaluationDataset.to_csv`", folder / "ragas.csv")
    yield Made("ragas", "`EvaluationDataset.to_pandas`", data.to_pandas())


def datasets(folder: Path) -> Iterator[Made]:
    """Data sets of the Hugging Face library, with the columns of older ragas."""
    from datasets import Dataset, DatasetDict, disable_progress_bars

    disable_progress_bars()
    data = Dataset.from_list(renamed(*OLDER_RAGAS))
    data.save_to_disk(folder / "saved")
    data.to_json(folder / "datasets.jsonl")
    data.to_csv(folder / "datasets.csv")
    data.to_parquet(folder / "datasets.parquet")
    yield Made("datasets", "`Dataset`", data)
    yield Made("datasets", "`DatasetDict` of one split", DatasetDict(test=data))
    yield Made("datasets", "`Dataset.to_iterable_dataset`", data.to_iterable_dataset())
    yield Made("datasets", "`save_to_disk`", folder / "saved")
    yield Made("datasets", "`to_json`", folder / "datasets.jsonl")
    yield Made("datasets", "`to_csv` (arrays of numpy in cells)", folder / "datasets.csv")
    yield Made("datasets", "`to_parquet`", folder / "datasets.parquet")


def pandas(folder: Path) -> Iterator[Made]:
    """Files that pandas writes."""
    import pandas as pd

    frame = pd.DataFrame(renamed(*OLDER_RAGAS))
    frame.to_csv(folder / "pandas.csv")
    frame.to_csv(folder / "semicolons.csv", sep=";", index=False)
    frame.to_json(folder / "columns.json")
    frame.to_json(folder / "split.json", orient="split")
    frame.to_json(folder / "records.json", orient="records")
    frame.to_excel(folder / "pandas.xlsx", index=False)
    (folder / "parts").mkdir(exist_ok=True)
    frame[:9].to_json(folder / "parts" / "1.jsonl", orient="records", lines=True)
    frame[9:].to_csv(folder / "parts" / "2.csv", index=False)
    yield Made("pandas", "`DataFrame`", frame)
    yield Made("pandas", "`to_csv` (lists in cells)", folder / "pandas.csv")
    yield Made("pandas", "`to_csv(sep=';')`", folder / "semicolons.csv")
    yield Made("pandas", "`to_json`", folder / "columns.json")
    yield Made("pandas", "`to_json(orient='split')`", folder / "split.json")
    yield Made("pandas", "`to_json(orient='records')`", folder / "records.json")
    yield Made("pandas", "a folder of its files", folder / "parts")
    yield Made("pandas", "`to_excel`", folder / "pandas.xlsx")


def polars(folder: Path) -> Iterator[Made]:
    """Frames of polars and their files."""
    import polars as pl

    frame = pl.DataFrame(renamed(*OLDER_RAGAS))
    frame.write_ndjson(folder / "polars.jsonl")
    frame.write_ipc(folder / "polars.arrow")
    yield Made("polars", "`DataFrame`", frame)
    yield Made("polars", "`write_ndjson`", folder / "polars.jsonl")
    yield Made("polars", "`write_ipc`", folder / "polars.arrow")
    yield Made("pyarrow", "`Table`", frame.to_arrow())


def deepeval(folder: Path) -> Iterator[Made]:
    """Test cases of DeepEval, and what its data set saves."""
    from deepeval.dataset import EvaluationDataset
    from deepeval.test_case import LLMTestCase

    names = ("input", "retrieval_context", "actual_output", "expected_output")
    cases = [LLMTestCase(**row) for row in renamed(*names)]
    data = EvaluationDataset()
    for case in cases:
        data.add_test_case(case)
    yield Made("deepeval", "list of `LLMTestCase`", cases)
    yield Made("deepeval", "`EvaluationDataset`", data)
    for kind in ("json", "jsonl", "csv"):
        saved = data.save_as(kind, str(folder), "deepeval", include_test_cases=True)
        options = {} if kind == "json" else {"split_documents": "|"}
        yield Made("deepeval", f"`save_as('{kind}')`", saved, options)


def langchain(folder: Path) -> Iterator[Made]:
    """Results of LangChain's retrieval chains, run with its fake models."""
    from langchain_classic.chains import RetrievalQA
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.load import dumps
    from langchain_core.prompts import ChatPromptTemplate

    questions, answers = ([row[name] for row in ROWS] for name in ("question", "response"))
    chain = retrieval_chain(ROWS, ChatPromptTemplate.from_template("{context}\n{input}"))
    found = [chain.invoke({"input": question}) for question in questions]
    older = RetrievalQA.from_chain_type(
        llm=FakeListChatModel(responses=answers),
        retriever=retriever(ROWS),
        return_source_documents=True,
    )
    model = FakeListChatModel(responses=answers)
    messages = [
        {"question": q, "context": retriever(ROWS).invoke(q), "answer": model.invoke(q)}
        for q in questions
    ]
    dumped = folder / "langchain.jsonl"
    dumped.write_text("".join(dumps(result) + "\n" for result in found), encoding="utf-8")
    yield Made("langchain-classic", "results of `create_retrieval_chain`", found, reference=False)
    results = [older.invoke({"query": question}) for question in questions]
    yield Made("langchain-classic", "results of `RetrievalQA`", results, reference=False)
    yield Made("langchain-core", "`Document`s with an `AIMessage`", messages, reference=False)
    yield Made("langchain-core", "`dumps` of results, a line each", dumped, reference=False)


def llamaindex(_: Path) -> Iterator[Made]:
    """Responses of LlamaIndex with their questions, and results of its evaluators."""
    from llama_index.core.base.response.schema import Response
    from llama_index.core.evaluation import EvaluationResult
    from llama_index.core.schema import NodeWithScore, TextNode

    def response(row: dict[str, Any]) -> Response:
        nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in row["documents"]]
        return Response(row["response"], nodes)

    pairs = [{"query": row["question"], "response": response(row)} for row in ROWS]
    judged = [
        EvaluationResult(query=row["question"], contexts=row["documents"], response=row["response"])
        for row in ROWS
    ]
    with_question = "mappings of `query` and `response` (`Response`)"
    yield Made("llama-index-core", with_question, pairs, reference=False)
    yield Made("llama-index-core", "list of `EvaluationResult`", judged, reference=False)
    alone = [pair["response"] for pair in pairs]
    yield Made("llama-index-core", "list of `Response` alone", alone, reference=False)


def haystack(_: Path) -> Iterator[Made]:
    """Answers that Haystack's builder makes."""
    from haystack import Document
    from haystack.components.builders import AnswerBuilder

    builder = AnswerBuilder()
    answers = [
        builder.run(
            query=row["question"],
            replies=[row["response"]],
            documents=[Document(content=text) for text in row["documents"]],
        )["answers"][0]
        for row in ROWS
    ]
    yield Made("haystack-ai", "`GeneratedAnswer`s of `AnswerBuilder`", answers, reference=False)


def inspect_ai(folder: Path) -> Iterator[Made]:
    """A log of inspect_ai; its documents are where its user puts them, here in `contexts`."""
    from inspect_ai import Task, eval  # noqa: A004 - its name
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    samples = [
        Sample(input=r["question"], target=r["reference"], metadata={"contexts": r["documents"]})
        for r in ROWS
    ]
    outputs = [ModelOutput.from_content("mockllm/model", row["response"]) for row in ROWS]
    for output in outputs:
        output.usage = ModelUsage()  # else it fetches a tokenizer
    [log] = eval(
        Task(dataset=samples),
        model=get_model("mockllm/model", custom_outputs=outputs),
        max_samples=1,
        log_dir=str(folder / "inspect"),
        log_format="json",
        display="none",
    )
    yield Made("inspect-ai", "`EvalLog`", log)
    yield Made("inspect-ai", "log in JSON", log.location)


ENVIRONMENTS: dict[str, tuple[Callable[[Path], Iterator[Made]], ...]] = {
    "ragas": (ragas, datasets),
    "deepeval": (deepeval,),
    "imports": (pandas, polars, langchain, llamaindex, haystack, inspect_ai),
}


def read(made: Made, options: dict[str, Any]) -> tuple[int, str]:
    """Return the number of rows that are read as they were written, and the message otherwise."""
    try:
        found = [row.content for row in RowsOptions(**options).open(made.source)]
    except UsageError as error:
        return 0, str(error)
    names = FIELDS if made.reference else FIELDS[:3]
    pairs = zip(ROWS, found, strict=False)
    right = [
        all(getattr(example, name) == as_written(row[name]) for name in names)
        for row, example in pairs
        if isinstance(example, Example)
    ]
    failed = [content.message for content in found if not isinstance(content, Example)]
    return sum(right), failed[0] if failed else ""


def as_written(value: Any) -> Any:
    """Return a field as an example holds it."""
    return tuple(value) if isinstance(value, list) else value


def main() -> None:
    """Print the results of an environment."""
    environment, folder = sys.argv[1], Path(sys.argv[2])
    with contextlib.redirect_stdout(sys.stderr):
        lines = []
        for make in ENVIRONMENTS[environment]:
            for made in make(folder):
                count, says = read(made, {})
                again = read(made, made.options)[0] if made.options else count
                lines.append(
                    {
                        "package": made.package,
                        "version": version(made.package),
                        "how": made.how,
                        "read": count,
                        "says": says.replace(f"{folder}/", ""),
                        "options": made.options,
                        "again": again,
                    }
                )
    print("\n".join(map(json.dumps, lines)))


if __name__ == "__main__":
    main()
