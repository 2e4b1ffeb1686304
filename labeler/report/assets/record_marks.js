/* The marks of sentences; while editing they are buttons. */

/** Marks, drawn once and updated to each judgment. */
class SentenceMarks {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows the rows of the sentences.
   * @param {{toggle: function(string, string), toggleSupport: function(string)}} act toggles marks.
   */
  constructor(subject, rows, act) {
    this.subject = subject;
    this.rows = rows;
    this.act = act;
  }

  /** Draw the marks of a document sentence: relevant, utilized. */
  drawDocument(key) {
    const marks = Object.keys(MARKS).map((field) => this.drawMark(field, key));
    return [marks, this.subject.edit && this.drawLink(key)];
  }

  /** Draw a mark of a document sentence; only if it is set, unless editing. */
  drawMark(field, key) {
    const { letter, on } = MARKS[field];
    if (this.subject.edit)
      return this.drawButton(field, () => this.act.toggle(field, key), letter, field);
    if (!this.subject.facts?.[field].has(key)) return el("span", { class: "mark" }, "\u00a0");
    const label = { role: "img", "aria-label": on, title: on };
    return el("span", { class: `mark ${field}`, ...label }, letter);
  }

  /** Draw the button that toggles a sentence as support of the chosen response sentence. */
  drawLink(key) {
    const link = this.drawButton("link", () => this.act.toggleSupport(key));
    link.hidden = true;
    return link;
  }

  /** Draw the verdict on a response sentence. */
  drawVerdict(key) {
    const { edit, facts } = this.subject;
    if (edit) return this.drawButton("verdict", () => this.act.toggle("supported", key));
    return facts && el("span", { class: "mark verdict", role: "img" });
  }

  /** Draw a mark as a button. */
  drawButton(look, press, letter = "", field = null) {
    return el(
      "button",
      {
        type: "button",
        class: `mark ${look}`,
        "data-field": field,
        tabindex: "-1",
        onclick: press,
      },
      letter,
    );
  }

  /** Draw the differences of other labels on a sentence. */
  drawOthers(key, describe) {
    const { judge, others } = this.subject;
    if (!judge) return null;
    const own = describe(judge, key);
    return others
      .map(({ name, facts }) => ({ name, words: describe(facts, key) }))
      .filter(({ words }) => words !== own)
      .map(({ name, words }) => [
        " ",
        el("span", { class: "chip other" }, el("strong", {}, `${name}: `), words),
      ]);
  }

  /** Update all marks to the judgment. */
  paint() {
    for (const [key, row] of this.rows.response) this.paintResponse(key, row);
    for (const [key, row] of this.rows.document) this.paintDocument(key, row);
  }

  /** Update the marks of a response sentence. */
  paintResponse(key, row) {
    const { facts, edit, judge } = this.subject;
    const verdict = facts.verdict(key);
    const { letter, words, look } = VERDICTS[verdict];
    const judged = edit && judge ? judge.verdict(key) : verdict;
    const differs = judged === verdict ? "" : ` (the judge: ${VERDICTS[judged].words})`;
    const mark = $(".mark.verdict", row);
    mark.className = `mark verdict ${look}${differs ? " changed" : ""}`;
    mark.textContent = letter;
    mark.title = `${words}${differs}`;
    mark.setAttribute("aria-label", `${words}${differs}`);
    row.classList.toggle("unsupported", verdict === "unsupported");
    const keys = facts.keys(key);
    const links = keys.length > 0 ? [" ", ...keyLinks(this.subject, keys)] : [];
    $(".support", row).replaceChildren(...links);
  }

  /** Update the marks of a document sentence. */
  paintDocument(key, row) {
    for (const field of Object.keys(MARKS)) {
      const set = this.subject.facts[field].has(key);
      row.classList.toggle(field, set);
      if (this.subject.edit) this.paintMark($(`[data-field=${field}]`, row), field, key, set);
    }
  }

  /** Update a mark that is a button. */
  paintMark(button, field, key, set) {
    const { on, off } = MARKS[field];
    const { judge } = this.subject;
    const differs = judge !== null && judge[field].has(key) !== set;
    button.setAttribute("aria-pressed", String(set));
    button.setAttribute("aria-label", `${on}: sentence ${key}`);
    button.title = `${set ? on : off}${differs ? ` (the judge: ${set ? off : on})` : ""}`;
    button.classList.toggle("changed", differs);
  }

  /** Update the support buttons to the chosen response sentence; null hides them. */
  paintLinks(chosen) {
    const keys = new Set(chosen === null ? [] : this.subject.facts.keys(chosen));
    for (const [key, row] of [...this.rows.document, ...this.rows.conversation]) {
      const button = $(".mark.link", row);
      const set = keys.has(key);
      button.hidden = chosen === null;
      button.textContent = chosen === null ? "" : `→${chosen}`;
      button.setAttribute("aria-pressed", String(set));
      button.setAttribute("aria-label", `${key} supports ${chosen}`);
      button.title = set ? `supports ${chosen}` : `does not support ${chosen}`;
    }
  }
}
