/* Draws one record: question, documents, response, and what a judge or a person said of them. */

/** Marks that a sentence can carry: letter, words, and the colour's class. */
const MARKS = {
  relevant: { letter: "R", on: "relevant", off: "not relevant" },
  utilized: { letter: "U", on: "utilized", off: "not utilized" },
};

const VERDICTS = {
  supported: { letter: "✓", words: "supported", look: "good" },
  unsupported: { letter: "✗", words: "not supported", look: "bad" },
  undecided: { letter: "?", words: "not judged", look: "unsure" },
};

const CLAIM_VERDICTS = {
  entailment: { letter: "✓", look: "good" },
  neutral: { letter: "–", look: "unsure" },
  contradiction: { letter: "✗", look: "bad" },
};

/** Support that names no sentence, in words for a person. */
const SPECIAL_SUPPORT = {
  supported_without_sentence: "supported, but by no sentence in particular",
  general: "a general statement that needs no support",
  well_known_fact: "a fact that everybody knows",
  numerical_reasoning: "follows by reckoning",
};

/** From this many sentences on, documents out of sight are not laid out. */
const MANY_SENTENCES = 300;
/** Response sentences beyond which the panel keeps one height, so that the list above it keeps still. */
const FITTING_SENTENCES = 6;
/** Kinds of findings beyond these are folded away. */
const KINDS_AT_ONCE = 4;
/** Characters of an explanation beyond which it is folded. */
const SHORT_EXPLANATION = 240;
/** Keys of one list beyond these are folded away. */
const KEYS_AT_ONCE = 12;
const SEVERITIES = ["contradiction", "suspicion", "note"];

/**
 * Draw a record.
 * @param {object} view a RecordView, see `labeler/pages/views.py`.
 * @param {object} [options]
 * @param {?string} [options.focus] key of the sentence to focus once the node is in the page.
 * @param {function(string): void} [options.onFocus] told the key of the sentence that has the focus.
 * @param {Array<{name: string, label: object}>} [options.labels] other labels of the same sentences;
 *   what they say otherwise is marked.
 * @param {string} [options.labelName] what the view's own label is called beside others.
 * @param {?{judgement: object, toggle: function(string, ?string): void,
 *   toggleSupport: function(string, string): void}} [options.edit] a person's judgement, drawn in
 *   place of the label, and what to call when it is to change; the caller then calls `update`.
 * @param {boolean} [options.hidden] draw no verdict of the judge, and nothing that follows from one.
 * @param {Object<string, {title: string, why: string}>} [options.checks] what findings are called.
 * @returns {{node: HTMLElement, focus: function(string): boolean, update: function(object): void}}
 */
function drawRecord(view, options = {}) {
  const drawing = new RecordDrawing(view, options);
  if (options.focus) requestAnimationFrame(() => drawing.focus(options.focus));
  return {
    node: drawing.node,
    focus: (key) => drawing.focus(key),
    update: (judgement) => drawing.update(judgement),
  };
}

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
    const entry = ownValue(this.support, key);
    if (!entry) return "undecided";
    return entry.supported ? "supported" : "unsupported";
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
    this.overall = judgement.overall_supported;
  }

  /** Name of the verdict on a response sentence, one of {@link VERDICTS}. */
  verdict(key) {
    if (!ownValue(this.judged, key)) return "undecided";
    return ownValue(this.support, key) ? "supported" : "unsupported";
  }

  /** What supports a response sentence: document keys and special strings. */
  keys(key) {
    return ownValue(this.support, key) ?? [];
  }
}

/** An object's own value, so that no key can reach what objects inherit. */
function ownValue(object, key) {
  return object && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A record in the page, and which of its sentences a person looks at. */
class RecordDrawing {
  constructor(view, options) {
    this.view = view;
    this.options = options;
    this.edit = options.edit ?? null;
    this.label = options.hidden ? null : view.label;
    this.judge = this.label ? new LabelFacts(this.label) : null;
    this.facts = this.edit ? new JudgementFacts(this.edit.judgement) : this.judge;
    this.others = (options.labels ?? []).map(({ name, label }) => ({
      name,
      facts: new LabelFacts(label),
    }));
    /** Rows of the page by key. */
    this.documents = new Map();
    this.response = new Map();
    this.reference = new Map();
    /** The response sentence that was last chosen, and what has the focus or lies under the pointer. */
    this.chosen = null;
    this.focused = null;
    this.pointed = null;
    this.lit = new Set();
    this.node = this.draw();
    this.listen();
    this.paint();
    this.explain();
  }

  // What is drawn once.

  /** Draw all of it. */
  draw() {
    this.documentsPane = this.drawDocuments();
    this.responsePane = this.drawResponse();
    this.panel = this.drawPanel();
    const long = this.view.response.length > FITTING_SENTENCES;
    const side = el(
      "div",
      { class: long ? "record-side long" : "record-side" },
      this.responsePane,
      this.panel,
    );
    this.body = el("div", { class: "record-body" }, this.documentsPane, side);
    return el(
      "article",
      { class: this.edit ? "record editing" : "record" },
      this.drawHead(),
      this.drawFindings(),
      this.body,
      el(
        "div",
        { class: "record-more" },
        this.drawMetrics(),
        this.drawReference(),
        this.drawMade(),
      ),
    );
  }

  /** Name, question, and the judgement in one line. */
  drawHead() {
    this.chips = el("ul", { class: "chips", role: "list" });
    return el(
      "header",
      { class: "record-head" },
      el(
        "p",
        { class: "record-id" },
        el("span", { class: "small muted" }, "Record "),
        el("code", { dir: "auto" }, shownText(this.view.id)),
      ),
      el("h2", { class: "question", dir: "auto" }, shownText(this.view.question)),
      this.chips,
    );
  }

  /** What the audit found, the worst first. */
  drawFindings() {
    const findings = this.options.hidden ? [] : this.view.findings;
    if (findings.length === 0) return null;
    const kinds = alike(findings, ({ check }) => check);
    const worstFirst = kinds.sort(
      ([a], [b]) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity),
    );
    const rows = worstFirst.map((kind) => this.drawFindingsOfKind(kind));
    const rest = rows.slice(KINDS_AT_ONCE);
    return el(
      "section",
      { class: "findings", "aria-label": "Findings" },
      el("h3", {}, counted(findings.length, "finding")),
      el("ul", { role: "list" }, rows.slice(0, KINDS_AT_ONCE)),
      rest.length > 0 &&
        el(
          "details",
          {},
          el("summary", {}, `${counted(rest.length, "more kind", "more kinds")} of findings`),
          el("ul", { role: "list" }, rest),
        ),
    );
  }

  /** What one check found: the first of it, the rest folded away. */
  drawFindingsOfKind([first, ...rest]) {
    const about = ownValue(this.options.checks, first.check);
    return el(
      "li",
      { class: "finding" },
      el(
        "span",
        { class: `chip ${first.severity}`, title: about?.title ?? first.check },
        first.severity,
      ),
      el(
        "div",
        { class: "finding-text" },
        this.drawMessage(first),
        about && el("span", { class: "why small muted" }, about.why),
        rest.length > 0 &&
          el(
            "details",
            {},
            el("summary", {}, `${rest.length} more of this kind`),
            el(
              "ul",
              { role: "list" },
              rest.map((finding) => el("li", {}, this.drawMessage(finding))),
            ),
          ),
      ),
    );
  }

  /** A finding in words, with links to its sentences. */
  drawMessage(finding) {
    return [
      el("span", { dir: "auto" }, shownText(finding.message)),
      " ",
      this.keyLinks(finding.keys),
    ];
  }

  /** The documents with their sentences, in retrieval order. */
  drawDocuments() {
    const { documents } = this.view;
    const many = documents.reduce((sum, sentences) => sum + sentences.length, 0) > MANY_SENTENCES;
    return el(
      "section",
      { class: many ? "record-documents many" : "record-documents", "aria-label": "Documents" },
      el("h3", {}, counted(documents.length, "document")),
      this.drawLegend(),
      this.label && this.drawJudgeSays("Relevance", this.label.relevance_explanation),
      documents.map((sentences, index) =>
        el(
          "section",
          { class: "document" },
          el("h4", {}, `Document ${index}`),
          sentences.length === 0 && el("p", { class: "small muted" }, "It has no sentences."),
          this.drawSentences(sentences, this.documents, (sentence) =>
            this.drawDocumentSentence(sentence),
          ),
        ),
      ),
    );
  }

  /** What the letters mean. */
  drawLegend() {
    if (!this.facts) return null;
    return el(
      "p",
      { class: "legend small muted" },
      el("span", { class: "mark relevant" }, "R"),
      " relevant ",
      el("span", { class: "mark utilized" }, "U"),
      " utilized",
    );
  }

  /** An explanation of the judge that is about no single sentence; a long one is folded. */
  drawJudgeSays(title, text) {
    if (!text) return null;
    const words = el("span", { dir: "auto" }, shownText(text));
    const paragraph = el("p", { class: "judge-says small" }, el("strong", {}, `${title}: `), words);
    if (text.length <= SHORT_EXPLANATION) return paragraph;
    paragraph.classList.add("folded");
    const unfold = (event) => {
      const folded = paragraph.classList.toggle("folded");
      event.target.setAttribute("aria-expanded", String(!folded));
      event.target.textContent = folded ? "Show all" : "Show less";
    };
    const button = { type: "button", class: "plain unfold no-print", "aria-expanded": "false" };
    return [paragraph, el("button", { ...button, onclick: unfold }, "Show all")];
  }

  /** A list of sentences; it is one stop of the Tab key, arrows go on inside. */
  drawSentences(sentences, rows, drawOne) {
    return el(
      "ol",
      { class: "sentences", role: "list" },
      sentences.map((sentence) => {
        const row = drawOne(sentence);
        rows.set(sentence.key, row);
        return row;
      }),
    );
  }

  /** A sentence with its key and marks. */
  drawRow(sentence, part, marks, ...more) {
    return el(
      "li",
      { class: "sentence", "data-key": sentence.key, "data-part": part, tabindex: "-1" },
      el("span", { class: "key" }, sentence.key),
      el("span", { class: "marks" }, marks),
      el(
        "div",
        { class: "sentence-text" },
        el("span", { class: "text", dir: "auto" }, shownText(sentence.text)),
        more,
      ),
    );
  }

  /** A document sentence: relevant or not, utilized or not. */
  drawDocumentSentence(sentence) {
    const { key } = sentence;
    const marks = Object.keys(MARKS).map((field) => this.drawMark(field, key));
    const link = this.edit && this.drawLink(key);
    return this.drawRow(sentence, "document", [marks, link], this.drawOthers(key, documentSays));
  }

  /** A mark of a document sentence; without editing, only where it is set. */
  drawMark(field, key) {
    const { letter, on } = MARKS[field];
    if (this.edit) {
      return el(
        "button",
        {
          type: "button",
          class: `mark ${field}`,
          "data-field": field,
          tabindex: "-1",
          onclick: () => this.toggle(field, key),
        },
        letter,
      );
    }
    const set = this.facts?.[field].has(key);
    return el(
      "span",
      set
        ? { class: `mark ${field}`, role: "img", "aria-label": on, title: on }
        : { class: "mark" },
      set ? letter : "\u00a0",
    );
  }

  /** The button that makes a document sentence support the chosen response sentence, or no more. */
  drawLink(key) {
    return el("button", {
      type: "button",
      class: "mark link",
      tabindex: "-1",
      hidden: true,
      onclick: () => this.toggleSupport(key),
    });
  }

  /** What other labels say otherwise of a sentence. */
  drawOthers(key, say) {
    if (!this.judge) return null;
    const own = say(this.judge, key);
    return this.others
      .map(({ name, facts }) => ({ name, said: say(facts, key) }))
      .filter(({ said }) => said !== own)
      .map(({ name, said }) => [
        " ",
        el("span", { class: "chip other" }, el("strong", {}, `${name}: `), said),
      ]);
  }

  /** The response with its sentences. */
  drawResponse() {
    this.overall = el("div", { class: "overall" });
    return el(
      "section",
      { class: "record-response", "aria-label": "Response" },
      el("h3", {}, "Response"),
      this.overall,
      this.label && this.drawJudgeSays("Overall", this.label.overall_explanation),
      this.view.response.length === 0 && el("p", { class: "small muted" }, "It has no sentences."),
      this.drawSentences(this.view.response, this.response, (sentence) =>
        this.drawResponseSentence(sentence),
      ),
    );
  }

  /** A response sentence: its verdict, its support, its claims. */
  drawResponseSentence(sentence) {
    const { key } = sentence;
    const mark = this.edit
      ? el("button", {
          type: "button",
          class: "mark verdict",
          tabindex: "-1",
          onclick: () => this.toggle("supported", key),
        })
      : el("span", { class: "mark verdict", role: "img" });
    return this.drawRow(
      sentence,
      "response",
      this.facts && mark,
      el("span", { class: "support" }),
      this.drawOthers(key, responseSays),
      this.label?.claims && this.drawClaims(this.label.claims, key, "documents"),
      this.judge &&
        el("p", { class: "print-only small", dir: "auto" }, shownText(this.judge.explanation(key))),
    );
  }

  /** The claims that a sentence makes, and what the other side says of them. */
  drawClaims(claims, key, by) {
    const own = claims.filter((claim) => claim.sentence === key);
    if (own.length === 0) return el("p", { class: "small muted" }, "No claim.");
    return el(
      "ul",
      { class: "claims", role: "list" },
      own.map((claim) =>
        el(
          "li",
          {},
          claimVerdict(claim.verdict, `by the ${by}`),
          el("span", { class: "text", dir: "auto" }, shownText(claim.claim)),
          claim.supporting.length > 0 && [" ", this.keyLinks(claim.supporting)],
          claim.contradicting.length > 0 && [" against ", this.keyLinks(claim.contradicting)],
          claim.relevant === false && [" ", el("span", { class: "chip note" }, "off the question")],
          claim.reference_verdict && [
            " ",
            el("span", { class: "small muted" }, "reference: "),
            claimVerdict(claim.reference_verdict, "by the reference answer"),
          ],
        ),
      ),
    );
  }

  /** What is said of the sentence that a person looks at. */
  drawPanel() {
    this.explanation = el("div", { class: "explanation", "aria-live": "polite" });
    this.specials = this.edit ? this.drawSpecials() : null;
    return el(
      "section",
      { class: "record-panel", "aria-label": "The sentence in focus", hidden: !this.facts },
      this.explanation,
      this.specials,
    );
  }

  /** Buttons for support that names no sentence. */
  drawSpecials() {
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
            onclick: () => this.toggleSupport(name),
          },
          name,
        ),
      ),
    );
  }

  /** The metrics of this record. */
  drawMetrics() {
    const metrics = this.options.hidden ? [] : Object.entries(this.view.metrics);
    if (metrics.length === 0) return null;
    return el(
      "details",
      { open: true, class: "record-metrics" },
      el("summary", {}, "Metrics"),
      el(
        "table",
        {},
        el(
          "tbody",
          {},
          metrics.map(([name, metric]) =>
            el(
              "tr",
              {},
              el("th", { scope: "row" }, name),
              el("td", { class: "number" }, metric.text),
            ),
          ),
        ),
      ),
    );
  }

  /** The reference answer, and what the response makes of its claims. */
  drawReference() {
    const sentences = this.view.reference;
    if (sentences === null || sentences.length === 0) return null;
    const claims = this.label?.reference_claims;
    const drawOne = (sentence) =>
      this.drawRow(
        sentence,
        "reference",
        null,
        claims && this.drawClaims(claims, sentence.key, "response"),
      );
    this.referencePart = el(
      "details",
      { class: "record-reference" },
      el("summary", {}, "Reference answer", claims && ` and ${counted(claims.length, "claim")}`),
      this.drawSentences(sentences, this.reference, drawOne),
    );
    return this.referencePart;
  }

  /** Signature, key, and what else is known of row and label. */
  drawMade() {
    const { signature, key, made, metadata } = this.view;
    const facts = [["signature", signature], ["key", key], ...Object.entries(made)];
    return el(
      "details",
      { class: "record-made" },
      el("summary", {}, "How it was made"),
      factList(facts),
      Object.keys(metadata).length > 0 && [
        el("h4", {}, "Other columns"),
        factList(Object.entries(metadata)),
      ],
    );
  }

  /** Buttons that lead to sentences; what is no sentence stands as a chip. */
  keyLinks(keys) {
    const nodes = keys.map((key) => {
      if (this.knows(key))
        return el(
          "button",
          { type: "button", class: "key", "data-goto": key, title: `Go to sentence ${key}` },
          key,
        );
      return el(
        "span",
        {
          class: "chip special",
          title: ownValue(SPECIAL_SUPPORT, key) ?? "no sentence of this record",
        },
        shownText(key),
      );
    });
    const spaced = (some) => some.flatMap((node, index) => (index ? [" ", node] : [node]));
    if (nodes.length <= KEYS_AT_ONCE) return spaced(nodes);
    const rest = nodes.splice(KEYS_AT_ONCE);
    return [
      ...spaced(nodes),
      " ",
      el("details", { class: "more-keys" }, el("summary", {}, `${rest.length} more`), spaced(rest)),
    ];
  }

  /** Whether a key is that of a sentence here. */
  knows(key) {
    return this.texts().has(key);
  }

  /** Keys of all sentences; known before their rows are drawn. */
  texts() {
    this.known ??= new Set(
      [...this.view.documents.flat(), ...this.view.response, ...(this.view.reference ?? [])].map(
        ({ key }) => key,
      ),
    );
    return this.known;
  }

  // What changes with the judgement.

  /** Draw another judgement of the same record. */
  update(judgement) {
    this.facts = new JudgementFacts(judgement);
    this.paint();
    this.look();
  }

  /** Draw the judgement into what stands there. */
  paint() {
    this.chips.replaceChildren(...this.summary());
    if (!this.facts) return;
    this.paintOverall();
    for (const [key, row] of this.response) this.paintResponse(key, row);
    for (const [key, row] of this.documents) this.paintDocument(key, row);
    this.supports = this.invertedSupport();
  }

  /** The judgement in one line. */
  summary() {
    const chips = [];
    const { facts, view } = this;
    if (facts) {
      const decided = view.response.filter(({ key }) => facts.verdict(key) !== "undecided");
      const supported = decided.filter(({ key }) => facts.verdict(key) === "supported");
      const sentences = this.documents.size;
      if (!this.edit)
        chips.push(
          facts.overall ? ["good", "✓ supported overall"] : ["bad", "✗ not supported overall"],
        );
      chips.push([
        supported.length < view.response.length ? "bad" : "good",
        `${supported.length} of ${counted(view.response.length, "sentence")} supported`,
      ]);
      chips.push(
        ["", `${facts.relevant.size} of ${grouped(sentences)} relevant`],
        ["", `${facts.utilized.size} utilized`],
      );
    }
    if (!this.options.hidden && view.doubt !== null)
      chips.push(["", `doubt ${view.doubt.toFixed(2)}`]);
    return chips.map(([look, words]) => el("li", { class: `chip ${look}` }, words));
  }

  /** Draw the button of the overall verdict. */
  paintOverall() {
    if (!this.edit) return;
    const { overall } = this.facts;
    this.overallButton ??= el("button", {
      type: "button",
      class: "overall-button",
      onclick: () => this.toggle("overall", null),
    });
    if (!this.overallButton.isConnected) this.overall.append(this.overallButton);
    this.overallButton.textContent = overall
      ? "✓ supported as a whole"
      : "✗ not supported as a whole";
    this.overallButton.setAttribute("aria-pressed", String(overall));
    this.overallButton.classList.toggle(
      "changed",
      this.judge !== null && this.judge.overall !== overall,
    );
  }

  /** Draw the judgement of a response sentence. */
  paintResponse(key, row) {
    const verdict = this.facts.verdict(key);
    const { letter, words, look } = VERDICTS[verdict];
    const mark = $(".mark.verdict", row);
    const judged = this.edit && this.judge ? this.judge.verdict(key) : verdict;
    const judge = judged === verdict ? "" : ` (the judge: ${VERDICTS[judged].words})`;
    mark.className = `mark verdict ${look}${judge ? " changed" : ""}`;
    mark.textContent = letter;
    mark.title = `${words}${judge}`;
    mark.setAttribute("aria-label", `${words}${judge}`);
    row.classList.toggle("unsupported", verdict === "unsupported");
    const keys = this.facts.keys(key);
    $(".support", row).replaceChildren(...(keys.length ? [" ", ...this.keyLinks(keys)] : []));
  }

  /** Draw the judgement of a document sentence. */
  paintDocument(key, row) {
    for (const field of Object.keys(MARKS)) {
      const set = this.facts[field].has(key);
      row.classList.toggle(field, set);
      if (this.edit) this.paintMark($(`[data-field=${field}]`, row), field, key, set);
    }
  }

  /** Draw a mark that can be turned. */
  paintMark(button, field, key, set) {
    const { on, off } = MARKS[field];
    const differs = this.judge !== null && this.judge[field].has(key) !== set;
    button.setAttribute("aria-pressed", String(set));
    button.setAttribute("aria-label", `${on}: sentence ${key}`);
    button.title = `${set ? on : off}${differs ? ` (the judge: ${set ? off : on})` : ""}`;
    button.classList.toggle("changed", differs);
  }

  /** Response keys by the document keys that support them. */
  invertedSupport() {
    const found = new Map();
    for (const key of this.response.keys()) {
      for (const by of this.facts.keys(key)) found.set(by, [...(found.get(by) ?? []), key]);
    }
    return found;
  }

  // What changes with the sentence that a person looks at.

  /** Take part in what a person does in the record. */
  listen() {
    for (const rows of [this.documents, this.response, this.reference]) {
      const first = rows.values().next().value;
      if (first) this.makeStop(rows, first);
    }
    this.node.addEventListener("focusin", (event) => this.onFocus(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    this.body.addEventListener("mouseover", (event) => this.onPointer(event));
    this.body.addEventListener("mouseleave", () => this.point(null));
  }

  /** A sentence, or a button in it, has the focus. */
  onFocus(event) {
    const row = event.target.closest(".sentence");
    if (!row) return;
    const { key } = row.dataset;
    this.makeStop(this.rowsOf(row), row);
    if (this.focused === key) return;
    this.focused = key;
    this.pointed = null;
    if (this.response.has(key)) this.chosen = key;
    this.look();
    this.explain();
    this.options.onFocus?.(key);
  }

  /** A key was clicked: go to its sentence. */
  onClick(event) {
    const link = event.target.closest("[data-goto]");
    if (link) this.focus(link.dataset.goto);
  }

  /** The pointer is over a sentence, the panel, or neither. */
  onPointer(event) {
    if (event.target.closest(".record-panel")) {
      if (this.focused) this.point(null);
      return;
    }
    const row = event.target.closest(".sentence");
    this.point(row ? row.dataset.key : null);
  }

  /** Look at the sentence under the pointer; null for none. */
  point(key) {
    if (this.pointed === key) return;
    this.pointed = key;
    this.look();
    this.explain();
  }

  /** Let one row of a list, and the buttons in it, be where the Tab key stops. */
  makeStop(rows, row) {
    const before = rows.stop;
    if (before === row) return;
    for (const [node, stop] of [
      [before, "-1"],
      [row, "0"],
    ]) {
      if (!node) continue;
      node.setAttribute("tabindex", stop);
      for (const button of node.querySelectorAll("button")) button.setAttribute("tabindex", stop);
    }
    rows.stop = row;
  }

  /** The rows of the part that a row stands in. */
  rowsOf(row) {
    return this[row.dataset.part === "document" ? "documents" : row.dataset.part];
  }

  /** Row of a sentence, whichever part it stands in. */
  row(key) {
    return this.documents.get(key) ?? this.response.get(key) ?? this.reference.get(key);
  }

  /**
   * Focus a sentence and bring it into sight.
   * @param {string} key its key.
   * @returns {boolean} whether the record has it.
   */
  focus(key) {
    const row = this.row(key);
    if (!row) return false;
    for (let part = row.closest("details"); part; part = part.parentElement.closest("details"))
      part.open = true;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest", behavior: "instant" });
    return true;
  }

  /** Light what belongs to the sentence that is looked at. */
  look() {
    const key = this.pointed ?? this.focused;
    const lit = new Set(this.litBy(key));
    for (const old of this.lit) if (!lit.has(old)) this.row(old)?.classList.remove("lit");
    for (const now of lit) if (!this.lit.has(now)) this.row(now)?.classList.add("lit");
    this.lit = lit;
    this.markCurrent(key);
    this.reveal(key, lit);
    if (this.edit) this.paintLinks();
  }

  /** Keys of the sentences to light beside one. */
  litBy(key) {
    if (!this.facts || key === null) return [];
    if (this.response.has(key)) return this.facts.keys(key);
    const supported = this.supports.get(key) ?? [];
    return this.edit && this.chosen ? [...supported, ...this.facts.keys(this.chosen)] : supported;
  }

  /** Mark the sentence that is looked at, and the chosen one. */
  markCurrent(key) {
    const row = key === null ? null : this.row(key);
    if (this.current === row) return;
    this.current?.removeAttribute("aria-current");
    row?.setAttribute("aria-current", "true");
    this.current = row;
    this.picked?.classList.remove("chosen");
    this.picked = this.chosen === null ? null : this.response.get(this.chosen);
    this.picked?.classList.add("chosen");
  }

  /** Scroll the other column, where it scrolls by itself, until something lit is in sight. */
  reveal(key, lit) {
    const other = this.response.has(key) ? this.documents : this.response;
    const pane = other === this.documents ? this.documentsPane : this.responsePane;
    if (pane.scrollHeight <= pane.clientHeight) return;
    const rows = [...lit].map((one) => other.get(one)).filter(Boolean);
    const view = pane.getBoundingClientRect();
    const tops = rows.map((row) => row.getBoundingClientRect()).filter((box) => box.height > 0);
    if (tops.length === 0 || tops.some((box) => box.top >= view.top && box.bottom <= view.bottom))
      return;
    const top = Math.min(...tops.map((box) => box.top));
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    pane.scrollTo({
      top: pane.scrollTop + top - view.top - view.height / 4,
      behavior: still ? "instant" : "smooth",
    });
  }

  /** Name the chosen response sentence on the buttons that link documents to it. */
  paintLinks() {
    const keys = new Set(this.chosen === null ? [] : this.facts.keys(this.chosen));
    for (const [key, row] of this.documents) {
      const button = $(".mark.link", row);
      const set = keys.has(key);
      button.hidden = this.chosen === null;
      button.textContent = this.chosen === null ? "" : `→${this.chosen}`;
      button.setAttribute("aria-pressed", String(set));
      button.setAttribute("aria-label", `${key} supports ${this.chosen}`);
      button.title = set ? `supports ${this.chosen}` : `does not support ${this.chosen}`;
    }
    this.specials.hidden = this.chosen === null;
    for (const button of this.specials.children) {
      button.setAttribute("aria-pressed", String(keys.has(button.dataset.special)));
    }
  }

  /** Say in the panel what is said of the sentence that is looked at. */
  explain() {
    const key = this.pointed ?? this.focused;
    if (!this.facts) return;
    this.explanation.replaceChildren(...this.explained(key).flat(Infinity).filter(isShown));
  }

  /** What the panel says of a sentence. */
  explained(key) {
    if (key === null) return [el("p", { class: "muted small" }, this.hint())];
    if (this.response.has(key)) return this.explainedResponse(key);
    const supported = this.supports?.get(key) ?? [];
    return [
      el(
        "p",
        { class: "explanation-head" },
        el("span", { class: "key" }, key),
        this.facts &&
          this.documents.has(key) &&
          Object.entries(MARKS)
            .map(([field, { on, off }]) => [" ", this.facts[field].has(key) ? on : off])
            .join(", ")
            .replaceAll(" ,", " "),
      ),
      supported.length > 0 && el("p", {}, "Supports ", this.keyLinks(supported)),
      this.chosen &&
        supported.length === 0 &&
        el("p", {}, "Back to ", this.keyLinks([this.chosen])),
    ];
  }

  /** What the panel says of a response sentence: each verdict and why. */
  explainedResponse(key) {
    const head = (name, facts) => {
      const { letter, words, look } = VERDICTS[facts.verdict(key)];
      const keys = facts.keys(key);
      return el(
        "p",
        { class: "explanation-head" },
        el("span", { class: "key" }, key),
        name && el("strong", {}, name),
        el("span", { class: `chip ${look}` }, `${letter} ${words}`),
        keys.length > 0 ? [" by ", this.keyLinks(keys)] : null,
      );
    };
    const why = (facts) =>
      facts.explanation(key) &&
      el("p", { dir: "auto", class: "text" }, shownText(facts.explanation(key)));
    const judge = this.edit
      ? "The judge"
      : this.others.length
        ? (this.options.labelName ?? "")
        : "";
    return [
      this.edit && head("You", this.facts),
      this.judge && [head(judge, this.judge), why(this.judge)],
      this.judge && this.others.map(({ name, facts }) => [head(name, facts), why(facts)]),
    ];
  }

  /** What the panel says before any sentence is looked at. */
  hint() {
    if (this.edit)
      return "Choose a response sentence, then the document sentences that support it.";
    return "Point at a sentence of the response, or move to it by keyboard, to see why it was judged so.";
  }

  // Keys and changes.

  /** A key was pressed in a sentence. */
  onKey(event) {
    const row = event.target.closest(".sentence");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const onButton = event.target.closest("button") !== null;
    if (onButton && (event.key === "Enter" || event.key === " ")) return;
    if (
      this.move(event.key, row) ||
      (this.edit ? this.editBy(event.key, row) : this.jump(event.key, row))
    ) {
      event.preventDefault();
    }
  }

  /** Go to another sentence of the same part, or across with left and right. */
  move(pressed, row) {
    const rows = [...this.rowsOf(row).values()];
    const at = rows.indexOf(row);
    const to = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) }[
      pressed
    ];
    if (to) return this.focus(to.dataset.key);
    if (pressed === "ArrowLeft" && row.dataset.part === "response") return this.cross(row);
    if (pressed === "ArrowRight" && row.dataset.part === "document") return this.cross(row);
    return ["ArrowDown", "ArrowUp"].includes(pressed);
  }

  /** Go across by Enter or the space bar, where nothing is edited. */
  jump(pressed, row) {
    return (pressed === "Enter" || pressed === " ") && this.cross(row);
  }

  /** From a response sentence to its first support, from a document sentence back. */
  cross(row) {
    const { key, part } = row.dataset;
    if (part === "reference") return false;
    const to =
      part === "response"
        ? (this.litBy(key).find((one) => this.documents.has(one)) ??
          this.documents.stop?.dataset.key)
        : (this.chosen ?? this.supports?.get(key)?.[0] ?? this.response.stop?.dataset.key);
    return to !== undefined && this.focus(to);
  }

  /** Change the judgement by a key. */
  editBy(pressed, row) {
    const { key, part } = row.dataset;
    const field = { document: { r: "relevant", u: "utilized" }, response: { s: "supported" } }[
      part
    ]?.[pressed];
    if (field) return this.toggle(field, key);
    if (pressed !== "Enter" && pressed !== " ") return false;
    return part === "document" ? this.toggleSupport(key) : this.cross(row);
  }

  /** Turn one verdict. */
  toggle(field, key) {
    this.edit.toggle(field, key);
    this.explain();
    return true;
  }

  /** Turn whether something supports the chosen response sentence. */
  toggleSupport(key) {
    if (this.chosen === null) return false;
    this.edit.toggleSupport(this.chosen, key);
    this.explain();
    return true;
  }
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

/** The verdict on a claim. */
function claimVerdict(verdict, by) {
  const { letter, look } = ownValue(CLAIM_VERDICTS, verdict) ?? { letter: "?", look: "unsure" };
  return el("span", { class: `chip ${look}`, title: `${verdict} ${by}` }, `${letter} ${verdict}`);
}

/** Facts by name. */
function factList(facts) {
  return el(
    "dl",
    { class: "fact-list" },
    facts.map(([name, fact]) => [
      el("dt", { dir: "auto" }, shownText(name)),
      el("dd", { dir: "auto" }, shownText(fact)),
    ]),
  );
}
