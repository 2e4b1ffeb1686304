"""Make traces with other packages; runs in the packages' environment.

    python traces_made.py FOLDER NUMBER > RESULTS

A chain of LangChain with a stand-in model and retriever answers the first NUMBER questions of
`import_rows.py`, watched by each instrumentation in turn. Prints a line of JSON for each export:
the package, its version, how it exports, and the file in FOLDER. Nothing leaves the machine:
Phoenix runs on loopback, MLflow writes to the folder, and of Langfuse only the SDK is used.
"""

# ruff: noqa: ANN401, PLC0415 - the packages' classes
# mypy: disable-error-code="import-not-found, import-untyped, misc, no-any-unimported"
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness import free_port
from import_rows import AGENT_ROW, AGENT_TURNS, import_rows, retrieval_chain

ROWS = import_rows()[: int(sys.argv[2])]
USER = "7"
os.environ |= {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "LANGFUSE_TRACING_ENABLED": "true",
}


def chain() -> Any:
    """Return a retrieval chain that answers each row's question."""
    from langchain_core.prompts import ChatPromptTemplate

    asked = [("system", "Answer from:\n{context}"), ("human", "{input}")]
    return retrieval_chain(ROWS, ChatPromptTemplate.from_messages(asked))


def ask(**config: Any) -> None:
    """Ask each question."""
    asked = chain()
    for row in ROWS:
        asked.invoke({"input": row["question"]}, config=config)


def call_agent(**config: Any) -> None:
    """Let an agent of LangChain answer, with a tool that retrieves and another."""
    from langchain.agents import create_agent
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import tool

    class Retriever(BaseRetriever):
        """Finds the documents of the agent."""

        def _get_relevant_documents(self, _: str, **__: Any) -> list[Document]:
            return [Document(page_content=text) for text in AGENT_ROW["documents"]]

    class Model(GenericFakeChatModel):
        """Calls both tools, then answers."""

        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    @tool
    def search(query: str) -> str:
        """Search the book of quays."""
        return "\n".join(found.page_content for found in Retriever().invoke(query))

    @tool
    def clock() -> str:
        """Look at the clock."""
        return str(AGENT_ROW["tool_outputs"][0]["text"])

    calls = [{"name": "search", "args": {"query": "quay 1"}, "id": "1"}]
    calls += [{"name": "clock", "args": {}, "id": "2"}]
    said = [AIMessage("", tool_calls=[call]) for call in calls]
    model = Model(messages=iter([*said, AIMessage(AGENT_ROW["response"])]))
    turns = [{"role": role, "content": text} for role, text in AGENT_TURNS]
    turns += [{"role": "user", "content": AGENT_ROW["question"]}]
    agent = create_agent(model, [search, clock], system_prompt="Be brief.")
    agent.invoke({"messages": turns}, config=config)


@contextlib.contextmanager
def otlp(path: Path) -> Iterator[Any]:
    """Provide tracers whose spans OpenTelemetry's exporter writes to a file."""
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    path.unlink(missing_ok=True)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(str(path))))
    yield provider
    provider.shutdown()


def openinference(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """OpenInference's instrumentation of LangChain, exported by OpenTelemetry."""
    from openinference.instrumentation import using_user
    from openinference.instrumentation.langchain import LangChainInstrumentor

    path = folder / "openinference.jsonl"
    with otlp(path) as provider, using_user(USER):
        LangChainInstrumentor().instrument(tracer_provider=provider)
        ask()
        LangChainInstrumentor().uninstrument()
    yield "openinference-instrumentation-langchain", "OTLP JSON, file exporter", path
    path = folder / "openinference_agent.jsonl"
    with otlp(path) as provider:
        LangChainInstrumentor().instrument(tracer_provider=provider)
        call_agent()
        LangChainInstrumentor().uninstrument()
    yield "openinference-instrumentation-langchain", "the same of an agent", path


def genai(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """OpenTelemetry's own utilities, with and without texts of documents."""
    from opentelemetry.util.genai import types
    from opentelemetry.util.genai.handler import TelemetryHandler

    def said(kind: Any, role: str, text: str) -> Any:
        return kind(role=role, parts=[types.TextPart(text)])

    for name in ("genai", "genai_ids"):
        path = folder / f"{name}.jsonl"
        with otlp(path) as provider:
            handler = TelemetryHandler(tracer_provider=provider)
            for row in ROWS:
                with handler.workflow("ask", conversation_id="c1"):
                    with handler.retrieval(data_source_id="quays") as found:
                        found.query_text = row["question"]
                        found.documents = [
                            {"id": str(n), "score": 0.5, "content": text}
                            if name == "genai"
                            else types.RetrievalDocument(str(n), 0.5)
                            for n, text in enumerate(row["documents"])
                        ]
                    with handler.inference("openai", request_model="small") as call:
                        texts = "\n".join(row["documents"])
                        asked = [said(types.InputMessage, "system", texts)]
                        asked += [said(types.InputMessage, "user", row["question"])]
                        call.input_messages = asked
                        call.output_messages = [
                            said(types.OutputMessage, "assistant", row["response"])
                        ]
                        call.response_id = "r1"
        how = "OTLP JSON" if name == "genai" else "OTLP JSON, documents by id (its default)"
        yield "opentelemetry-util-genai", how, path


def mlflow(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """MLflow's instrumentation of LangChain."""
    import mlflow as package

    package.set_tracking_uri((folder / "mlruns").as_uri())
    package.langchain.autolog()
    for name, run in {"mlflow": ask, "mlflow_agent": call_agent}.items():
        package.set_experiment(name)
        run()
        package.flush_trace_async_logging()
        path = folder / f"{name}.jsonl"
        traces = package.search_traces(return_type="list")
        path.write_text("".join(trace.to_json() + "\n" for trace in traces), encoding="utf-8")
        how = "`Trace.to_json`" if run is ask else "the same of an agent"
        yield "mlflow-skinny", how, path
    package.langchain.autolog(disable=True)


def langfuse(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Langfuse's handler of LangChain: its spans, and the same as its API's observations."""
    from langfuse import Langfuse
    from langfuse.langchain import CallbackHandler

    path = folder / "langfuse.jsonl"
    with otlp(path) as provider:
        keys = {"public_key": "chain", "secret_key": "none"}
        client = Langfuse(**keys, host=NOWHERE, tracer_provider=provider, timeout=1)
        ask(callbacks=[CallbackHandler()], metadata={"langfuse_user_id": USER})
    yield "langfuse", "OTLP JSON, file exporter", path
    agents = folder / "langfuse_agent.jsonl"
    with otlp(agents) as provider:
        keys["public_key"] = "agent"  # the SDK keeps one client for each key
        client = Langfuse(**keys, host=NOWHERE, tracer_provider=provider, timeout=1)
        call_agent(callbacks=[CallbackHandler(public_key="agent")])
    del client
    yield "langfuse", "the same of an agent", agents
    observed = folder / "langfuse_observations.jsonl"
    observed.write_text("".join(observations(path)), encoding="utf-8")
    yield "langfuse", "`ObservationV2` of its API", observed


NOWHERE = "http://127.0.0.1:9"
"""A server that is not there: the SDK's own export fails at once."""


def observations(path: Path) -> Iterator[str]:
    """Yield spans as the classes of Langfuse's SDK write observations.

    A server of Langfuse makes these of the same spans; none can run here.
    """
    from langfuse.api.commons.types.observation_v2 import ObservationV2

    for line in path.read_text(encoding="utf-8").splitlines():
        for span in json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            given = {pair["key"]: pair["value"] for pair in span["attributes"]}
            text = {key: value.get("stringValue", "") for key, value in given.items()}
            seconds = int(span["startTimeUnixNano"]) / 10**9
            made = ObservationV2(
                id=span["spanId"],
                trace_id=span["traceId"],
                parent_observation_id=span.get("parentSpanId"),
                project_id="p",
                start_time=datetime.fromtimestamp(seconds, UTC),
                name=span["name"],
                type=text["langfuse.observation.type"].upper(),
                user_id=text.get("user.id"),
                input=text.get("langfuse.observation.input"),
                output=text.get("langfuse.observation.output"),
            )
            yield made.json() + "\n"


def phoenix(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Phoenix on loopback, which the spans are sent to and read from."""
    port, grpc = free_port(), free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {
        "PHOENIX_WORKING_DIR": str(folder / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    program = [str(Path(sys.executable).parent / "phoenix"), "serve"]
    silent, env = subprocess.DEVNULL, {**os.environ, **settings}
    with subprocess.Popen(program, env=env, stdout=silent, stderr=silent) as server:
        try:
            yield from exported_by_phoenix(address, folder)
        finally:
            server.terminate()


def exported_by_phoenix(address: str, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Send spans to Phoenix, and save what its interfaces give."""
    import httpx
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from phoenix.client import Client

    wait(lambda: httpx.get(address).status_code == httpx.codes.OK)
    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=f"{address}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    ask()
    LangChainInstrumentor().uninstrument()
    provider.shutdown()
    spans = f"{address}/v1/projects/default/spans"
    wait(lambda: len(httpx.get(f"{spans}?limit=1000").json()["data"]) == 15 * len(ROWS))
    for name, path in (("spans", "phoenix.json"), ("spans/otlpv1", "phoenix_otlp.json")):
        answer = httpx.get(f"{address}/v1/projects/default/{name}?limit=1000")
        (folder / path).write_text(answer.text, encoding="utf-8")
        yield "arize-phoenix", f"`/v1/projects/…/{name}`", folder / path
    frame = Client(base_url=address).spans.get_spans_dataframe(project_identifier="default")
    frame.to_parquet(folder / "phoenix.parquet")
    frame.to_json(folder / "phoenix.jsonl", orient="records", lines=True)
    yield "arize-phoenix", "`get_spans_dataframe`, Parquet", folder / "phoenix.parquet"
    yield "arize-phoenix", "`get_spans_dataframe`, JSON Lines", folder / "phoenix.jsonl"


def wait(ready: Callable[[], bool], seconds: float = 120) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            if ready():
                return
        time.sleep(0.5)
    raise TimeoutError


def main() -> None:
    """Print the exports."""
    folder = Path(sys.argv[1])
    with contextlib.redirect_stdout(sys.stderr):
        made = [
            {"package": package, "version": version(package), "how": how, "file": str(path)}
            for make in (openinference, genai, langfuse, mlflow, phoenix)
            for package, how, path in make(folder)
        ]
    print("\n".join(map(json.dumps, made)))


if __name__ == "__main__":
    main()
