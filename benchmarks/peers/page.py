"""The text of docs/measured/peers.md around the table."""

INTRO = """\
# Against the peers

The same records (a question, four documents of five sentences, a response of four sentences, a
reference answer of two), the same made-up OpenAI-compatible server on this machine, the same
latency and concurrency, each tool in an environment and process of its own, telemetry off. The
server gives the smallest answer that fits: lists have four items, free texts six words, labels a
claim a sentence. So the figures show what tools ask, send and take, not the quality of their
results. Real answers are longer for every tool.

The server counts tokens alike for all: messages, their frames, and schemas. Lines with a clock
(⏱) depend on the machine and its load. Imports are not timed. CPU time is measured for the tool's
process over about a thousand calls; for the bare client, that of the same requests without
labeler. Goals are labeler's.
"""

NOTES = """
## What one call does not do better

- **One call is longer.** The record waits for the last token of one answer. At 100 tokens a
  second, a label of 1,200 tokens takes 12 s, where short questions asked at once could be
  answered in two.
- **The prompt is long.** Of about 3,200 tokens, some 1,610 are instructions, 940 the schema and
  650 the record with its keys (`o200k_base`: about 3,320). A prompt cache reads the first two at
  a discount. `trace` sends about 2,090, `claims` 2,760: more than the goal, and long enough for
  a cache in every profile. For one metric alone, a peer's short question costs less.
- **An error costs all metrics of a record.** After a refusal, or an answer that breaks the
  contract twice, the record has no number; tools that ask metric by metric lose one.
- **The call that judges claims also draws them.** A claim that the model leaves out enters no
  metric. Peers draw and judge in separate calls.
- **No prompt for each metric.** Another prompt is another label of the whole record, and every
  metric moves.
- **Another profile is another label.** From `trace` to `reference` each record is asked once
  more.
- **A call costs more CPU than with a bare client**: splitting, keys, contract, durable store and
  structured output. It matters where thousands of records a minute are labeled on one core.
- **Eight records go first**, to find out whether key and model work: a short run waits for one
  more answer.
- **Questions to a decision model** are 54 in one request of 2,433 tokens. deepeval's mode
  `system_one` asks 18 for six metrics: `evaluate()` merges them into one request of 1,613 tokens;
  metrics measured alone send six of 3,280 in all ([table](judges.md#models-that-decide)). So
  deepeval sends less for scores; labeler's questions buy a verdict on each sentence.
- **The installation is not small**: a sentence splitter and numpy; deepeval is smaller.

The metrics of ragas have no threshold. Its disk cache was switched on; where the table says that
the old model's answers were served, the model is not in the cache's key. deepeval keeps the
metrics of its last run. trulens' feedback functions keep nothing by themselves; the sentence
model that groundedness would fetch for every record is replaced by a cut at full stops, and its
own limit of 60 requests a minute is lifted.
"""
