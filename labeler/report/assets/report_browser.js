/* The record browser: its state, and the list, record, controls and address that show it. */

/** The list of records and the open one. */
class RecordBrowser {
  /**
   * @param {HTMLElement} place the section to fill.
   * @param {RecordIndex} index the records.
   */
  constructor(place, index) {
    this.place = place;
    this.index = index;
    this.state = BrowserState.read(location.hash);
    /** Filtered rows, in order. */
    this.rows = [];
    this.search = new TextSearch(index.count, index.chunk_size);
    this.address = new AddressBar(this);
    const help = drawKeysHelp();
    this.controls = new ListControls(this, () => help.showModal());
    this.list = new RecordList(this);
    this.reader = new RecordReader(this);
    this.charts = new ChartFilters((filters) => this.filterBy(filters));
    this.draw(help);
    new BrowserKeys(this, help);
    addEventListener("hashchange", () => this.onAddress());
    this.show();
  }

  /** Lay out list and record. */
  draw(help) {
    this.status = el("p", { class: "browser-status", role: "status", "aria-live": "polite" });
    this.chips = el("ul", { class: "chips", role: "list", "aria-label": "Active filters" });
    this.progress = new SearchProgress(this.search, () =>
      this.change((state) => (state.full = false)),
    );
    this.listPart = el(
      "div",
      { class: "list-part" },
      this.controls.node,
      el("div", { class: "browser-line" }, this.status, this.chips),
      this.progress.node,
      this.list.table,
      this.list.pager,
    );
    this.heading = el("h2", { tabindex: "-1" }, "Records");
    this.place.replaceChildren(this.heading, this.listPart, this.reader.node, help);
  }

  // Changes of the state.

  /** Change filters, order or page, and update the page. */
  change(make, { keepPage = false } = {}) {
    if (!keepPage) this.state.page = 0;
    this.controls.giveTyped(this.state);
    make(this.state);
    this.show();
    this.address.write();
  }

  /** Sort with the worst first, or reverse the order. */
  sortBy(sort) {
    const [before, descending] = this.index.orderOf(this.state);
    this.change((state) => {
      state.sort = sort;
      state.descending = before === sort ? !descending : this.index.isWorstFirst(sort);
    });
  }

  /** Remove a filter, and focus another. */
  dropFilter(remove) {
    this.change(remove);
    this.controls.showText(this.state);
    ($("button", this.chips) ?? this.controls.searchField).focus();
  }

  /** Replace all filters by those of a chart. */
  filterBy(filters) {
    this.state.record = null;
    this.change((state) => {
      state.clear();
      for (const filter of filters) state.add(filter);
    });
    this.heading.focus({ preventScroll: true });
    this.heading.scrollIntoView({ block: "start" });
  }

  /** Handle a new address. */
  onAddress() {
    if (!this.address.isNews()) return;
    this.address.leave();
    this.state = BrowserState.read(location.hash);
    this.show();
  }

  /** Open a record with a history entry. */
  open(row) {
    this.address.writeNow();
    this.index.point(this.state, row);
    this.state.sentence = null;
    this.address.addStep();
    this.show();
  }

  /** Go back to the list, to the row of the record. */
  close() {
    const row = this.index.find(this.state);
    this.list.turnToRow(row);
    this.state.record = null;
    this.state.sentence = null;
    this.address.addStep();
    this.show();
    (this.list.link(row) ?? this.heading).focus();
  }

  // Updates of the page.

  /** Show the state: the list, or the open record. */
  show() {
    this.startSearch();
    this.rows = this.index.select(this.state, this.search.found);
    this.charts.show(this.state);
    const reading = this.state.record !== null;
    document.body.classList.toggle("reading", reading);
    this.listPart.hidden = reading;
    this.reader.node.hidden = !reading;
    if (reading) void this.reader.show();
    else {
      this.reader.clear();
      this.showList();
    }
  }

  /** Show a page of the list, and the number of records. */
  showList() {
    this.controls.show(this.state);
    this.status.textContent = `${grouped(this.rows.length)} of ${counted(this.index.count, "record")}`;
    const filters = filtersInForce(this.state, this.index);
    this.chips.replaceChildren(...drawFilterChips(filters, (remove) => this.dropFilter(remove)));
    this.list.show();
  }

  /** Start or stop the full-text search. */
  startSearch() {
    const words = wordsOf(this.state.text);
    if (!this.state.full || words.length === 0) this.search.stop();
    else void this.search.start(words, () => this.searched()).catch((error) => this.fail(error));
    this.progress.show();
  }

  /** Show the results of a search so far. */
  searched() {
    const before = this.rows.length;
    this.rows = this.index.select(this.state, this.search.found);
    this.progress.show();
    if (this.state.record === null && (this.rows.length !== before || !this.search.running))
      this.showList();
  }

  /** Show that the records cannot be read. */
  fail(error) {
    this.status.textContent = "";
    const part = this.state.record === null ? this.list.table : this.reader.node;
    part.replaceChildren(el("p", { class: "notice bad", role: "alert" }, unreadableWords(error)));
  }
}

/** Return the message for unreadable records. */
function unreadableWords(error) {
  return `Cannot read the records (${error.message}). The report may be incomplete: copy it again, or write it again.`;
}
