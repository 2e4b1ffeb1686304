/* The list of a report's records, a page at a time. */

const PAGE_SIZE = 50;

/** The rows that pass the filters: a table, and buttons to its pages. */
class RecordList {
  /** @param {RecordBrowser} browser whose rows it shows. */
  constructor(browser) {
    this.browser = browser;
    this.index = browser.index;
    this.table = el("div", { class: "record-list" });
    this.pager = el("nav", { class: "pager no-print", "aria-label": "Pages" });
  }

  /** Rows that pass the filters. */
  get rows() {
    return this.browser.rows;
  }

  /** Place of the first row that is shown. */
  get first() {
    return this.browser.state.page * PAGE_SIZE;
  }

  /** Draw the page of the list, or the last one where there is none so far. */
  show() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE_SIZE));
    const { state } = this.browser;
    state.page = Math.min(state.page, pages - 1);
    const held = this.table.contains(document.activeElement) ? this.focusedRow() : null;
    this.table.replaceChildren(this.rows.length > 0 ? this.drawTable() : this.drawEmpty());
    if (held !== null) this.link(held)?.focus();
    this.showPager(pages);
  }

  /** That there is nothing. */
  drawEmpty() {
    const { running } = this.browser.search;
    const words = running ? "Nothing found so far." : "No record passes these filters.";
    return el("p", { class: "notice" }, words);
  }

  /** The records of the page. */
  drawTable() {
    const columns = shownColumns(this.browser.state, this.index);
    const { subset } = this.index;
    const head = [
      ["id", "Id"],
      [null, "Question"],
      subset.values.length > 0 && [null, subset.column ?? "Subset"],
      ...columns.map((id) => [id, id]),
      ["doubt", "Doubt"],
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

  /** A heading that sorts, if there is anything to sort by. */
  drawHeading(sort, words) {
    if (sort === null) return el("th", { scope: "col" }, words);
    const [by, descending] = this.index.orderOf(this.browser.state);
    const sorted = by === sort;
    const order = sorted ? (descending ? "descending" : "ascending") : null;
    const number = sort === "id" ? "" : "number";
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

  /** Focus a heading: sorting has drawn it anew. */
  focusHeading(sort) {
    [...this.table.querySelectorAll("[data-sort]")]
      .find((button) => button.dataset.sort === sort)
      ?.focus();
  }

  /** A record in the list. */
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
      {
        class: failed === null ? "row" : "row failed",
        onclick: (event) => this.onRowClick(event, row),
      },
      el("th", { scope: "row" }, this.drawLink(row)),
      el(
        "td",
        { class: "row-question" },
        failed !== null && el("span", { class: "chip bad" }, `failed: ${failed}`),
        el("span", { class: "clamp", dir: "auto" }, shownText(records.question[row])),
      ),
      subset.values.length > 0 &&
        el(
          "td",
          { "data-name": subset.column ?? "subset", dir: "auto" },
          shownText(subset.values[records.subset[row]] ?? "–"),
        ),
      columns.map((metric) => number(metric, this.index.value(metric, row), 2)),
      number("doubt", records.doubt[row] ?? null, 2),
      number("findings", failed === null ? records.findings[row].length : null, 0),
    );
  }

  /** The link that opens a record. */
  drawLink(row) {
    return el(
      "a",
      {
        href: `#${this.addressOf(row)}`,
        "data-row": row,
        dir: "auto",
        onclick: (event) => this.onLink(event, row),
      },
      shownText(this.index.records.id[row]),
    );
  }

  /** The address of a record, with the filters in force. */
  addressOf(row) {
    const state = BrowserState.read(this.browser.state.written());
    this.index.point(state, row);
    return state.written();
  }

  /** Open a record here, unless another window is asked for. */
  onLink(event, row) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.browser.open(row);
  }

  /** A click beside the link opens the record too, unless text was being selected. */
  onRowClick(event, row) {
    if (event.target.closest("a, button") || String(getSelection()) !== "") return;
    this.browser.open(row);
  }

  /** The link of a row, if the page of the list shows it. */
  link(row) {
    return $(`[data-row="${Number(row)}"]`, this.table);
  }

  /** The row whose link has the focus. */
  focusedRow() {
    const row = document.activeElement?.closest?.("[data-row]");
    return row ? Number(row.dataset.row) : null;
  }

  /** Buttons to the pages before and behind. */
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

  /** Show another page, from its first row. */
  turnTo(page) {
    this.setPage(page);
    this.focusFirst();
  }

  /** Go some pages on or back, if there are as many; false where there is but one. */
  turnBy(by) {
    if (this.rows.length <= PAGE_SIZE) return false;
    const to = this.browser.state.page + by;
    if (to >= 0 && to * PAGE_SIZE < this.rows.length) this.turnTo(to);
    return true;
  }

  /** Let the page show a row; nothing changes where no filter lets it through. */
  turnToRow(row) {
    const at = this.rows.indexOf(row);
    if (at >= 0) this.browser.state.page = Math.floor(at / PAGE_SIZE);
  }

  /** Focus the first row of the page. */
  focusFirst() {
    this.link(this.rows[this.first])?.focus();
  }

  /** Focus the row before or behind, on whatever page it is. */
  move(by) {
    const held = this.focusedRow();
    const at = held === null ? this.first : this.rows.indexOf(held) + by;
    if (at < 0 || at >= this.rows.length) return;
    const page = Math.floor(at / PAGE_SIZE);
    if (page !== this.browser.state.page) this.setPage(page);
    this.link(this.rows[at])?.focus();
  }
}
