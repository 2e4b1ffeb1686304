/* The open record of a report, with links to its neighbors and the list. */

/** The open record. */
class RecordReader {
  /** @param {RecordBrowser} browser the browser, whose state names the record. */
  constructor(browser) {
    this.browser = browser;
    this.index = browser.index;
    this.chunks = new Chunks(browser.index.chunk_size);
    /** Row of the record shown or being loaded. */
    this.opened = null;
    this.drawing = null;
    this.node = el("div", { class: "record-part", hidden: true });
  }

  /** Show the record that the state names. */
  async show() {
    const { state } = this.browser;
    const row = this.index.find(state);
    if (row === undefined) {
      this.showMissing();
      return;
    }
    if (this.opened === row && this.drawing) {
      if (state.sentence !== null) this.drawing.focus(state.sentence);
      return;
    }
    this.opened = row;
    this.drawing = null;
    try {
      const view = await this.chunks.view(row);
      if (this.opened === row) this.place(row, view);
    } catch (error) {
      this.browser.fail(error);
    }
  }

  /** Show nothing. */
  clear() {
    this.opened = null;
    this.node.replaceChildren();
  }

  /** Put a record into the page, and focus it. */
  place(row, view) {
    const { sentence } = this.browser.state;
    this.drawing = "failed" in view ? drawFailure(view) : this.draw(view);
    this.node.replaceChildren(this.drawBar(row), this.drawing.node);
    const heading = $(".question", this.drawing.node);
    heading.tabIndex = -1;
    scrollTo({ top: 0 });
    if (sentence === null || !this.drawing.focus(sentence)) heading.focus({ preventScroll: true });
  }

  /** Draw a record; the address follows the focused sentence. */
  draw(view) {
    return drawRecord(view, {
      checks: this.index.checkById,
      onFocus: (key) => {
        this.browser.state.sentence = key;
        this.browser.address.write();
      },
    });
  }

  /** Draw the buttons for list and neighbors. */
  drawBar(row) {
    const { rows } = this.browser;
    const at = rows.indexOf(row);
    const place =
      at < 0
        ? "not in the filtered list"
        : `${grouped(at + 1)} of ${counted(rows.length, "record")}`;
    const step = (words, name, by) =>
      el(
        "button",
        {
          type: "button",
          disabled: this.neighbor(by) === undefined,
          title: name === "next" ? "j" : "k",
          onclick: () => this.step(by),
        },
        name === "previous" && icon(name),
        words,
        name === "next" && icon(name),
      );
    this.copied = el("span", { class: "small muted", role: "status" });
    return el(
      "div",
      { class: "record-bar no-print" },
      this.drawListButton(),
      step("Previous", "previous", -1),
      step("Next", "next", 1),
      el("span", { class: "small muted place" }, place),
      el("button", { type: "button", onclick: () => this.copyLink() }, icon("link"), "Copy link"),
      this.copied,
    );
  }

  /** Draw the button for the list. */
  drawListButton() {
    return el(
      "button",
      { type: "button", title: "Esc", onclick: () => this.browser.close() },
      icon("list"),
      "List",
    );
  }

  /** Show that the report lacks a linked record. */
  showMissing() {
    this.opened = null;
    const message = el(
      "p",
      { class: "notice bad", tabindex: "-1" },
      "This report has no record ",
      el("code", {}, shownText(this.browser.state.record)),
      ".",
    );
    this.node.replaceChildren(message, this.drawListButton());
    message.focus();
  }

  /** Return the previous or next filtered row. */
  neighbor(by) {
    const { rows } = this.browser;
    const at = rows.indexOf(this.opened);
    return at < 0 ? rows[by > 0 ? 0 : rows.length] : rows[at + by];
  }

  /** Open the previous or next record. */
  step(by) {
    const row = this.neighbor(by);
    if (row !== undefined) this.browser.open(row);
  }

  /** Copy the address of the record, or show it if copying is forbidden. */
  async copyLink() {
    this.browser.address.writeNow();
    try {
      await navigator.clipboard.writeText(location.href);
      this.copied.textContent = "Link copied.";
    } catch {
      const field = el("input", {
        type: "text",
        readonly: true,
        value: location.href,
        "aria-label": "Link to this record",
      });
      this.copied.replaceChildren("Copy: ", field);
      field.select();
    }
  }
}

/** Draw a failed row with its reason. */
function drawFailure(view) {
  const node = el(
    "article",
    { class: "record" },
    el(
      "p",
      { class: "record-id" },
      el("span", { class: "small muted" }, "Record "),
      el("code", { dir: "auto" }, shownText(view.id)),
    ),
    el("h2", { class: "question" }, "No label"),
    el("p", {}, el("span", { class: "chip bad" }, `failed: ${view.failed.reason}`)),
    el("p", { class: "notice bad failure", dir: "auto" }, shownText(view.failed.message)),
  );
  return { node, focus: () => false };
}
