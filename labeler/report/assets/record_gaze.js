/* Which sentence of a record a person looks at, and what is lit beside it. */

/** What has the focus, lies under the pointer, or was chosen last. */
class RecordGaze {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows its sentences.
   * @param {function(): void} onLook called when another sentence is looked at, or the judgement
   *   has changed.
   */
  constructor(subject, rows, onLook) {
    this.subject = subject;
    this.rows = rows;
    this.onLook = onLook;
    /** What is shown until a person looks at anything. */
    this.resting = subject.firstToSee();
    this.focused = null;
    this.pointed = null;
    /** The response sentence that had the focus last. */
    this.chosen = null;
    this.lit = new Set();
  }

  /** Key of the sentence that is looked at, or null. */
  get key() {
    return this.pointed ?? this.focused ?? this.resting;
  }

  /** Whether nobody has looked at anything yet. */
  get atRest() {
    return this.pointed === null && this.focused === null;
  }

  /**
   * A sentence has the focus.
   * @returns {boolean} whether another one had it before.
   */
  focus(key) {
    if (this.focused === key) return false;
    this.focused = key;
    this.pointed = null;
    if (this.rows.response.has(key)) this.chosen = key;
    this.look();
    return true;
  }

  /** The pointer is over a sentence; null for none. */
  point(key) {
    if (this.pointed === key) return;
    this.pointed = key;
    this.look();
  }

  /** Light what belongs to the sentence that is looked at. */
  look() {
    const { key } = this;
    const lit = new Set(this.litBy(key));
    for (const old of this.lit) if (!lit.has(old)) this.rows.row(old)?.classList.remove("lit");
    for (const now of lit) if (!this.lit.has(now)) this.rows.row(now)?.classList.add("lit");
    this.lit = lit;
    this.markCurrent(key);
    this.markChosen();
    this.reveal(key);
    this.onLook();
  }

  /** Keys of the sentences to light beside one. */
  litBy(key) {
    const { facts, edit } = this.subject;
    if (!facts || key === null) return [];
    if (this.rows.response.has(key)) return facts.keys(key);
    const supported = this.subject.supportedBy(key);
    return edit && this.chosen ? [...supported, ...facts.keys(this.chosen)] : supported;
  }

  /** Mark the sentence that is looked at. */
  markCurrent(key) {
    const row = key === null ? null : this.rows.row(key);
    if (this.current === row) return;
    this.current?.removeAttribute("aria-current");
    row?.setAttribute("aria-current", "true");
    this.current = row;
  }

  /** Mark the chosen response sentence. */
  markChosen() {
    const row = this.chosen === null ? null : this.rows.response.get(this.chosen);
    if (this.picked === row) return;
    this.picked?.classList.remove("chosen");
    row?.classList.add("chosen");
    this.picked = row;
  }

  /** Scroll the other column, where it scrolls by itself, until something lit is in sight. */
  reveal(key) {
    const other = this.rows.response.has(key) ? this.rows.document : this.rows.response;
    const rows = [...this.lit].map((one) => other.get(one)).filter(Boolean);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    showInPane(rows, still ? "instant" : "smooth");
  }

  /** Bring what is shown at first into sight, once the record is in the page. */
  begin() {
    if (!this.atRest || this.resting === null) return;
    const rows = [...this.lit].map((one) => this.rows.document.get(one)).filter(Boolean);
    showInPane([this.rows.response.get(this.resting)], "instant");
    showInPane(rows, "instant");
  }
}

/**
 * Scroll the column that rows stand in, and nothing else, until one of them is in sight.
 * @param {HTMLElement[]} rows of one column.
 * @param {ScrollBehavior} behavior how.
 */
function showInPane(rows, behavior) {
  const pane = rows[0]?.closest(".record-documents, .record-response");
  if (!pane || pane.scrollHeight <= pane.clientHeight) return;
  const view = pane.getBoundingClientRect();
  const boxes = rows.map((row) => row.getBoundingClientRect()).filter((box) => box.height > 0);
  if (boxes.length === 0 || boxes.some((box) => box.top >= view.top && box.bottom <= view.bottom))
    return;
  const top = Math.min(...boxes.map((box) => box.top));
  pane.scrollTo({ top: pane.scrollTop + top - view.top - view.height / 4, behavior });
}
