/* Draws one record: conversation, question, documents, response, and their label or judgment. */

/** Number of sentences above which those out of sight are not laid out. */
const MANY_SENTENCES = 300;
/** Number of response sentences above which the panel has a fixed height, so the list does not move. */
const FITTING_SENTENCES = 6;
/** Characters above which an explanation is folded. While editing, the texts have precedence. */
const SHORT_EXPLANATION = 240;

/**
 * Draw a record. Until a person selects a sentence, the panel explains the first unsupported one,
 * without moving the focus.
 * @param {object} view a RecordView, see `labeler/report/views.py`.
 * @param {object} [options]
 * @param {?string} [options.focus] key of the sentence to focus once the node is in the page.
 * @param {function(string): void} [options.onFocus] called with the key of the focused sentence.
 * @param {Array<{name: string, label: object}>} [options.labels] other labels of the same sentences;
 *   their differences are marked.
 * @param {string} [options.labelName] name of the view's own label next to others.
 * @param {?{judgment: object, toggle: function(string, ?string): void,
 *   toggleSupport: function(string, string): void}} [options.edit] a person's judgment, drawn in
 *   place of the label, and callbacks that change it; the caller then calls `update`.
 *   `judgment.judged` has the response sentences that the person decided;
 *   `judgment.overall_supported` is null until the overall verdict is decided.
 * @param {boolean} [options.hidden] draw no verdict of the judge, and nothing derived from one.
 * @param {Object<string, {title: string, why: string}>} [options.checks] titles of the audit checks.
 * @returns {{node: HTMLElement, focus: function(string): boolean, focusSelected: function(): boolean,
 *   press: function(KeyboardEvent): boolean, update: function(object): void}} `press` handles a key
 *   press elsewhere in the page.
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
    focusSelected: () => drawing.selection.takeFocus(),
    press: (event) => drawing.keys.onKeyElsewhere(event),
    update: (judgment) => drawing.update(judgment),
  };
}

/** A record in the page: its layout, and the connections between its parts. */
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

  // Layout, drawn once.

  /** Draw the record. */
  draw() {
    this.chips = el("ul", { class: "chips", role: "list" });
    const link = (key) => this.subject.edit && this.marks.drawLink(key);
    const conversation = drawConversation(this.view, this.rows, link);
    const documents = this.drawDocuments();
    const response = this.drawResponse();
    const long = this.view.response.length > FITTING_SENTENCES;
    const side = { class: long ? "record-side long" : "record-side" };
    const many = this.subject.keys.size > MANY_SENTENCES;
    this.body = el(
      "div",
      { class: many ? "record-body many" : "record-body" },
      documents,
      el("div", side, response, this.panel.node),
    );
    return el(
      "article",
      { class: this.subject.edit ? "record editing" : "record" },
      drawRecordHead(this.view, this.chips, conversation),
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

  /** Draw the documents with their sentences, in retrieval order. */
  drawDocuments() {
    const { documents } = this.view;
    const { label, facts } = this.subject;
    return el(
      "section",
      { class: "record-documents", "aria-label": "Documents" },
      el("h3", {}, counted(documents.length, "document")),
      facts && drawLegend(this.subject.edit),
      label && drawExplanation("Relevance", label.relevance_explanation, this.subject.edit),
      documents.map((sentences, index) =>
        el(
          "section",
          { class: "document" },
          el("h4", {}, `Document ${index}`),
          sentences.length === 0 && el("p", { class: "small muted" }, "No sentences."),
          this.rows.draw("document", sentences, (key) => ({
            marks: this.marks.drawDocument(key),
            more: this.marks.drawOthers(key, documentWords),
          })),
        ),
      ),
    );
  }

  /** Draw the response with its sentences. */
  drawResponse() {
    const { response } = this.view;
    const { label } = this.subject;
    return el(
      "section",
      { class: "record-response", "aria-label": "Response" },
      el("div", { class: "response-head" }, el("h3", {}, "Response"), this.overall?.node),
      label && drawExplanation("Overall", label.overall_explanation, this.subject.edit),
      response.length === 0 && el("p", { class: "small muted" }, "No sentences."),
      this.rows.draw("response", response, (key, { cites }) => ({
        marks: this.marks.drawVerdict(key),
        more: [citationLinks(this.view, cites), this.drawUnderResponse(key)],
      })),
    );
  }

  /** Draw support, differences of other labels, and claims below a response sentence. */
  drawUnderResponse(key) {
    const { judge } = this.subject;
    return [
      el("span", { class: "support" }),
      this.marks.drawOthers(key, responseWords),
      drawClaims(this.subject, "claims", key),
      judge &&
        el("p", { class: "print-only small", dir: "auto" }, shownText(judge.explanation(key))),
    ];
  }

  /** Draw the reference answer with its claims. */
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

  // Updates after the judgment has changed.

  /** Draw another judgment of the same record. */
  update(judgment) {
    this.subject.take(new JudgmentFacts(judgment));
    this.paint();
    this.selection.update();
  }

  /** Update the drawing to the judgment. */
  paint() {
    this.chips.replaceChildren(...summaryChips(this.subject));
    if (!this.subject.facts) return;
    this.overall?.paint();
    this.marks.paint();
  }

  /** Toggle one verdict. */
  toggle(field, key) {
    this.subject.edit.toggle(field, key);
    return true;
  }

  /** Toggle a key as support of the chosen response sentence. */
  toggleSupport(key) {
    if (this.selection.chosen === null) return false;
    this.subject.edit.toggleSupport(this.selection.chosen, key);
    return true;
  }

  // The selection.

  /** Listen to focus, clicks and keys. The pointer alone selects nothing: it lies anywhere. */
  listen() {
    this.rows.makeFirstStops();
    this.node.addEventListener("focusin", (event) => this.onFocus(event));
    this.node.addEventListener("click", (event) => this.onClick(event));
    this.node.addEventListener("keydown", (event) => this.keys.onKey(event));
  }

  /** Handle focus on a sentence or on a button in it. */
  onFocus(event) {
    const row = event.target.closest(".sentence");
    if (!row) return;
    this.rows.makeStop(row);
    const { key } = row.dataset;
    if (this.selection.focus(key)) this.onSentence?.(key);
  }

  /** Handle a click on a sentence key: go to the sentence. */
  onClick(event) {
    const link = event.target.closest("[data-goto]");
    if (link) this.rows.focus(link.dataset.goto);
  }

  /** Handle a change of the selection or its judgment. */
  onSelect() {
    this.panel.show(this.selection);
    if (this.subject.edit) this.marks.paintLinks(this.selection.chosen);
  }
}

/** Draw the legend of the marks. */
function drawLegend(edit) {
  return el(
    "p",
    { class: "legend small muted" },
    el("span", { class: "mark relevant" }, "R"),
    " relevant ",
    el("span", { class: "mark utilized" }, "U"),
    " utilized",
    edit && [" ", el("span", { class: "mark link" }, "→"), " supports the selected response sentence"],
  );
}

/** Draw an explanation of the label as a whole; null without any. */
function drawExplanation(title, text, edit) {
  if (!text) return null;
  return el(
    "details",
    { class: "judge-says small", open: !edit && text.length <= SHORT_EXPLANATION },
    el("summary", {}, `${title} explanation`),
    el("p", { dir: "auto" }, shownText(text)),
  );
}
