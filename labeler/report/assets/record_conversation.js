/* The turns and tool outputs before a response. */

/** Number of sentences up to which a conversation is not folded. */
const SHORT_CONVERSATION = 6;

/**
 * Draw the conversation; null without any.
 * @param {object} view a RecordView.
 * @param {SentenceRows} rows gets the rows of its sentences.
 * @param {function(string): Array} drawMarks draws the marks of a sentence.
 */
function drawConversation(view, rows, drawMarks) {
  const turns = view.history ?? [];
  const outputs = view.tool_outputs ?? [];
  if (turns.length + outputs.length === 0) return null;
  const words = [
    turns.length > 0 && counted(turns.length, "earlier turn"),
    outputs.length > 0 && counted(outputs.length, "tool output"),
  ];
  const size = [...turns, ...outputs].reduce((sum, part) => sum + part.sentences.length, 0);
  const part = (name, sentences) => [
    el("dt", { dir: "auto" }, shownText(name)),
    el(
      "dd",
      {},
      rows.draw("conversation", sentences, (key) => ({ marks: drawMarks(key), more: null })),
    ),
  ];
  return el(
    "details",
    { class: "record-conversation", open: size <= SHORT_CONVERSATION },
    el("summary", {}, words.filter(Boolean).join(", ")),
    el(
      "dl",
      {},
      turns.map(({ role, sentences }) => part(role, sentences)),
      outputs.map(({ name, sentences }) => part(name ? `tool ${name}` : "tool", sentences)),
    ),
  );
}
