/* The record to draw: its sentences and labels. */

/** A record, its label, other labels, and the judgment being edited. */
class RecordSubject {
  /** Takes the arguments of {@link drawRecord}. */
  constructor(view, options) {
    this.view = view;
    this.hidden = Boolean(options.hidden);
    this.edit = options.edit ?? null;
    this.checks = options.checks;
    this.label = this.hidden ? null : view.label;
    this.labelName = options.labelName ?? "";
    /** The judge's label; null if hidden. */
    this.judge = this.label ? new LabelFacts(this.label) : null;
    this.others = (options.labels ?? []).map(({ name, label }) => ({
      name,
      label,
      facts: new LabelFacts(label),
    }));
    const { documents, response, reference, history = [], tool_outputs: outputs = [] } = view;
    const conversation = [...history, ...outputs].flatMap(({ sentences }) => sentences);
    const shown = [...documents.flat(), ...response, ...(reference ?? []), ...conversation];
    this.keys = new Set(shown.map(({ key }) => key));
    this.take(this.edit ? new JudgmentFacts(this.edit.judgment) : this.judge);
  }

  /** Set the facts to draw: the judge's or a person's. */
  take(facts) {
    this.facts = facts;
    this.supported = new Map();
    if (!facts) return;
    for (const { key } of this.view.response) {
      for (const by of facts.keys(key))
        this.supported.set(by, [...(this.supported.get(by) ?? []), key]);
    }
  }

  /** Return whether the record has a sentence. */
  knows(key) {
    return this.keys.has(key);
  }

  /** Return the response sentences that a document sentence supports. */
  supportedBy(key) {
    return this.supported.get(key) ?? [];
  }

  /**
   * Return the initially selected response sentence: the first unsupported one, else the first
   * undecided one while editing, else the first; null if the label is hidden and not edited.
   */
  initialKey() {
    if (!this.judge && !this.edit) return null;
    const keys = this.view.response.map(({ key }) => key);
    const first = (verdict) => keys.find((key) => this.facts.verdict(key) === verdict);
    return first("unsupported") ?? (this.edit && first("undecided")) ?? keys[0] ?? null;
  }
}
