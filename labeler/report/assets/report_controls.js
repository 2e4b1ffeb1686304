/* The controls above a report's list: search, filters, order, columns. */

/** Default number of metrics in the list. Its first column has the support. */
const COLUMNS_AT_FIRST = 3;
const SUPPORT_METRICS = ["adherence", "adherence_fraction"];
/** Filters that are not folded. */
const KINDS_AT_FIRST = ["verdict", "subset"];
/** Milliseconds after typing before the search starts. */
const TYPING_REST = 80;

/** Search, filters, order and columns. */
class ListControls {
  /**
   * @param {RecordBrowser} browser the browser.
   * @param {function(): void} help opens the help on keys.
   */
  constructor(browser, help) {
    this.browser = browser;
    this.index = browser.index;
    this.change = (make, how) => browser.change(make, how);
    /** Timer of a delayed search. */
    this.typing = null;
    const kinds = filterKinds(this.index);
    const draw = (those) => those.map((kind) => drawFilterChoice(kind, this.change));
    const first = draw(kinds.filter(({ name }) => KINDS_AT_FIRST.includes(name)));
    const rest = draw(kinds.filter(({ name }) => !KINDS_AT_FIRST.includes(name)));
    this.node = el(
      "div",
      { class: "controls no-print", role: "search", "aria-label": "Records" },
      el("div", { class: "filter-fields" }, this.drawSearch(help), first),
      el(
        "details",
        { class: "filters" },
        el("summary", {}, "More filters, order, columns"),
        el(
          "div",
          { class: "filter-fields" },
          rest,
          drawRangeFilter(this.index.metrics, this.change),
          this.drawOrder(),
          this.drawColumns(),
        ),
      ),
    );
  }

  /** Draw the search field, and the button for the help on keys. */
  drawSearch(help) {
    this.searchField = el("input", {
      type: "search",
      id: "search",
      placeholder: "Ids and questions",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this.typed(),
    });
    this.fullField = el("input", {
      type: "checkbox",
      id: "full",
      onchange: () => this.change((state) => (state.full = this.fullField.checked)),
    });
    return el(
      "div",
      { class: "control wide" },
      el("label", { for: "search" }, "Search ", el("kbd", {}, "/")),
      el(
        "div",
        {},
        this.searchField,
        el("label", { class: "choice" }, this.fullField, "All texts"),
        el(
          "button",
          {
            type: "button",
            class: "plain keyboard",
            "aria-haspopup": "dialog",
            onclick: help,
          },
          "Keys ",
          el("kbd", {}, "?"),
        ),
      ),
    );
  }

  /** Draw the choice of the order. */
  drawOrder() {
    const names = [
      ["support", "support"],
      ["order", "file order"],
      ["id", "id"],
      ["doubt", "suspicion"],
      ["findings", "findings"],
      ...this.index.metrics.map((id) => [id, id]),
    ];
    this.sortField = el(
      "select",
      { id: "sort", onchange: () => this.browser.sortBy(this.sortField.value) },
      names.map(([id, words]) => el("option", { value: id }, words)),
    );
    this.turnButton = el("button", {
      type: "button",
      onclick: () => this.browser.sortBy(this.index.orderOf(this.browser.state)[0]),
    });
    return el(
      "div",
      { class: "control" },
      el("label", { for: "sort" }, "Sort by"),
      el("div", { class: "joined" }, this.sortField, this.turnButton),
    );
  }

  /** Draw the choice of the metrics. */
  drawColumns() {
    this.columnFields = this.index.metrics.map((id) =>
      el("input", { type: "checkbox", value: id, onchange: () => this.chooseColumns() }),
    );
    if (this.columnFields.length === 0) return null;
    const choices = this.columnFields.map((field) =>
      el("label", { class: "choice" }, field, ` ${field.value}`),
    );
    return el(
      "details",
      { class: "control columns" },
      el("summary", {}, "Columns"),
      el("div", { class: "column-choice" }, choices),
    );
  }

  /** Show the checked metrics. */
  chooseColumns() {
    const chosen = this.columnFields.filter((field) => field.checked).map((field) => field.value);
    this.change((state) => (state.columns = chosen), { keepPage: true });
  }

  /** Search after a delay. */
  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.change(() => {}), TYPING_REST);
  }

  /** Put typed text that is not searched yet into a state. */
  giveTyped(state) {
    if (this.typing === null) return;
    clearTimeout(this.typing);
    this.typing = null;
    state.text = this.searchField.value;
  }

  /** Update the fields to a state, except a focused search field. */
  show(state) {
    if (document.activeElement !== this.searchField) this.showText(state);
    this.fullField.checked = state.full;
    const [sort, descending] = this.index.orderOf(state);
    this.sortField.value = sort;
    this.turnButton.replaceChildren(
      icon(descending ? "down" : "up"),
      descending ? "descending" : "ascending",
    );
    const columns = shownColumns(state, this.index);
    for (const field of this.columnFields) field.checked = columns.includes(field.value);
  }

  /** Update the search field to a state. */
  showText(state) {
    this.searchField.value = state.text;
  }

  /** Focus the search field. */
  focusSearch() {
    this.searchField.focus();
    this.searchField.select();
  }
}

/** Return the metrics shown in the list: those chosen, else the first that a record has a value of. */
function shownColumns(state, index) {
  const others = index.metrics.filter(
    (id) => !SUPPORT_METRICS.includes(id) && index.records.metrics[id].some((value) => value !== null),
  );
  return state.columns ?? others.slice(0, COLUMNS_AT_FIRST);
}
