/* What a label or a person says of a record's sentences, and the words and signs for it. */

/** Marks that a document sentence can carry: letter, and words for on and off. */
const MARKS = {
  relevant: { letter: "R", on: "relevant", off: "not relevant" },
  utilized: { letter: "U", on: "utilized", off: "not utilized" },
};

const VERDICTS = {
  supported: { letter: "✓", words: "supported", look: "good" },
  unsupported: { letter: "✗", words: "not supported", look: "bad" },
  undecided: { letter: "?", words: "not judged", look: "unsure" },
};

/** Support that names no sentence, in words for a person. */
const SPECIAL_SUPPORT = {
  supported_without_sentence: "supported, but by no sentence in particular",
  general: "a general statement that needs no support",
  well_known_fact: "a fact that everybody knows",
  numerical_reasoning: "follows by reckoning",
};

/** What a label says, sentence by sentence. */
class LabelFacts {
  /** @param {object} label a LabelView. */
  constructor(label) {
    this.relevant = new Set(label.relevant);
    this.utilized = new Set(label.utilized);
    this.support = label.support;
    this.overall = label.overall;
  }

  /** Name of the verdict on a response sentence, one of {@link VERDICTS}. */
  verdict(key) {
    return verdictName(ownValue(this.support, key)?.supported ?? null);
  }

  /** What supports a response sentence: document keys and special strings. */
  keys(key) {
    return ownValue(this.support, key)?.keys ?? [];
  }

  /** Why a response sentence was judged so. */
  explanation(key) {
    return ownValue(this.support, key)?.explanation ?? "";
  }
}

/** What a person's judgement says, sentence by sentence. */
class JudgementFacts {
  /** @param {object} judgement with `judged`, which tells what the person has decided on. */
  constructor(judgement) {
    this.relevant = new Set(judgement.relevant);
    this.utilized = new Set(judgement.utilized);
    this.support = judgement.support;
    this.judged = judgement.judged;
    /** @type {?boolean} null until the person has come to a verdict on the whole. */
    this.overall = judgement.overall_supported;
  }

  /** Name of the verdict on a response sentence, one of {@link VERDICTS}. */
  verdict(key) {
    const decided = Boolean(ownValue(this.judged, key));
    return verdictName(decided ? Boolean(ownValue(this.support, key)) : null);
  }

  /** What supports a response sentence: document keys and special strings. */
  keys(key) {
    return ownValue(this.support, key) ?? [];
  }
}

/** Name of a verdict, one of {@link VERDICTS}; null is none yet. */
function verdictName(supported) {
  if (supported === null) return "undecided";
  return supported ? "supported" : "unsupported";
}

/** An object's own value, so that no key can reach what objects inherit. */
function ownValue(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** What a label says of a document sentence, in words. */
function documentSays(facts, key) {
  return Object.entries(MARKS)
    .map(([field, { on, off }]) => (facts[field].has(key) ? on : off))
    .join(", ");
}

/** What a label says of a response sentence, in words. */
function responseSays(facts, key) {
  const keys = facts.keys(key);
  const by = keys.length ? ` by ${[...keys].sort().join(", ")}` : "";
  return `${VERDICTS[facts.verdict(key)].words}${by}`;
}
