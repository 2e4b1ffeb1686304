/* The panel that explains the selected sentence of a record. */

/** Explanations, and buttons for the special support strings. */
class ExplanationPanel {
  /**
   * @param {RecordSubject} subject the record.
   * @param {function(string): void} toggleSupport called with the special string of a pressed button.
   */
  constructor(subject, toggleSupport) {
    this.subject = subject;
    this.explanation = el("div", { class: "explanation", "aria-live": "polite" });
    this.specials = subject.edit ? drawSpecials(toggleSupport) : null;
    this.node = el(
      "section",
      // A stop of the Tab key: it scrolls if an explanation is long.
      { class: "record-panel", "aria-label": "Explanation", tabindex: "0", hidden: !subject.facts },
      this.explanation,
      this.specials,
    );
  }

  /** Explain the selected sentence. */
  show(selection) {
    if (!this.subject.facts) return;
    const { key, isInitial } = selection;
    const parts = [key !== null && this.explained(key, selection.chosen), isInitial && !this.subject.edit && this.hint()];
    this.explanation.replaceChildren(...parts.flat(Infinity).filter(isShown));
    if (this.specials) this.paintSpecials(selection.chosen);
  }

  /** Draw the explanation of a sentence. */
  explained(key, chosen) {
    if (this.subject.view.response.some((sentence) => sentence.key === key))
      return this.explainedResponse(key);
    const supported = this.subject.supportedBy(key);
    return [
      el(
        "p",
        { class: "explanation-head" },
        el("span", { class: "key" }, key),
        this.isOfDocument(key) && ` ${documentWords(this.subject.facts, key)}`,
      ),
      supported.length > 0 && el("p", {}, "Supports ", keyLinks(this.subject, supported)),
      chosen &&
        supported.length === 0 &&
        el("p", {}, "Back to ", keyLinks(this.subject, [chosen])),
    ];
  }

  /** Return whether a sentence belongs to a document. */
  isOfDocument(key) {
    return this.subject.view.documents.flat().some((sentence) => sentence.key === key);
  }

  /** Draw each verdict on a response sentence, with its explanation. */
  explainedResponse(key) {
    const { subject } = this;
    const { edit, judge, others, facts } = subject;
    const why = (source) =>
      source.explanation(key) &&
      el("p", { dir: "auto", class: "text" }, shownText(source.explanation(key)));
    const changed = edit && judge && responseWords(judge, key) !== responseWords(facts, key);
    const judgeName = changed ? "Judge" : others.length > 0 ? subject.labelName : "";
    return [
      edit && (changed || !judge) && this.drawVerdict(key, "You", facts),
      judge && [this.drawVerdict(key, judgeName, judge), why(judge)],
      judge && others.map((one) => [this.drawVerdict(key, one.name, one.facts), why(one.facts)]),
    ];
  }

  /** Draw a verdict on a response sentence with its source and support. */
  drawVerdict(key, name, facts) {
    const { letter, words, look } = VERDICTS[facts.verdict(key)];
    const keys = facts.keys(key);
    return el(
      "p",
      { class: "explanation-head" },
      el("span", { class: "key" }, key),
      name && el("strong", {}, name),
      el("span", { class: `chip ${look}` }, `${letter} ${words}`),
      keys.length > 0 && [" by ", keyLinks(this.subject, keys)],
    );
  }

  /** Draw the hint shown until a person selects a sentence. */
  hint() {
    return el("p", { class: "muted small" }, "Select any sentence to see its explanation.");
  }

  /** Update the buttons to the special support of the chosen response sentence. */
  paintSpecials(chosen) {
    const keys = chosen === null ? [] : this.subject.facts.keys(chosen);
    this.specials.hidden = chosen === null;
    for (const button of this.specials.children)
      button.setAttribute("aria-pressed", String(keys.includes(button.dataset.special)));
  }
}

/** Draw buttons for the special support strings. */
function drawSpecials(toggleSupport) {
  return el(
    "div",
    {
      class: "specials",
      role: "group",
      "aria-label": "Support without a sentence",
      hidden: true,
    },
    Object.entries(SPECIAL_SUPPORT).map(([name, words]) =>
      el(
        "button",
        {
          type: "button",
          class: "chip special",
          "data-special": name,
          title: words,
          onclick: () => toggleSupport(name),
        },
        name,
      ),
    ),
  );
}
