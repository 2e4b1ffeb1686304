/* The rows of a record's sentences, and their tab stops. */

/** Rows of conversation, documents, response and reference answer, by key. */
class SentenceRows {
  constructor() {
    this.conversation = new Map();
    this.document = new Map();
    this.response = new Map();
    this.reference = new Map();
    /** The row that is the tab stop of each part. */
    this.stops = {};
  }

  /**
   * Draw a list of sentences. It is one tab stop; arrow keys move inside.
   * @param {"conversation"|"document"|"response"|"reference"} part part of the record.
   * @param {object[]} sentences the sentences.
   * @param {function(string, object): {marks: Array, more: Array}} drawOne draws the rest of a
   *   row, besides key and text, of a key and its sentence.
   */
  draw(part, sentences, drawOne) {
    return el(
      "ol",
      { class: "sentences", role: "list" },
      sentences.map((sentence) => {
        const row = drawSentence(part, sentence, drawOne(sentence.key, sentence));
        this[part].set(sentence.key, row);
        return row;
      }),
    );
  }

  /** The rows of each part. */
  get parts() {
    return [this.conversation, this.document, this.response, this.reference];
  }

  /** Return whether a sentence may support a response sentence. */
  mayBeSupport(key) {
    return this.document.has(key) || this.conversation.has(key);
  }

  /** Return the row of a sentence of any part. */
  row(key) {
    return this.parts.map((rows) => rows.get(key)).find(Boolean);
  }

  /** Return the rows of the same part. */
  adjacent(row) {
    return this[row.dataset.part];
  }

  /** Make the first row of each part its tab stop. */
  makeFirstStops() {
    for (const rows of this.parts) {
      const first = rows.values().next().value;
      if (first) this.makeStop(first);
    }
  }

  /** Make a row and its buttons the tab stop of its part. */
  makeStop(row) {
    const { part } = row.dataset;
    const before = this.stops[part];
    if (before === row) return;
    if (before) setTabIndex(before, "-1");
    setTabIndex(row, "0");
    this.stops[part] = row;
  }

  /**
   * Focus a sentence and scroll to it.
   * @param {string} key key of the sentence.
   * @returns {boolean} whether the record has the sentence.
   */
  focus(key) {
    const row = this.row(key);
    if (!row) return false;
    for (let part = row.closest("details"); part; part = part.parentElement.closest("details"))
      part.open = true;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest", behavior: "instant" });
    return true;
  }
}

/** Draw a sentence with key, marks and further details. */
function drawSentence(part, { key, text }, { marks, more }) {
  return el(
    "li",
    { class: "sentence", "data-key": key, "data-part": part, tabindex: "-1" },
    el("span", { class: "key" }, key),
    el("span", { class: "marks" }, marks),
    el(
      "div",
      { class: "sentence-text" },
      el("span", { class: "text", dir: "auto" }, shownText(text)),
      more,
    ),
  );
}

/** Set the tabindex of a row and its buttons. */
function setTabIndex(row, index) {
  for (const node of [row, ...row.querySelectorAll("button")]) node.setAttribute("tabindex", index);
}
