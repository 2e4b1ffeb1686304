/* Labels and judgments by sentence, and the words and signs for them. */

/** Marks of document sentences: letter, and words for on and off. */
const MARKS = {
  relevant: { letter: "R", on: "relevant", off: "not relevant" },
  utilized: { letter: "U", on: "utilized", off: "not utilized" },
};

const VERDICTS = {
  supported: { letter: "✓", words: "supported", look: "good" },
  unsupported: { letter: "✗", words: "not supported", look: "bad" },
  undecided: { letter: "?", words: "not judged", look: "unsure" },
};

/** Descriptions of the special support strings. */
const SPECIAL_SUPPORT = {
  supported_without_sentence: "supported, but by no single sentence",
  general: "a general statement that needs no support",
  well_known_fact: "a well-known fact",
  numerical_reasoning: "follows from a calculation",
};

/** A label by sentence. */
class LabelFacts {
  /** @param {object} label a LabelView. */
  constructor(label) {
    this.relevant = new Set(label.relevant);
    this.utilized = new Set(label.utilized);
    this.support = label.support;
    this.overall = label.overall;
  }

  /** Return the verdict on a response sentence, a key of {@link VERDICTS}. */
  verdict(key) {
    return verdictName(ownValue(this.support, key)?.supported ?? null);
  }

  /** Return the document keys and special strings that support a response sentence. */
  keys(key) {
    return ownValue(this.support, key)?.keys ?? [];
  }

  /** Return the explanation of a response sentence. */
  explanation(key) {
    return ownValue(this.support, key)?.explanation ?? "";
  }
}

/** A person's judgment by sentence. */
class JudgmentFacts {
  /** @param {object} judgment a judgment; `judged` has the decided response sentences. */
  constructor(judgment) {
    this.relevant = new Set(judgment.relevant);
    this.utilized = new Set(judgment.utilized);
    this.support = judgment.support;
    this.judged = judgment.judged;
    /** @type {?boolean} null until the person has decided. */
    this.overall = judgment.overall_supported;
  }

  /** Return the verdict on a response sentence, a key of {@link VERDICTS}. */
  verdict(key) {
    const decided = Boolean(ownValue(this.judged, key));
    return verdictName(decided ? Boolean(ownValue(this.support, key)) : null);
  }

  /** Return the document keys and special strings that support a response sentence. */
  keys(key) {
    return ownValue(this.support, key) ?? [];
  }
}

/** Return the key of a verdict in {@link VERDICTS}; null is undecided. */
function verdictName(supported) {
  if (supported === null) return "undecided";
  return supported ? "supported" : "unsupported";
}

/** Return an object's own value, so keys from data never reach inherited properties. */
function ownValue(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Describe the label of a document sentence. */
function documentWords(facts, key) {
  return Object.entries(MARKS)
    .map(([field, { on, off }]) => (facts[field].has(key) ? on : off))
    .join(", ");
}

/** Describe the label of a response sentence. */
function responseWords(facts, key) {
  const keys = facts.keys(key);
  const by = keys.length ? ` by ${[...keys].sort().join(", ")}` : "";
  return `${VERDICTS[facts.verdict(key)].words}${by}`;
}
