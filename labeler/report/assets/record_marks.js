/* The marks of a record's sentences; where a person judges they are buttons. */

/** Draws marks once, and paints each judgement into them. */
class SentenceMarks {
  /**
   * @param {RecordSubject} subject the record.
   * @param {SentenceRows} rows where the marks stand.
   * @param {{toggle: function(string, string), toggleSupport: function(string)}} act turns marks.
   */
  constructor(subject, rows, act) {
    this.subject = subject;
    this.rows = rows;
    this.act = act;
  }

  /** Marks of a document sentence: relevant or not, utilized or not. */
  drawDocument(key) {
    const marks = Object.keys(MARKS).map((field) => this.drawMark(field, key));
    return [marks, this.subject.edit && this.drawLink(key)];
  }

  /** A mark of a document sentence; without editing, only where it is set. */
  drawMark(field, key) {
    const { letter, on } = MARKS[field];
    if (this.subject.edit)
      return this.drawButton(field, () => this.act.toggle(field, key), letter, field);
    if (!this.subject.facts?.[field].has(key)) return el("span", { class: "mark" }, "\u00a0");
    const said = { role: "img", "aria-label": on, title: on };
    return el("span", { class: `mark ${field}`, ...said }, letter);
  }

  /** The button that makes a document sentence support the chosen response sentence, or no more. */
  drawLink(key) {
    const link = this.drawButton("link", () => this.act.toggleSupport(key));
    link.hidden = true;
    return link;
  }

  /** The verdict on a response sentence. */
  drawVerdict(key) {
    const { edit, facts } = this.subject;
    if (edit) return this.drawButton("verdict", () => this.act.toggle("supported", key));
    return facts && el("span", { class: "mark verdict", role: "img" });
  }

  /** A mark that can be pressed. */
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

  /** What other labels say otherwise of a sentence. */
  drawOthers(key, say) {
    const { judge, others } = this.subject;
    if (!judge) return null;
    const own = say(judge, key);
    return others
      .map(({ name, facts }) => ({ name, said: say(facts, key) }))
      .filter(({ said }) => said !== own)
      .map(({ name, said }) => [
        " ",
        el("span", { class: "chip other" }, el("strong", {}, `${name}: `), said),
      ]);
  }

  /** Draw the judgement into what stands there. */
  paint() {
    for (const [key, row] of this.rows.response) this.paintResponse(key, row);
    for (const [key, row] of this.rows.document) this.paintDocument(key, row);
  }

  /** Draw the judgement of a response sentence. */
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

  /** Draw the judgement of a document sentence. */
  paintDocument(key, row) {
    for (const field of Object.keys(MARKS)) {
      const set = this.subject.facts[field].has(key);
      row.classList.toggle(field, set);
      if (this.subject.edit) this.paintMark($(`[data-field=${field}]`, row), field, key, set);
    }
  }

  /** Draw a mark that can be turned. */
  paintMark(button, field, key, set) {
    const { on, off } = MARKS[field];
    const { judge } = this.subject;
    const differs = judge !== null && judge[field].has(key) !== set;
    button.setAttribute("aria-pressed", String(set));
    button.setAttribute("aria-label", `${on}: sentence ${key}`);
    button.title = `${set ? on : off}${differs ? ` (the judge: ${set ? off : on})` : ""}`;
    button.classList.toggle("changed", differs);
  }

  /** Name the chosen response sentence on the buttons that link documents to it; null is none. */
  paintLinks(chosen) {
    const keys = new Set(chosen === null ? [] : this.subject.facts.keys(chosen));
    for (const [key, row] of this.rows.document) {
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
