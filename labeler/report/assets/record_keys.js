/* Keys in a record: from sentence to sentence, and, where a person judges, turning its marks. */

/** Fields that a letter turns, by the part in which a sentence stands. */
const FIELD_LETTERS = {
  document: { r: "relevant", u: "utilized" },
  response: { s: "supported" },
};

/** What keys do in a sentence. */
class SentenceKeys {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows its sentences.
   * @param {RecordSelection} selection the selected one.
   * @param {{toggle: function(string, string), toggleSupport: function(string)}} act turns marks.
   */
  constructor(subject, rows, selection, act) {
    this.subject = subject;
    this.rows = rows;
    this.selection = selection;
    this.act = act;
  }

  /** A key was pressed in the record. */
  onKey(event) {
    const row = event.target.closest(".sentence");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.closest("button") !== null;
    if (onButton && isPress(event.key)) return;
    if (this.move(event.key, row) || this.press(event.key, row)) event.preventDefault();
  }

  /** Go to another sentence of the same part, or across with left and right. */
  move(pressed, row) {
    const rows = [...this.rows.beside(row).values()];
    const at = rows.indexOf(row);
    const to = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[
      pressed
    ];
    if (to) return this.rows.focus(to.dataset.key);
    if (pressed === "ArrowLeft" && row.dataset.part === "response") return this.cross(row);
    if (pressed === "ArrowRight" && row.dataset.part === "document") return this.cross(row);
    return ["ArrowDown", "ArrowUp"].includes(pressed);
  }

  /** Turn a mark; or go across by Enter or the space bar, where that turns none. */
  press(pressed, row) {
    const { key, part } = row.dataset;
    const { edit } = this.subject;
    const field = edit && FIELD_LETTERS[part]?.[pressed];
    if (field) return this.act.toggle(field, key);
    if (!isPress(pressed)) return false;
    return edit && part === "document" ? this.act.toggleSupport(key) : this.cross(row);
  }

  /** From a response sentence to its first support, from a document sentence back. */
  cross(row) {
    const { key, part } = row.dataset;
    if (part === "reference") return false;
    const to = part === "response" ? this.supportOf(key) : this.answerTo(key);
    return to !== undefined && this.rows.focus(to);
  }

  /** The first document sentence that supports a response sentence, else where one was before. */
  supportOf(key) {
    const supporting = this.selection.relatedTo(key).find((one) => this.rows.document.has(one));
    return supporting ?? this.rows.stops.document?.dataset.key;
  }

  /** The response sentence that belongs to a document sentence. */
  answerTo(key) {
    const [supported] = this.subject.supportedBy(key);
    return this.selection.chosen ?? supported ?? this.rows.stops.response?.dataset.key;
  }
}

/** Whether a key presses buttons. */
function isPress(key) {
  return key === "Enter" || key === " ";
}
