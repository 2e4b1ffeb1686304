/* The panel of a record: what is said of the sentence that a person looks at. */

/** Explanations, and buttons for support that names no sentence. */
class ExplanationPanel {
  /**
   * @param {RecordSubject} subject the record.
   * @param {function(string): void} toggleSupport what the buttons do.
   */
  constructor(subject, toggleSupport) {
    this.subject = subject;
    this.explanation = el("div", { class: "explanation", "aria-live": "polite" });
    this.specials = subject.edit ? drawSpecials(toggleSupport) : null;
    this.node = el(
      "section",
      { class: "record-panel", "aria-label": "The sentence in focus", hidden: !subject.facts },
      this.explanation,
      this.specials,
    );
  }

  /** Say what is said of the sentence that is looked at. */
  show(selection) {
    if (!this.subject.facts) return;
    const { key, isInitial } = selection;
    const told = [key !== null && this.explained(key, selection.chosen), isInitial && this.hint(key)];
    // It never shrinks: what lies under the pointer would move away, and the panel change again.
    this.explanation.style.minHeight = `${this.explanation.offsetHeight}px`;
    this.explanation.replaceChildren(...told.flat(Infinity).filter(isShown));
    if (this.specials) this.paintSpecials(selection.chosen);
  }

  /** What the panel says of a sentence. */
  explained(key, chosen) {
    if (this.subject.view.response.some((sentence) => sentence.key === key))
      return this.explainedResponse(key);
    const supported = this.subject.supportedBy(key);
    return [
      el(
        "p",
        { class: "explanation-head" },
        el("span", { class: "key" }, key),
        this.isOfDocument(key) && ` ${documentSays(this.subject.facts, key)}`,
      ),
      supported.length > 0 && el("p", {}, "Supports ", keyLinks(this.subject, supported)),
      chosen &&
        supported.length === 0 &&
        el("p", {}, "Back to ", keyLinks(this.subject, [chosen])),
    ];
  }

  /** Whether a sentence is one of the documents. */
  isOfDocument(key) {
    return this.subject.view.documents.flat().some((sentence) => sentence.key === key);
  }

  /** What the panel says of a response sentence: each verdict and why. */
  explainedResponse(key) {
    const { subject } = this;
    const { edit, judge, others, facts } = subject;
    const why = (said) =>
      said.explanation(key) &&
      el("p", { dir: "auto", class: "text" }, shownText(said.explanation(key)));
    const judgeName = edit ? "The judge" : others.length > 0 ? subject.labelName : "";
    return [
      edit && this.drawVerdict(key, "You", facts),
      judge && [this.drawVerdict(key, judgeName, judge), why(judge)],
      judge && others.map((one) => [this.drawVerdict(key, one.name, one.facts), why(one.facts)]),
    ];
  }

  /** A verdict on a response sentence, whose it is, and what supports it. */
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

  /** What the panel says until a person looks at a sentence. */
  hint(key) {
    const words = this.subject.edit
      ? "Choose a response sentence, then the document sentences that support it."
      : `Point at ${key === null ? "a" : "another"} sentence of the response, or move to it by keyboard, to see why it was judged so.`;
    return el("p", { class: "muted small" }, words);
  }

  /** Show which special support the chosen response sentence has. */
  paintSpecials(chosen) {
    const keys = chosen === null ? [] : this.subject.facts.keys(chosen);
    this.specials.hidden = chosen === null;
    for (const button of this.specials.children)
      button.setAttribute("aria-pressed", String(keys.includes(button.dataset.special)));
  }
}

/** Buttons for support that names no sentence. */
function drawSpecials(toggleSupport) {
  return el(
    "div",
    {
      class: "specials",
      role: "group",
      "aria-label": "Support that names no sentence",
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
