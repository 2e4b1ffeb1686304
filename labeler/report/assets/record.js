/* Draws one record: question, documents, response, and what a judge or a person said of them. */

/** From this many sentences on, documents out of sight are not laid out. */
const MANY_SENTENCES = 300;
/** Response sentences beyond which the panel keeps one height, so that the list above it keeps still. */
const FITTING_SENTENCES = 6;
/** Characters of an explanation beyond which it is folded. */
const SHORT_EXPLANATION = 240;

/**
 * Draw a record. Until a person looks at a sentence, what is said of the first one that is not
 * supported is shown; that takes no focus.
 * @param {object} view a RecordView, see `labeler/report/views.py`.
 * @param {object} [options]
 * @param {?string} [options.focus] key of the sentence to focus once the node is in the page.
 * @param {function(string): void} [options.onFocus] told the key of the sentence that has the focus.
 * @param {Array<{name: string, label: object}>} [options.labels] other labels of the same sentences;
 *   what they say otherwise is marked.
 * @param {string} [options.labelName] what the view's own label is called beside others.
 * @param {?{judgement: object, toggle: function(string, ?string): void,
 *   toggleSupport: function(string, string): void}} [options.edit] a person's judgement, drawn in
 *   place of the label, and what to call when it is to change; the caller then calls `update`.
 *   `judgement.judged` names the response sentences that the person decided on;
 *   `judgement.overall_supported` is null until they did so on the whole.
 * @param {boolean} [options.hidden] draw no verdict of the judge, and nothing that follows from one.
 * @param {Object<string, {title: string, why: string}>} [options.checks] what findings are called.
 * @returns {{node: HTMLElement, focus: function(string): boolean, update: function(object): void}}
 */
function drawRecord(view, options = {}) {
  const drawing = new RecordDrawing(view, options);
  requestAnimationFrame(() => {
    if (options.focus) drawing.rows.focus(options.focus);
    drawing.selection.showInitial();
  });
  return {
    node: drawing.node,
    focus: (key) => drawing.rows.focus(key),
    update: (judgement) => drawing.update(judgement),
  };
}

/** A record in the page: lays it out, and lets its parts know of each other. */
class RecordDrawing {
  constructor(view, options) {
    this.view = view;
    this.onSentence = options.onFocus;
    this.subject = new RecordSubject(view, options);
    const act = {
      toggle: (field, key) => this.toggle(field, key),
      toggleSupport: (key) => this.toggleSupport(key),
    };
    this.rows = new SentenceRows();
    this.marks = new SentenceMarks(this.subject, this.rows, act);
    this.panel = new ExplanationPanel(this.subject, act.toggleSupport);
    this.overall = this.subject.edit
      ? new OverallButton(this.subject, () => act.toggle("overall", null))
      : null;
    this.selection = new RecordSelection(this.subject, this.rows, () => this.onSelect());
    this.keys = new SentenceKeys(this.subject, this.rows, this.selection, act);
    this.node = this.draw();
    this.listen();
    this.paint();
    this.selection.update();
  }

  // What is drawn once.

  /** Draw all of it. */
  draw() {
    this.chips = el("ul", { class: "chips", role: "list" });
    const documents = this.drawDocuments();
    const response = this.drawResponse();
    const long = this.view.response.length > FITTING_SENTENCES;
    const side = { class: long ? "record-side long" : "record-side" };
    this.body = el(
      "div",
      { class: "record-body" },
      documents,
      el("div", side, response, this.panel.node),
    );
    return el(
      "article",
      { class: this.subject.edit ? "record editing" : "record" },
      drawRecordHead(this.view, this.chips),
      drawFindings(this.subject),
      this.body,
      el(
        "div",
        { class: "record-more" },
        drawRecordMetrics(this.subject),
        this.drawReference(),
        drawRecordMade(this.view),
      ),
    );
  }

  /** The documents with their sentences, in retrieval order. */
  drawDocuments() {
    const { documents } = this.view;
    const { label, facts } = this.subject;
    const many = documents.flat().length > MANY_SENTENCES;
    return el(
      "section",
      { class: many ? "record-documents many" : "record-documents", "aria-label": "Documents" },
      el("h3", {}, counted(documents.length, "document")),
      facts && drawLegend(),
      label && drawJudgeSays("Relevance", label.relevance_explanation),
      documents.map((sentences, index) =>
        el(
          "section",
          { class: "document" },
          el("h4", {}, `Document ${index}`),
          sentences.length === 0 && el("p", { class: "small muted" }, "It has no sentences."),
          this.rows.draw("document", sentences, (key) => ({
            marks: this.marks.drawDocument(key),
            more: this.marks.drawOthers(key, documentSays),
          })),
        ),
      ),
    );
  }

  /** The response with its sentences. */
  drawResponse() {
    const { response } = this.view;
    const { label } = this.subject;
    return el(
      "section",
      { class: "record-response", "aria-label": "Response" },
      el("h3", {}, "Response"),
      el("div", { class: "overall" }, this.overall?.node),
      label && drawJudgeSays("Overall", label.overall_explanation),
      response.length === 0 && el("p", { class: "small muted" }, "It has no sentences."),
      this.rows.draw("response", response, (key) => ({
        marks: this.marks.drawVerdict(key),
        more: this.drawUnderResponse(key),
      })),
    );
  }

  /** What stands under a response sentence: its support, what others say, its claims. */
  drawUnderResponse(key) {
    const { judge } = this.subject;
    return [
      el("span", { class: "support" }),
      this.marks.drawOthers(key, responseSays),
      drawClaims(this.subject, "claims", key),
      judge &&
        el("p", { class: "print-only small", dir: "auto" }, shownText(judge.explanation(key))),
    ];
  }

  /** The reference answer, and what the response makes of its claims. */
  drawReference() {
    const sentences = this.view.reference;
    if (sentences === null || sentences.length === 0) return null;
    const claims = this.subject.label?.reference_claims;
    return el(
      "details",
      { class: "record-reference" },
      el("summary", {}, "Reference answer", claims && ` and ${counted(claims.length, "claim")}`),
      this.rows.draw("reference", sentences, (key) => ({
        marks: null,
        more: drawClaims(this.subject, "reference_claims", key),
      })),
    );
  }

  // What changes with the judgement.

  /** Draw another judgement of the same record. */
  update(judgement) {
    this.subject.take(new JudgementFacts(judgement));
    this.paint();
    this.selection.update();
  }

  /** Draw the judgement into what stands there. */
  paint() {
    this.chips.replaceChildren(...summaryChips(this.subject));
    if (!this.subject.facts) return;
    this.overall?.paint();
    this.marks.paint();
  }

  /** Turn one verdict. */
  toggle(field, key) {
    this.subject.edit.toggle(field, key);
    return true;
  }

  /** Turn whether something supports the chosen response sentence. */
  toggleSupport(key) {
    if (this.selection.chosen === null) return false;
    this.subject.edit.toggleSupport(this.selection.chosen, key);
    return true;
  }

  // The selection.

  /** Take part in what a person does in the record. */
  listen() {
    this.rows.makeFirstStops();
    this.node.addEventListener("focusin", (event) => this.onFocus(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
    this.node.addEventListener("keydown", (event) => this.keys.onKey(event));
    this.body.addEventListener("mouseover", (event) => this.onPointer(event));
    this.body.addEventListener("mouseleave", () => this.selection.point(null));
  }

  /** A sentence, or a button in it, has the focus. */
  onFocus(event) {
    const row = event.target.closest(".sentence");
    if (!row) return;
    this.rows.makeStop(row);
    const { key } = row.dataset;
    if (this.selection.focus(key)) this.onSentence?.(key);
  }

  /** A key was clicked: go to its sentence. */
  onClick(event) {
    const link = event.target.closest("[data-goto]");
    if (link) this.rows.focus(link.dataset.goto);
  }

  /** The pointer is over a sentence, the panel, or neither. */
  onPointer(event) {
    if (event.target.closest(".record-panel")) {
      if (this.selection.focused !== null) this.selection.point(null);
      return;
    }
    this.selection.point(event.target.closest(".sentence")?.dataset.key ?? null);
  }

  /** The selection or its judgement has changed. */
  onSelect() {
    this.panel.show(this.selection);
    if (this.subject.edit) this.marks.paintLinks(this.selection.chosen);
  }
}

/** What the letters mean. */
function drawLegend() {
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
function drawJudgeSays(title, text) {
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
