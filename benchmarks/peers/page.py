"""The text of docs/peers.md around the table."""

INTRO = """\
# Against the peers

The same records (a question, four documents of five sentences, a response of four sentences, a
reference answer of two), the same made-up OpenAI-compatible server on this machine, the same
latency and concurrency, each tool in a virtual environment and a process of its own with telemetry
switched off. The server answers any question with the smallest answer that fits: lists have four
items, free texts six words, labels a claim a sentence. So the figures say what tools ask, send and
take, and nothing of the quality of what they find. Real answers are longer, for every tool.

Tokens are counted by the server, in the same way for all: messages, the frames of messages, and
schemas. Lines marked with a clock (⏱) depend on the machine and on what else it does. Imports are
outside the clocks. CPU time is that of the tool's process, in a run of about a thousand calls; for
the bare client it is what the same requests take without labeler. Goals are labeler's.
"""

NOTES = """
## What one call does not do better

- **One call is longer.** A label is one answer with all claims in it: the record waits for its last
  token. With a model that writes 100 tokens a second, a label of 1,200 tokens takes 12 s, where
  short questions asked side by side could each be answered in two. Throughput gains; the latency of
  a single record may not.
- **The prompt is long for one metric.** Of about 2,320 tokens, some 1,100 are instructions, 530 the
  schema and 680 the record with its keys; the tokenizer `o200k_base` makes about 2,460 of them. The
  first two are the same for every record, so that a provider's prompt cache reads them at a
  discount; one without such a cache charges them each time. The profile `trace` sends about 1,490,
  `claims` 1,910. For one metric alone, a peer's short question costs less. The instructions say
  each rule once and briefly; whether a model follows longer ones better was not measured.
- **An error spoils all metrics of a record.** A refusal, or an answer that still breaks the
  contract when it was asked for again, leaves the record without any number, where tools that ask
  metric by metric lose one. It is told as a failure with its reason.
- **Claims are cut by the same call that judges them.** A claim that the model leaves out enters no
  metric, and all metrics share its slips; peers cut and judge in separate calls, which can differ.
- **No prompt for each metric.** A peer's metric can be tuned by its own instructions and examples.
  Here they are shared: another prompt is another label of the whole record, and every metric moves.
- **Another profile is another label.** A metric added afterwards costs nothing where the label has
  its fields; from `trace` to `reference` each record is asked once more.
- **A call costs more CPU than with a bare client.** Splitting, keys, the contract, a durable store
  and the structured-output library come on top; the table says how much. Where answers take
  seconds this is not seen; where thousands of records a minute are labelled on one core, it is.
- **The first record goes alone.** It finds out whether key and model work, and delays a short run
  by one answer.
- **The installation is not small.** It brings sentence splitters, numpy and pyarrow; deepeval is
  smaller.

The metrics of ragas have no threshold that could be changed. Its disk cache has to be switched on,
and was; where the table says that the old model's answers were served, the model is no part of the
cache's key. deepeval keeps the metrics of its last run. trulens' feedback
functions keep nothing by themselves; the sentence model that groundedness would fetch for every
record is replaced by a cut at full stops, and its own pace of 60 requests a minute is lifted.
"""
