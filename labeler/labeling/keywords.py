"""Parameters of the functions that label, as type checkers, editors and ``help()`` show them.

The classes of :mod:`labeler.labeling.options` define names, types, defaults and texts. A checker
reads no dataclass as keywords, so a script copies the less used options to here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import TypedDict, Unpack

from labeler.labeling.options import LabelOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from labeler.calculators.rater_agreement import Votes
    from labeler.data.options import ColumnMap, RowSource
    from labeler.judges.options import CapField, JsonFile, JudgeLike, PriceLike, PromptCache
    from labeler.labeling.options import Dollars, FileLike, SeveralJudges, StoreLike
    from labeler.labeling.progress import OnEvent


class LabelOptionsDict(TypedDict, total=False):
    """Less used options of :func:`labeler.label`."""

    # begin options
    retry_failed: bool
    """Ask again about rows whose failure is stored, such as refusals."""
    same_host: bool
    """Stop if a stored label comes from another host than the one asked."""
    requests_per_minute: float | None
    """Maximum requests per minute; by default the server's limit."""
    tokens_per_minute: float | None
    """Maximum tokens per minute, prompts and answers together."""
    longest_wait: float | None
    """Stop (exit 75) if the server asks for a wait of over 2 minutes."""
    max_outage: float
    """Seconds that a server which answered before may stay away."""
    on_event: OnEvent | Sequence[OnEvent] | None
    """Called with each event of the run; one function or several."""
    prompt: FileLike
    """Prompt version, name such as trace/v1, or file of your own."""
    relevance: str
    """with-response: in the same call; blind: once for each question and documents, in a call
    that shows no response.
    """
    trial: int
    """Trial number; a new number asks the judge again."""
    max_input_tokens: int | None
    """Maximum prompt tokens; longer rows fail unasked. By default the model's."""
    base_url: str | None
    """Address of the API, if not the provider's own."""
    allow_http: list[str] | None
    """Allow unencrypted http to this host; repeatable."""
    ca_file: str | None
    """PEM file of additional certificate authorities to trust."""
    proxy: str | None
    """Proxy: a URL, @VARIABLE that holds one, or env to read HTTPS_PROXY."""
    header: list[str] | None
    """Header of each request: NAME=@VARIABLE, read from the environment; repeatable."""
    query: list[str] | None
    """Query parameter of each request, such as api-version=1; repeatable."""
    api_key_command: str | None
    """Command that prints the API key; run again when the key expires."""
    organization: str | None
    """Organization that pays, if the key has several."""
    project: str | None
    """Project that pays, if the key has several."""
    temperature: float | None
    """Sampling temperature, 0 to 2; omitted from the request unless set."""
    top_p: float | None
    """Nucleus sampling share; omitted from the request unless set."""
    seed: int | None
    """Sampling seed; omitted from the request unless set."""
    reasoning_effort: str | None
    """Reasoning effort; omitted from the request unless set."""
    output_mode: str | None
    """How the answer's schema is sent: auto, strict, schema, tools, json or prompt."""
    extra_body: JsonFile | None
    """JSON file of additional request parameters."""
    prompt_cache: PromptCache
    """Prompt cache fields to send; off sends none."""
    max_output_tokens: int | None
    """Maximum tokens of an answer, doubled once if reached; --budget sets one."""
    cap_field: CapField
    """Request field for --max-output-tokens."""
    timeout: float | None
    """Total seconds for one attempt."""
    recorded: str | None
    """Label file that the replay judge takes its answers from."""
    price: PriceLike | None
    """US dollars per million tokens: IN,OUT such as 0.25,2; then CACHED,CACHE_WRITE."""
    prices: str | None
    """JSON file of prices by model."""
    id_from: str
    """Columns that form the row id, comma-separated."""
    preset: str | None
    """Columns of another tool, such as ragas, deepeval or langchain; by default those that fit."""
    split_documents: str | None
    """Separator of the documents in one text, such as '\\n\\n' or '|'."""
    keep_thinking: bool
    """Judge thoughts in responses (<think>) too; by default they are left out."""
    splitter: str
    """Sentence splitter: general, ragbench or given."""
    judges: SeveralJudges | None
    """Judges that vote, comma-separated, such as embedded,openai:MODEL."""
    votes: Votes | None
    """Counts the votes, to measure their agreement."""
    # end options


def label_parameters(
    data: RowSource,
    *,
    judge: JudgeLike | None = LabelOptions.judge,
    model: str | None = LabelOptions.model,
    store: StoreLike = LabelOptions.store,
    output: str | Path | None = LabelOptions.output,
    profile: str = LabelOptions.profile,
    instructions: FileLike | None = LabelOptions.instructions,
    columns: ColumnMap = LabelOptions.columns,
    repeat: int = LabelOptions.repeat,
    budget: Dollars | None = LabelOptions.budget,
    concurrency: int = LabelOptions.concurrency,
    progress: bool = LabelOptions.progress,
    **options: Unpack[LabelOptionsDict],
) -> None:
    """Declare the parameters: those that most people need, and the others."""
