/* The record that is drawn: its sentences, and whose word on them counts. */

/** A record, its label, and what else is said of it. */
class RecordSubject {
  /** What {@link drawRecord} is given. */
  constructor(view, options) {
    this.view = view;
    this.hidden = Boolean(options.hidden);
    this.edit = options.edit ?? null;
    this.checks = options.checks;
    this.label = this.hidden ? null : view.label;
    this.labelName = options.labelName ?? "";
    /** What the judge says; null where it is hidden. */
    this.judge = this.label ? new LabelFacts(this.label) : null;
    this.others = (options.labels ?? []).map(({ name, label }) => ({
      name,
      label,
      facts: new LabelFacts(label),
    }));
    const { documents, response, reference } = view;
    this.keys = new Set(
      [...documents.flat(), ...response, ...(reference ?? [])].map(({ key }) => key),
    );
    this.take(this.edit ? new JudgementFacts(this.edit.judgement) : this.judge);
  }

  /** Let facts count: those of the judge, or of a person. */
  take(facts) {
    this.facts = facts;
    this.supported = new Map();
    if (!facts) return;
    for (const { key } of this.view.response) {
      for (const by of facts.keys(key))
        this.supported.set(by, [...(this.supported.get(by) ?? []), key]);
    }
  }

  /** Whether a key is that of a sentence here. */
  knows(key) {
    return this.keys.has(key);
  }

  /** Response sentences that a document sentence supports. */
  supportedBy(key) {
    return this.supported.get(key) ?? [];
  }

  /**
   * The response sentence to show before a person looks at any: the first that is not supported,
   * else the first; null where nothing is to be told.
   */
  firstToSee() {
    if (!this.judge) return null;
    const keys = this.view.response.map(({ key }) => key);
    return keys.find((key) => this.facts.verdict(key) === "unsupported") ?? keys[0] ?? null;
  }
}
