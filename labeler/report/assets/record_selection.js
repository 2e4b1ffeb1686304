/* The selected sentence of a record, and the sentences highlighted with it. */

/** The sentence that has the focus, or the initial one. */
class RecordSelection {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows its sentences.
   * @param {function(): void} onSelect called after the selection or the judgment has changed.
   */
  constructor(subject, rows, onSelect) {
    this.subject = subject;
    this.rows = rows;
    this.onSelect = onSelect;
    /** The sentence shown until a person selects one. */
    this.initial = subject.initialKey();
    this.focused = null;
    /** The response sentence that had the focus last. */
    this.chosen = null;
    this.highlighted = new Set();
  }

  /** Key of the selected sentence, or null. */
  get key() {
    return this.focused ?? this.initial;
  }

  /** Whether a person has selected nothing yet. */
  get isInitial() {
    return this.focused === null;
  }

  /**
   * Select the sentence that has the focus.
   * @returns {boolean} true if the selection changed.
   */
  focus(key) {
    if (this.focused === key) return false;
    this.focused = key;
    if (this.rows.response.has(key)) this.chosen = key;
    this.update();
    return true;
  }

  /** Highlight the sentences that belong to the selected one. */
  update() {
    const { key } = this;
    const before = this.highlighted;
    this.highlighted = new Set(this.relatedTo(key));
    for (const old of before) this.rows.row(old)?.classList.remove("lit");
    for (const now of this.highlighted) this.rows.row(now)?.classList.add("lit");
    this.markCurrent(key);
    this.markChosen();
    this.reveal(key);
    this.onSelect();
  }

  /** Keys of the sentences to highlight with one. */
  relatedTo(key) {
    const { facts, edit } = this.subject;
    if (!facts || key === null) return [];
    if (this.rows.response.has(key)) return facts.keys(key);
    const supported = this.subject.supportedBy(key);
    return edit && this.chosen ? [...supported, ...facts.keys(this.chosen)] : supported;
  }

  /** Mark the selected sentence. */
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

  /** Scroll the other column, if it scrolls by itself, to a highlighted sentence. */
  reveal(key) {
    const other = this.rows.response.has(key) ? this.rows.document : this.rows.response;
    const rows = [...this.highlighted].map((one) => other.get(one)).filter(Boolean);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    showInPane(rows, still ? "instant" : "smooth");
  }

  /**
   * Focus the selected sentence, without scrolling the page.
   * @returns {boolean} whether there is one.
   */
  takeFocus() {
    const row = this.key === null ? null : this.rows.row(this.key);
    row?.focus({ preventScroll: true });
    return Boolean(row);
  }

  /** Scroll to the initial sentence, once the record is in the page. */
  showInitial() {
    if (this.initial === null || this.key !== this.initial) return;
    const rows = [...this.highlighted].map((one) => this.rows.document.get(one)).filter(Boolean);
    // While editing the page stays: a person must look at all of it.
    if (this.subject.edit) showInPane([this.rows.response.get(this.initial)], "instant");
    else this.rows.row(this.initial).scrollIntoView({ block: "nearest" });
    showInPane(rows, "instant");
  }
}

/**
 * Scroll only the column of some rows, until one of them is visible.
 * @param {HTMLElement[]} rows rows of one column.
 * @param {ScrollBehavior} behavior scroll behavior.
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
