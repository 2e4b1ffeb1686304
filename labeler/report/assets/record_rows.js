/* The sentences of a record in the page: rows by key, and which of them the Tab key reaches. */

/** Rows of documents, response and reference answer. */
class SentenceRows {
  constructor() {
    this.document = new Map();
    this.response = new Map();
    this.reference = new Map();
    /** For each part the row where the Tab key stops. */
    this.stops = {};
  }

  /**
   * Draw a list of sentences; it is one stop of the Tab key, arrows go on inside.
   * @param {"document"|"response"|"reference"} part where they stand.
   * @param {object[]} sentences them.
   * @param {function(object): {marks: Array, more: Array}} drawOne what a row holds besides its
   *   key and text.
   */
  draw(part, sentences, drawOne) {
    return el(
      "ol",
      { class: "sentences", role: "list" },
      sentences.map((sentence) => {
        const row = drawSentence(part, sentence, drawOne(sentence.key));
        this[part].set(sentence.key, row);
        return row;
      }),
    );
  }

  /** Row of a sentence, whichever part it stands in. */
  row(key) {
    return this.document.get(key) ?? this.response.get(key) ?? this.reference.get(key);
  }

  /** The rows of the part that a row stands in. */
  beside(row) {
    return this[row.dataset.part];
  }

  /** Let the Tab key stop at the first row of each part. */
  makeFirstStops() {
    for (const rows of [this.document, this.response, this.reference]) {
      const first = rows.values().next().value;
      if (first) this.makeStop(first);
    }
  }

  /** Let one row of a part, and the buttons in it, be where the Tab key stops. */
  makeStop(row) {
    const { part } = row.dataset;
    const before = this.stops[part];
    if (before === row) return;
    if (before) setTabIndex(before, "-1");
    setTabIndex(row, "0");
    this.stops[part] = row;
  }

  /**
   * Focus a sentence and bring it into sight.
   * @param {string} key its key.
   * @returns {boolean} whether the record has it.
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

/** A sentence with its key and marks, and what is said of it. */
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

/** Set where the Tab key stops, for a row and the buttons in it. */
function setTabIndex(row, index) {
  for (const node of [row, ...row.querySelectorAll("button")]) node.setAttribute("tabindex", index);
}
