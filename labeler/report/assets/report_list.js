/* The paged list of a report's records. */

const PAGE_SIZE = 50;

/** The filtered rows: a table, and buttons for its pages. */
class RecordList {
  /** @param {RecordBrowser} browser the browser. */
  constructor(browser) {
    this.browser = browser;
    this.index = browser.index;
    this.table = el("div", { class: "record-list" });
    this.pager = el("nav", { class: "pager no-print", "aria-label": "Pages" });
  }

  /** The filtered rows. */
  get rows() {
    return this.browser.rows;
  }

  /** Index of the first row shown. */
  get first() {
    return this.browser.state.page * PAGE_SIZE;
  }

  /** Draw the current page of the list, or the last one. */
  show() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE_SIZE));
    const { state } = this.browser;
    state.page = Math.min(state.page, pages - 1);
    const held = this.table.contains(document.activeElement) ? this.focusedRow() : null;
    this.table.replaceChildren(this.rows.length > 0 ? this.drawTable() : this.drawEmpty());
    if (held !== null) this.link(held)?.focus();
    this.showPager(pages);
  }

  /** Draw the message of an empty list. */
  drawEmpty() {
    const { running } = this.browser.search;
    const words = running ? "No match so far." : "No matching records.";
    return el("p", { class: "notice" }, words);
  }

  /** Draw the table of the page's records. */
  drawTable() {
    const columns = shownColumns(this.browser.state, this.index);
    const { subset } = this.index;
    const head = [
      ["support", "Support"],
      ["id", "Id"],
      [null, "Question"],
      subset.values.length > 0 && [null, subset.column ?? "Subset"],
      ...columns.map((id) => [id, id]),
      ["doubt", "Suspicion"],
      ["findings", "Findings"],
    ].filter(Boolean);
    const rows = this.rows.slice(this.first, this.first + PAGE_SIZE);
    return el(
      "table",
      { class: "records" },
      el("caption", { class: "visually-hidden" }, "Records"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map(([sort, words]) => this.drawHeading(sort, words)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => this.drawRow(row, columns)),
      ),
    );
  }

  /** Draw a heading; a sortable one is a button. */
  drawHeading(sort, words) {
    if (sort === null) return el("th", { scope: "col" }, words);
    const [by, descending] = this.index.orderOf(this.browser.state);
    const sorted = by === sort;
    const order = sorted ? (descending ? "descending" : "ascending") : null;
    const number = ["id", "support"].includes(sort) ? "" : "number";
    const button = el(
      "button",
      {
        type: "button",
        class: "plain sort",
        onclick: () => (this.browser.sortBy(sort), this.focusHeading(sort)),
        "data-sort": sort,
      },
      words,
      sorted && icon(descending ? "down" : "up"),
    );
    return el("th", { scope: "col", "aria-sort": order, class: number }, button);
  }

  /** Focus a heading that sorting has redrawn. */
  focusHeading(sort) {
    [...this.table.querySelectorAll("[data-sort]")]
      .find((button) => button.dataset.sort === sort)
      ?.focus();
  }

  /** Draw a record in the list. */
  drawRow(row, columns) {
    const { records, subset } = this.index;
    const failed = records.failed[row];
    const number = (name, value, digits) =>
      el(
        "td",
        { class: "number", "data-name": name },
        value === null ? "–" : value.toFixed(digits),
      );
    return el(
      "tr",
      { class: `row ${this.index.outcome(row)}`, onclick: (event) => this.onRowClick(event, row) },
      el("td", {}, this.drawOutcome(row)),
      el("th", { scope: "row" }, this.drawLink(row)),
      el(
        "td",
        { class: "row-question" },
        failed !== null && el("span", { class: "muted" }, failed),
        el("span", { dir: "auto" }, shownText(records.question[row])),
      ),
      subset.values.length > 0 &&
        el(
          "td",
          { class: "row-group", "data-name": subset.column ?? "subset", dir: "auto" },
          el("span", { class: "clamp" }, shownText(subset.values[records.subset[row]] ?? "–")),
        ),
      columns.map((metric) => {
        const value = this.index.value(metric, row);
        const cell = number(metric, value, 2);
        if (value >= 0 && value <= 1) cell.style.setProperty("--share", `${100 * value}%`);
        return cell;
      }),
      number("suspicion", records.doubt[row] ?? null, 2),
      number("findings", failed === null ? records.findings[row].length : null, 0),
    );
  }

  /** Draw the outcome of a row: the number of supported sentences, in color. */
  drawOutcome(row) {
    const outcome = this.index.outcome(row);
    const look = { supported: "good", unjudged: "unsure" }[outcome] ?? "bad";
    const [supported, all] = this.index.records.supported[row] ?? [];
    const words = all ? `${supported} of ${all}` : OUTCOMES[outcome];
    const sign = { good: "✓ ", bad: "✗ " }[look] ?? "";
    return el("span", { class: `chip ${look}`, title: OUTCOMES[outcome] }, sign, words);
  }

  /** Draw the link that opens a record. */
  drawLink(row) {
    return el(
      "a",
      {
        href: `#${this.addressOf(row)}`,
        "data-row": row,
        dir: "auto",
        onclick: (event) => this.onLink(event, row),
      },
      el("span", { class: "clamp" }, shownText(this.index.records.id[row])),
    );
  }

  /** Return the address of a record, with the active filters. */
  addressOf(row) {
    const state = BrowserState.read(this.browser.state.written());
    this.index.point(state, row);
    return state.written();
  }

  /** Open a record here, unless the click opens another window. */
  onLink(event, row) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.browser.open(row);
  }

  /** Open the record on a click next to its link, unless text is selected. */
  onRowClick(event, row) {
    if (event.target.closest("a, button") || String(getSelection()) !== "") return;
    this.browser.open(row);
  }

  /** Return the link of a row, if the current page has it. */
  link(row) {
    return $(`[data-row="${Number(row)}"]`, this.table);
  }

  /** Return the row whose link has the focus. */
  focusedRow() {
    const row = document.activeElement?.closest?.("[data-row]");
    return row ? Number(row.dataset.row) : null;
  }

  /** Draw the buttons for previous and next page. */
  showPager(pages) {
    const { page } = this.browser.state;
    const button = (words, name, to) =>
      el(
        "button",
        { type: "button", disabled: to < 0 || to >= pages, onclick: () => this.turnTo(to) },
        name === "previous" && icon(name),
        words,
        name === "next" && icon(name),
      );
    this.pager.hidden = pages === 1;
    this.pager.replaceChildren(
      button("Previous", "previous", page - 1),
      el("span", { class: "small" }, `Page ${grouped(page + 1)} of ${grouped(pages)}`),
      button("Next", "next", page + 1),
    );
  }

  /** Show another page. */
  setPage(page) {
    this.browser.change((state) => (state.page = page), { keepPage: true });
  }

  /** Show another page, scrolled to its first row. */
  turnTo(page) {
    this.setPage(page);
    this.focusFirst();
  }

  /** Move by some pages if they exist; return false if there is only one page. */
  turnBy(by) {
    if (this.rows.length <= PAGE_SIZE) return false;
    const to = this.browser.state.page + by;
    if (to >= 0 && to * PAGE_SIZE < this.rows.length) this.turnTo(to);
    return true;
  }

  /** Show the page of a row, unless the row is filtered out. */
  turnToRow(row) {
    const at = this.rows.indexOf(row);
    if (at >= 0) this.browser.state.page = Math.floor(at / PAGE_SIZE);
  }

  /** Focus the first row of the page. */
  focusFirst() {
    this.link(this.rows[this.first])?.focus();
  }

  /** Focus the previous or next row, on any page. */
  move(by) {
    const held = this.focusedRow();
    const at = held === null ? this.first : this.rows.indexOf(held) + by;
    if (at < 0 || at >= this.rows.length) return;
    const page = Math.floor(at / PAGE_SIZE);
    if (page !== this.browser.state.page) this.setPage(page);
    this.link(this.rows[at])?.focus();
  }
}
