/* Keyboard control of a record: moving between sentences, and toggling marks while editing. */

/** Fields toggled by a letter, by the part of the sentence. */
const FIELD_LETTERS = {
  document: { r: "relevant", u: "utilized" },
  response: { s: "supported" },
};

/** The keys of sentences. */
class SentenceKeys {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows its sentences.
   * @param {RecordSelection} selection the selected one.
   * @param {{toggle: function(string, string), toggleSupport: function(string)}} act toggles marks.
   */
  constructor(subject, rows, selection, act) {
    this.subject = subject;
    this.rows = rows;
    this.selection = selection;
    this.act = act;
  }

  /** Handle a key press in the record. */
  onKey(event) {
    const row = event.target.closest(".sentence");
    if (row) this.handle(event, row);
  }

  /**
   * Handle a key press elsewhere in the page: it is for the selected sentence, unless its place
   * uses the key itself.
   * @returns {boolean} whether the key did something.
   */
  onKeyElsewhere(event) {
    const { target, key } = event;
    const isLetter = key.length === 1 && key !== " ";
    const users = isPress(key) ? "a, button, summary, [tabindex='0']" : "[tabindex='0']";
    if (isWriting(target) || (!isLetter && target.closest(users))) return false;
    const row = this.rows.row(this.selection.key);
    const done = row !== undefined && this.handle(event, row);
    if (done) this.selection.takeFocus();
    return done;
  }

  /** Handle a key press for a sentence; return whether the key did something. */
  handle(event, row) {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (isPress(key) && target.closest("button")) return false;
    // A key that is held down would toggle its mark again and again.
    const done = this.move(key, row) || (!event.repeat && this.press(key, row));
    if (done) event.preventDefault();
    return Boolean(done);
  }

  /** Go to another sentence of the same part, or to the other side with left and right. */
  move(pressed, row) {
    const rows = [...this.rows.adjacent(row).values()];
    const at = rows.indexOf(row);
    const to = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[
      pressed
    ];
    if (to) return this.rows.focus(to.dataset.key);
    if (pressed === "ArrowLeft" && row.dataset.part === "response") return this.cross(row);
    if (pressed === "ArrowRight" && this.rows.mayBeSupport(row.dataset.key)) return this.cross(row);
    return ["ArrowDown", "ArrowUp"].includes(pressed);
  }

  /** Toggle a mark, or go to the other side if Enter or Space toggles none. */
  press(pressed, row) {
    const { key, part } = row.dataset;
    const { edit } = this.subject;
    const field = edit && FIELD_LETTERS[part]?.[pressed];
    if (field) return this.act.toggle(field, key);
    if (!isPress(pressed)) return false;
    return edit && this.rows.mayBeSupport(key) ? this.act.toggleSupport(key) : this.cross(row);
  }

  /** Go from a response sentence to its first support, or from a document sentence back. */
  cross(row) {
    const { key, part } = row.dataset;
    if (part === "reference") return false;
    const to = part === "response" ? this.supportOf(key) : this.answerTo(key);
    return to !== undefined && this.rows.focus(to);
  }

  /** Return the first sentence that supports a response sentence, else the last document sentence visited. */
  supportOf(key) {
    const supporting = this.selection.relatedTo(key).find((one) => this.rows.mayBeSupport(one));
    return supporting ?? this.rows.stops.document?.dataset.key;
  }

  /** Return the response sentence that belongs to a document sentence. */
  answerTo(key) {
    const [supported] = this.subject.supportedBy(key);
    return this.selection.chosen ?? supported ?? this.rows.stops.response?.dataset.key;
  }
}

/** Return whether a key presses buttons. */
function isPress(key) {
  return key === "Enter" || key === " ";
}
