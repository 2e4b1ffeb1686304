/* The report's browser: finds records by what was measured and found, and opens them. */

const PAGE_SIZE = 50;
/** Metrics that the list shows before a person chooses. */
const COLUMNS_AT_FIRST = 4;
/** Chunks that stay unpacked. */
const CHUNKS_AT_HAND = 6;
/** Milliseconds that a search may keep the page from drawing. */
const SLICE = 12;
/** Milliseconds of rest before what is typed is searched for. */
const TYPING_REST = 80;
/** Milliseconds of rest before the address is written anew: browsers refuse to do it too often. */
const ADDRESS_REST = 120;

const KEYS_HELP = [
  ["/", "search"],
  ["j k", "next and previous record"],
  ["↓ ↑", "the same in the list; sentences in a record"],
  ["→ ←", "next and previous record; in a sentence: across to what it belongs to"],
  ["n p", "next and previous page of the list, or record"],
  ["Enter", "open the record; in a sentence: across to its support and back"],
  ["Esc", "close the record, or leave a field"],
  ["?", "this help"],
];

/** What the browser shows: filters, order, page, and the open record. It lives in the address. */
class BrowserState {
  constructor() {
    /** @type {Map<string, {low: ?number, high: ?number, open: boolean}>} ranges by metric. */
    this.ranges = new Map();
    this.checks = [];
    this.patterns = [];
    this.subset = null;
    this.signature = null;
    this.failed = null;
    this.text = "";
    this.full = false;
    /** @type {?string} what the list is sorted by; null is the report's own order. */
    this.sort = null;
    this.descending = false;
    this.page = 0;
    this.columns = null;
    this.record = null;
    /** Row of the open record, where another one has the same id. */
    this.place = null;
    this.sentence = null;
  }

  /** Read the part of an address behind `#`; what it does not say is as at first. */
  static read(hash) {
    const state = new BrowserState();
    const said = new URLSearchParams(hash.replace(/^#/, ""));
    for (const range of said.getAll("metric")) state.readRange(range);
    state.checks = said.getAll("check");
    state.patterns = said.getAll("pattern");
    for (const name of ["subset", "failed", "record", "sentence"]) state[name] = said.get(name);
    state.signature = said.has("signature") ? Number.parseInt(said.get("signature"), 10) : null;
    state.place = said.has("place") ? Number.parseInt(said.get("place"), 10) : null;
    state.text = said.get("q") ?? "";
    state.full = said.has("full");
    const sort = said.get("sort");
    state.descending = sort?.startsWith("-") ?? false;
    state.sort = sort?.replace(/^-/, "") ?? null;
    state.page = Math.max(0, (Number.parseInt(said.get("page") ?? "1", 10) || 1) - 1);
    state.columns = said.has("columns") ? said.get("columns").split(",").filter(Boolean) : null;
    return state;
  }

  /** Read `metric:low:high`; a bound may be empty, and `)` behind it leaves it out itself. */
  readRange(text) {
    const found = /^(.*):([^:]*):([^:)]*)(\))?$/.exec(text);
    if (found)
      this.ranges.set(found[1], {
        low: bound(found[2]),
        high: bound(found[3]),
        open: Boolean(found[4]),
      });
  }

  /** The part of an address behind `#`. */
  written() {
    const said = new URLSearchParams();
    for (const [metric, { low, high, open }] of this.ranges) {
      said.append("metric", `${metric}:${low ?? ""}:${high ?? ""}${open ? ")" : ""}`);
    }
    for (const check of this.checks) said.append("check", check);
    for (const pattern of this.patterns) said.append("pattern", pattern);
    for (const name of ["subset", "signature", "failed"])
      if (this[name] !== null) said.set(name, this[name]);
    if (this.text) said.set("q", this.text);
    if (this.text && this.full) said.set("full", "1");
    if (this.sort !== null) said.set("sort", `${this.descending ? "-" : ""}${this.sort}`);
    if (this.page > 0) said.set("page", String(this.page + 1));
    if (this.columns) said.set("columns", this.columns.join(","));
    if (this.record !== null) said.set("record", this.record);
    if (this.record !== null && this.place !== null) said.set("place", this.place);
    if (this.record !== null && this.sentence !== null) said.set("sentence", this.sentence);
    return said.toString();
  }

  /** Forget all filters. */
  clear() {
    this.ranges.clear();
    this.checks = [];
    this.patterns = [];
    this.subset = null;
    this.signature = null;
    this.failed = null;
    this.text = "";
    this.full = false;
    this.page = 0;
  }
}

/** A bound of a range; null where there is none. */
function bound(text) {
  const value = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** The records of a report, as its index tells of them. */
class RecordIndex {
  /** @param {object} index see the block `index` of the page. */
  constructor(index) {
    Object.assign(this, index);
    this.count = this.records.id.length;
    this.rowOf = new Map(this.records.id.map((id, row) => [id, row]).reverse());
    this.checkById = Object.fromEntries(this.checks.map((check) => [check.id, check]));
    this.firstOrder = this.order === "doubt" ? ["doubt", true] : ["order", false];
  }

  /** Row of a record: of several with the same id the first, unless a state names another. */
  find({ record, place }) {
    return this.records.id[place] === record ? place : this.rowOf.get(record);
  }

  /** Let a state name a row. */
  point(state, row) {
    state.record = this.records.id[row];
    state.place = this.rowOf.get(state.record) === row ? null : row;
  }

  /** Value of a metric, or null. */
  value(metric, row) {
    return ownValue(this.records.metrics, metric)?.[row] ?? null;
  }

  /** Id and question of a row, in small letters. */
  textOf(row) {
    this.texts ??= this.records.id.map((id, at) =>
      `${id}\n${this.records.question[at]}`.toLowerCase(),
    );
    return this.texts[row];
  }

  /** Rows that a state lets through, in its order. */
  select(state, found) {
    const tests = this.tests(state, found);
    const rows = [];
    for (let row = 0; row < this.count; row += 1)
      if (tests.every((passes) => passes(row))) rows.push(row);
    return this.sorted(rows, state);
  }

  /** One test for each filter; `found` are rows that a search of all texts found. */
  tests(state, found) {
    const { records } = this;
    const tests = [...state.ranges].map(([metric, range]) => this.rangeTest(metric, range));
    for (const id of state.checks) {
      const at = this.checks.findIndex((check) => check.id === id);
      tests.push((row) => records.findings[row].includes(at));
    }
    for (const id of state.patterns) {
      const at = this.patterns.findIndex((pattern) => pattern.id === id);
      tests.push((row) => records.patterns[row].includes(at));
    }
    if (state.subset !== null) {
      const at = this.subset.values.indexOf(state.subset);
      tests.push((row) => records.subset[row] === at);
    }
    if (state.signature !== null) {
      tests.push((row) => records.signature[row] === state.signature);
    }
    if (state.failed !== null) tests.push(failureTest(records.failed, state.failed));
    const words = wordsOf(state.text);
    if (words.length > 0)
      tests.push((row) => holdsAll(this.textOf(row), words) || (state.full && found.has(row)));
    return tests;
  }

  /** Whether a value is within a range; one that is not there is in none. */
  rangeTest(metric, { low, high, open }) {
    const below = (value) => (open ? value < high : value <= high);
    return (row) => {
      const value = this.value(metric, row);
      return value !== null && (low === null || value >= low) && (high === null || below(value));
    };
  }

  /** What a state sorts by, and whether the largest comes first. */
  orderOf({ sort, descending }) {
    return sort === null ? this.firstOrder : [sort, descending];
  }

  /** Rows in the order of a state; those alike stay in the order of the file. */
  sorted(rows, state) {
    const [sort, descending] = this.orderOf(state);
    const value = this.sortValue(sort);
    if (value === null) return descending ? rows.reverse() : rows;
    const values = new Map(rows.map((row) => [row, value(row)]));
    const sign = descending ? -1 : 1;
    return rows.sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one - other;
      return (a < b ? -sign : a > b ? sign : 0) || one - other;
    });
  }

  /** What rows are ordered by; null is the order of the file. Rows without a value come last. */
  sortValue(sort) {
    const { records } = this;
    if (sort === "id") return (row) => records.id[row];
    if (sort === "doubt") return (row) => records.doubt[row] ?? null;
    if (sort === "findings") return (row) => records.findings[row].length;
    return Object.hasOwn(records.metrics, sort) ? (row) => this.value(sort, row) : null;
  }

  /** How many records each of several values has. */
  counts(size, valuesOf) {
    const counts = new Array(size).fill(0);
    for (let row = 0; row < this.count; row += 1)
      for (const at of valuesOf(row)) if (at >= 0) counts[at] += 1;
    return counts;
  }
}

/** Whether a row failed as asked: `any`, `none`, or for a reason. */
function failureTest(failed, asked) {
  if (asked === "any") return (row) => failed[row] !== null;
  if (asked === "none") return (row) => failed[row] === null;
  return (row) => failed[row] === asked;
}

/** The words of a search, in small letters. */
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether a text holds all words. */
function holdsAll(text, words) {
  return words.every((word) => text.includes(word));
}

/** Unpacks the records of a page, a chunk at a time. */
class Chunks {
  constructor(size) {
    this.size = size;
    this.atHand = new Map();
  }

  /** The view of a row. */
  async view(row) {
    const views = await this.chunk(Math.floor(row / this.size));
    return views[row % this.size];
  }

  /** The views of a chunk; those last asked for stay unpacked. */
  chunk(number) {
    const views = this.atHand.get(number) ?? unpackBlock(`chunk-${number}`);
    this.atHand.delete(number);
    this.atHand.set(number, views);
    if (this.atHand.size > CHUNKS_AT_HAND) this.atHand.delete(this.atHand.keys().next().value);
    return views;
  }
}

/** Looks through the texts of all records, in slices so short that the page stays at work. */
class TextSearch {
  constructor(index, chunks) {
    this.index = index;
    this.chunks = chunks;
    this.found = new Set();
    this.words = null;
    this.run = 0;
    this.done = 0;
  }

  /** Whether there are records that it has not looked through yet. */
  get running() {
    return this.words !== null && this.done < this.index.count;
  }

  /**
   * Look for words in everything that is written in a record.
   * @param {string[]} words all of them must occur.
   * @param {function(): void} tell called after each chunk.
   */
  async start(words, tell) {
    if (this.words !== null && this.words.join(" ") === words.join(" ")) return;
    this.stop();
    this.words = words;
    const run = this.run;
    let rest = performance.now() + SLICE;
    for (let from = 0; from < this.index.count; from += this.chunks.size) {
      const views = await unpackBlock(`chunk-${from / this.chunks.size}`);
      for (const [at, view] of views.entries()) {
        if (performance.now() > rest) {
          await breath();
          rest = performance.now() + SLICE;
        }
        if (this.run !== run) return;
        if (holdsAll(everyText(view).toLowerCase(), words)) this.found.add(from + at);
      }
      this.done = Math.min(this.index.count, from + views.length);
      tell();
    }
  }

  /** Give up, and forget what was found. */
  stop() {
    this.run += 1;
    this.words = null;
    this.done = 0;
    this.found = new Set();
  }
}

/** All that is written in a record. */
function everyText(view) {
  const texts = [];
  const gather = (value) => {
    if (typeof value === "string") texts.push(value);
    else if (value !== null && typeof value === "object") Object.values(value).forEach(gather);
  };
  const { id, question, documents, response, reference, label, findings, metadata, failed } = view;
  gather([id, question, documents, response, reference, label, findings, metadata, failed]);
  return texts.join("\n");
}

/** The list of records and the open one. */
class RecordBrowser {
  /**
   * @param {HTMLElement} place the section to fill.
   * @param {RecordIndex} index what there is.
   */
  constructor(place, index) {
    this.place = place;
    this.index = index;
    this.chunks = new Chunks(index.chunk_size);
    this.search = new TextSearch(index, this.chunks);
    this.rows = [];
    this.opened = null;
    /** Timer of a search that is about to begin. */
    this.typing = null;
    this.state = BrowserState.read(location.hash);
    this.draw();
    this.listen();
    this.show();
  }

  // What is drawn once.

  /** Lay out list and record. */
  draw() {
    this.status = el("p", { class: "browser-status", role: "status", "aria-live": "polite" });
    this.chips = el("ul", { class: "chips", role: "list", "aria-label": "Filters in force" });
    this.progress = el("div", { class: "search-progress no-print", hidden: true });
    this.list = el("div", { class: "record-list" });
    this.pager = el("nav", { class: "pager no-print", "aria-label": "Pages" });
    this.listPart = el(
      "div",
      { class: "list-part" },
      this.drawControls(),
      el("div", { class: "browser-line" }, this.status, this.chips),
      this.progress,
      this.list,
      this.pager,
    );
    this.recordPart = el("div", { class: "record-part", hidden: true });
    this.help = this.drawHelp();
    this.heading = el("h2", { tabindex: "-1" }, "Records");
    this.place.replaceChildren(this.heading, this.listPart, this.recordPart, this.help);
  }

  /** Search, filters, order and columns. */
  drawControls() {
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
    const fields = el(
      "div",
      { class: "filter-fields" },
      this.drawSelects(),
      this.drawRange(),
      this.drawOrder(),
      this.drawColumns(),
    );
    const roomy = matchMedia("(min-width: 48rem)").matches;
    return el(
      "div",
      { class: "controls no-print", role: "search", "aria-label": "Records" },
      el(
        "div",
        { class: "control wide" },
        el("label", { for: "search" }, "Search ", el("kbd", {}, "/")),
        el(
          "div",
          {},
          this.searchField,
          el(
            "label",
            { class: "choice" },
            this.fullField,
            "also in documents, responses and explanations",
          ),
          el(
            "button",
            {
              type: "button",
              class: "plain keyboard",
              "aria-haspopup": "dialog",
              onclick: () => this.help.showModal(),
            },
            "Keyboard ",
            el("kbd", {}, "?"),
          ),
        ),
      ),
      el(
        "details",
        { class: "filters", open: roomy },
        el("summary", {}, "Filters, order and columns"),
        fields,
      ),
    );
  }

  /** One choice for each kind of filter that this report has anything for. */
  drawSelects() {
    const { index } = this;
    const { records } = index;
    const kinds = [];
    const add = (name, words, ids, titles, valuesOf, set) => {
      const counts = index.counts(ids.length, valuesOf);
      const options = ids
        .map((id, at) => [id, `${titles[at]} (${grouped(counts[at])})`, counts[at]])
        .filter(([, , count]) => count > 0);
      if (options.length > 0) kinds.push(this.drawSelect(name, words, options, set));
    };
    add(
      "check",
      "Finding",
      index.checks.map(({ id }) => id),
      index.checks.map(({ title }) => title),
      (row) => new Set(records.findings[row]),
      (state, id) => state.checks.push(id),
    );
    add(
      "pattern",
      "Pattern",
      index.patterns.map(({ id }) => id),
      index.patterns.map(({ title }) => title),
      (row) => new Set(records.patterns[row]),
      (state, id) => state.patterns.push(id),
    );
    const { column, values } = index.subset;
    add(
      "subset",
      column ?? "Subset",
      values,
      values,
      (row) => [records.subset[row]],
      (state, id) => (state.subset = id),
    );
    if (index.signatures.length > 1) {
      add(
        "signature",
        "Signature",
        [...index.signatures.keys()],
        index.signatures,
        (row) => [records.signature[row]],
        (state, place) => (state.signature = place),
      );
    }
    const reasons = [...new Set(records.failed.filter((reason) => reason !== null))].sort();
    if (reasons.length > 0) {
      const ids = ["none", "any", ...reasons];
      const titles = ["labelled", "failed", ...reasons.map((reason) => `failed: ${reason}`)];
      add(
        "failed",
        "Outcome",
        ids,
        titles,
        (row) => (records.failed[row] === null ? [0] : [1, ids.indexOf(records.failed[row], 2)]),
        (state, id) => (state.failed = id),
      );
    }
    return kinds;
  }

  /** A choice that adds a filter, and then offers the next. */
  drawSelect(name, words, options, set) {
    const field = el(
      "select",
      {
        id: `filter-${name}`,
        onchange: () => {
          const chosen = options[Number(field.value)];
          field.value = "";
          this.change((state) => set(state, chosen[0]));
        },
      },
      el("option", { value: "" }, "any"),
      options.map(([, title], at) => el("option", { value: String(at) }, title)),
    );
    return el("div", { class: "control" }, el("label", { for: `filter-${name}` }, words), field);
  }

  /** The filter by a range of a metric. */
  drawRange() {
    const { metrics } = this.index;
    if (metrics.length === 0) return null;
    const metric = el(
      "select",
      { id: "range-metric", "aria-label": "Metric" },
      metrics.map((id) => el("option", { value: id }, id)),
    );
    const low = el("input", {
      type: "number",
      step: "any",
      "aria-label": "From",
      placeholder: "from",
    });
    const high = el("input", {
      type: "number",
      step: "any",
      "aria-label": "To",
      placeholder: "to",
    });
    const apply = () => {
      const range = { low: bound(low.value), high: bound(high.value), open: false };
      if (range.low === null && range.high === null) return;
      this.change((state) => state.ranges.set(metric.value, range));
      low.value = "";
      high.value = "";
    };
    return el(
      "form",
      {
        class: "control range",
        "aria-label": "Metric range",
        onsubmit: (event) => (event.preventDefault(), apply()),
      },
      el("label", { for: "range-metric" }, "Metric from … to …"),
      el("div", { class: "joined" }, metric, low, high, el("button", { type: "submit" }, "Filter")),
    );
  }

  /** What the list is sorted by. */
  drawOrder() {
    const names = [
      ["order", "order of the file"],
      ["id", "id"],
      ["doubt", "doubt"],
      ["findings", "findings"],
      ...this.index.metrics.map((id) => [id, id]),
    ];
    this.sortField = el(
      "select",
      { id: "sort", onchange: () => this.sortBy(this.sortField.value) },
      names.map(([id, words]) => el("option", { value: id }, words)),
    );
    this.turnButton = el("button", {
      type: "button",
      onclick: () => this.sortBy(this.index.orderOf(this.state)[0]),
    });
    return el(
      "div",
      { class: "control" },
      el("label", { for: "sort" }, "Sort by"),
      el("div", { class: "joined" }, this.sortField, this.turnButton),
    );
  }

  /** Which metrics the list shows. */
  drawColumns() {
    const { metrics } = this.index;
    if (metrics.length === 0) return null;
    this.columnFields = metrics.map((id) =>
      el("input", { type: "checkbox", value: id, onchange: () => this.chooseColumns() }),
    );
    return el(
      "details",
      { class: "control columns" },
      el("summary", {}, "Columns"),
      el(
        "div",
        { class: "column-choice" },
        this.columnFields.map((field) =>
          el("label", { class: "choice" }, field, ` ${field.value}`),
        ),
      ),
    );
  }

  /** What each key does. */
  drawHelp() {
    const dialog = el(
      "dialog",
      { "aria-labelledby": "help-title" },
      el("h2", { id: "help-title" }, "Keyboard"),
      el(
        "dl",
        { class: "keys" },
        KEYS_HELP.map(([keys, does]) => [
          el(
            "dt",
            {},
            keys.split(" ").map((key, at) => [at > 0 && " ", el("kbd", {}, key)]),
          ),
          el("dd", {}, does),
        ]),
      ),
      el("form", { method: "dialog" }, el("button", {}, "Close")),
    );
    // Sending the form is all that closes it, and the page's policy sends no form.
    $("form", dialog).addEventListener(
      "submit",
      (event) => (event.preventDefault(), dialog.close()),
    );
    return dialog;
  }

  // What a person changes.

  /** Take part in what a person does in the page. */
  listen() {
    addEventListener("hashchange", () => this.onAddress());
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("click", (event) => this.onFilterLink(event));
  }

  /** Change filters, order or page, and show what follows. */
  change(make, { keepPage = false } = {}) {
    if (!keepPage) this.state.page = 0;
    this.takeTyped();
    make(this.state);
    this.show();
    this.writeAddress();
  }

  /** Search once the person rests. */
  typed() {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.change(() => {}), TYPING_REST);
  }

  /** Let the state have what was typed and not yet searched for. */
  takeTyped() {
    if (this.typing === null) return;
    clearTimeout(this.typing);
    this.typing = null;
    this.state.text = this.searchField.value;
  }

  /** Sort with the worst first, or turn the order round. */
  sortBy(sort) {
    const at = this.index.metrics.indexOf(sort);
    const worstFirst =
      at >= 0 ? !this.index.higher_is_better[at] : ["doubt", "findings"].includes(sort);
    const [before, descending] = this.index.orderOf(this.state);
    this.change((state) => {
      state.sort = sort;
      state.descending = before === sort ? !descending : worstFirst;
    });
  }

  /** Show the metrics that are ticked. */
  chooseColumns() {
    const chosen = this.columnFields.filter((field) => field.checked).map((field) => field.value);
    this.change((state) => (state.columns = chosen), { keepPage: true });
  }

  /** Filter by a part of a chart or table, in place of the filters before. */
  onFilterLink(event) {
    const link = event.target.closest?.("[data-filter]");
    if (!link) return;
    event.preventDefault();
    this.filterBy(JSON.parse(link.getAttribute("data-filter")));
  }

  /** @param {object|object[]} filters one, or several that all hold. */
  filterBy(filters) {
    this.state.record = null;
    this.change((state) => {
      state.clear();
      for (const filter of [filters].flat()) addFilter(state, filter);
    });
    this.heading.focus({ preventScroll: true });
    this.heading.scrollIntoView({ block: "start" });
  }

  // The address.

  /** Write the state into the address, once there is rest. */
  writeAddress() {
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddressNow(), ADDRESS_REST);
  }

  /** Write the state into the address; no step of its own. */
  writeAddressNow() {
    clearTimeout(this.writing);
    const hash = `#${this.state.written()}`;
    if (hash !== (location.hash || "#")) rewriteAddress("replaceState", hash);
  }

  /** Make the state a step of its own, which the browser's back button undoes. */
  addStep() {
    clearTimeout(this.writing);
    rewriteAddress("pushState", `#${this.state.written()}`);
  }

  /** A link was followed, or the person went back. */
  onAddress() {
    if (location.hash.slice(1) === this.state.written()) return;
    if (/^#[\w-]+$/.test(location.hash) && document.getElementById(location.hash.slice(1))) return;
    clearTimeout(this.writing);
    this.state = BrowserState.read(location.hash);
    this.show();
  }

  /** Open a record, as a step of its own. */
  open(row, sentence = null) {
    this.writeAddressNow();
    this.index.point(this.state, row);
    this.state.sentence = sentence;
    this.addStep();
    this.show();
  }

  /** Go back to the list, to the row of the record. */
  close() {
    const row = this.index.find(this.state);
    const at = this.rows.indexOf(row);
    if (at >= 0) this.state.page = Math.floor(at / PAGE_SIZE);
    this.state.record = null;
    this.state.sentence = null;
    this.addStep();
    this.show();
    (this.rowLink(row) ?? this.heading).focus();
  }

  // What is shown.

  /** Show the state: the list, or the open record. */
  show() {
    this.startSearch();
    this.rows = this.index.select(this.state, this.search.found);
    const opened = this.state.record !== null;
    this.place.classList.toggle("reading", opened);
    this.listPart.hidden = opened;
    this.recordPart.hidden = !opened;
    if (opened) this.showRecord();
    else {
      this.opened = null;
      this.recordPart.replaceChildren();
      this.showList();
    }
  }

  /** Look through all texts if that is asked for, else stop. */
  startSearch() {
    const words = wordsOf(this.state.text);
    if (!this.state.full || words.length === 0) this.search.stop();
    else void this.search.start(words, () => this.searched()).catch((error) => this.fail(error));
    this.showProgress();
  }

  /** Show what a search has found so far. */
  searched() {
    const before = this.rows.length;
    this.rows = this.index.select(this.state, this.search.found);
    this.showProgress();
    if (this.state.record === null && (this.rows.length !== before || !this.search.running))
      this.showList();
  }

  /** How far the search has come. */
  showProgress() {
    this.progress.hidden = !this.search.running;
    if (!this.search.running) return;
    if (!this.progress.firstChild) {
      const cancel = () => this.change((state) => (state.full = false));
      this.progressBar = el("progress", { "aria-label": "Search in full texts" });
      this.progressText = el("span", { class: "small muted" });
      this.progress.append(
        this.progressBar,
        this.progressText,
        el("button", { type: "button", onclick: cancel }, "Stop"),
      );
    }
    this.progressBar.max = this.index.count;
    this.progressBar.value = this.search.done;
    this.progressText.textContent = `${grouped(this.search.done)} of ${counted(this.index.count, "record")} searched`;
  }

  /** A page of the list, and how many records there are. */
  showList() {
    const pages = Math.max(1, Math.ceil(this.rows.length / PAGE_SIZE));
    this.state.page = Math.min(this.state.page, pages - 1);
    this.showControls();
    this.status.textContent = `${grouped(this.rows.length)} of ${counted(this.index.count, "record")}`;
    this.chips.replaceChildren(...this.drawChips());
    const held = this.list.contains(document.activeElement) ? this.focusedRow() : null;
    this.list.replaceChildren(this.drawTable());
    if (held !== null) this.rowLink(held)?.focus();
    this.showPager(pages);
  }

  /** Let the fields say what the state says. */
  showControls() {
    const { state } = this;
    if (document.activeElement !== this.searchField) this.searchField.value = state.text;
    this.fullField.checked = state.full;
    const [sort, descending] = this.index.orderOf(state);
    this.sortField.value = sort;
    this.turnButton.replaceChildren(
      icon(descending ? "down" : "up"),
      descending ? "falling" : "rising",
    );
    for (const field of this.columnFields ?? [])
      field.checked = this.columns().includes(field.value);
  }

  /** Metrics that the list shows. */
  columns() {
    return this.state.columns ?? this.index.metrics.slice(0, COLUMNS_AT_FIRST);
  }

  /** The filters in force; each can be taken off. */
  drawChips() {
    const { state, index } = this;
    const chips = [];
    const add = (words, remove) => {
      const button = el(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-label": `Remove filter: ${words}`,
          onclick: () => this.dropFilter(remove),
        },
        el("span", { dir: "auto" }, shownText(words)),
        icon("close"),
      );
      chips.push(el("li", {}, button));
    };
    const titled = (list, id) => list.find((one) => one.id === id)?.title ?? id;
    for (const [metric, range] of state.ranges)
      add(rangeWords(metric, range), () => state.ranges.delete(metric));
    for (const id of state.checks)
      add(
        titled(index.checks, id),
        () => (state.checks = state.checks.filter((one) => one !== id)),
      );
    for (const id of state.patterns)
      add(
        titled(index.patterns, id),
        () => (state.patterns = state.patterns.filter((one) => one !== id)),
      );
    if (state.subset !== null)
      add(`${index.subset.column ?? "subset"}: ${state.subset}`, () => (state.subset = null));
    if (state.signature !== null)
      add(
        `signature: ${index.signatures[state.signature] ?? state.signature}`,
        () => (state.signature = null),
      );
    if (state.failed !== null)
      add(
        ownValue({ any: "failed", none: "labelled" }, state.failed) ?? `failed: ${state.failed}`,
        () => (state.failed = null),
      );
    if (state.text)
      add(
        `“${state.text}”${state.full ? " in all texts" : ""}`,
        () => ([state.text, this.searchField.value] = ["", ""]),
      );
    if (chips.length > 1)
      chips.push(
        el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "chip", onclick: () => this.dropFilter(() => state.clear()) },
            "Clear all",
          ),
        ),
      );
    return chips;
  }

  /** Take a filter off, and keep the focus among the others. */
  dropFilter(remove) {
    this.change(remove);
    this.searchField.value = this.state.text;
    ($("button", this.chips) ?? this.searchField).focus();
  }

  /** The records of the page. */
  drawTable() {
    if (this.rows.length === 0)
      return el(
        "p",
        { class: "notice" },
        this.search.running ? "Nothing found so far." : "No record passes these filters.",
      );
    const from = this.state.page * PAGE_SIZE;
    const columns = this.columns();
    const withSubset = this.index.subset.values.length > 0;
    const head = [
      ["id", "Id"],
      [null, "Question"],
      withSubset && [null, this.index.subset.column ?? "Subset"],
      ...columns.map((id) => [id, id]),
      ["doubt", "Doubt"],
      ["findings", "Findings"],
    ];
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
          head.filter(Boolean).map(([sort, words]) => this.drawHeading(sort, words)),
        ),
      ),
      el(
        "tbody",
        {},
        this.rows
          .slice(from, from + PAGE_SIZE)
          .map((row) => this.drawRow(row, columns, withSubset)),
      ),
    );
  }

  /** A heading that sorts, if there is anything to sort by. */
  drawHeading(sort, words) {
    if (sort === null) return el("th", { scope: "col" }, words);
    const [by, descending] = this.index.orderOf(this.state);
    const sorted = by === sort;
    const order = sorted ? (descending ? "descending" : "ascending") : null;
    const number = sort === "id" ? "" : "number";
    const button = el(
      "button",
      {
        type: "button",
        class: "plain sort",
        onclick: () => (this.sortBy(sort), this.focusHeading(sort)),
        "data-sort": sort,
      },
      words,
      sorted && icon(descending ? "down" : "up"),
    );
    return el("th", { scope: "col", "aria-sort": order, class: number }, button);
  }

  /** Focus a heading: sorting has drawn it anew. */
  focusHeading(sort) {
    [...this.list.querySelectorAll("[data-sort]")]
      .find((button) => button.dataset.sort === sort)
      ?.focus();
  }

  /** A record in the list. */
  drawRow(row, columns, withSubset) {
    const { records, subset } = this.index;
    const failed = records.failed[row];
    const id = records.id[row];
    const link = el(
      "a",
      {
        href: `#${this.addressOf(row)}`,
        "data-row": row,
        dir: "auto",
        onclick: (event) => this.onRowLink(event, row),
      },
      shownText(id),
    );
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
      el("th", { scope: "row" }, link),
      el(
        "td",
        { class: "row-question" },
        failed !== null && el("span", { class: "chip bad" }, `failed: ${failed}`),
        el("span", { class: "clamp", dir: "auto" }, shownText(records.question[row])),
      ),
      withSubset &&
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

  /** The address of a record, with the filters in force. */
  addressOf(row) {
    const state = BrowserState.read(this.state.written());
    this.index.point(state, row);
    return state.written();
  }

  /** Open a record here, unless another window is asked for. */
  onRowLink(event, row) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button > 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.open(row);
  }

  /** A click beside the link opens the record too, unless text was being selected. */
  onRowClick(event, row) {
    if (event.target.closest("a, button") || String(getSelection()) !== "") return;
    this.open(row);
  }

  /** The link of a row, if the page of the list shows it. */
  rowLink(row) {
    return $(`[data-row="${Number(row)}"]`, this.list);
  }

  /** The row whose link has the focus. */
  focusedRow() {
    const row = document.activeElement?.closest?.("[data-row]");
    return row ? Number(row.dataset.row) : null;
  }

  /** Buttons to the pages before and behind. */
  showPager(pages) {
    const { page } = this.state;
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

  /** Show another page, from its first row. */
  turnTo(page) {
    this.change((state) => (state.page = page), { keepPage: true });
    this.rowLink(this.rows[this.state.page * PAGE_SIZE])?.focus();
  }

  // The open record.

  /** Show the record that the state names. */
  async showRecord() {
    const row = this.index.find(this.state);
    if (row === undefined) return this.showMissing();
    if (this.opened === row && this.drawing) {
      if (this.state.sentence !== null) this.drawing.focus(this.state.sentence);
      return undefined;
    }
    this.opened = row;
    this.drawing = null;
    try {
      const view = await this.chunks.view(row);
      if (this.opened === row) this.placeRecord(row, view);
    } catch (error) {
      this.fail(error);
    }
    return undefined;
  }

  /** Put a record into the page, and the focus on it. */
  placeRecord(row, view) {
    const { sentence } = this.state;
    this.drawing =
      "failed" in view
        ? drawFailure(view)
        : drawRecord(view, {
            checks: this.index.checkById,
            onFocus: (key) => this.onSentence(key),
          });
    this.bar = this.drawBar(row);
    this.recordPart.replaceChildren(this.bar, this.drawing.node);
    const heading = $(".question", this.drawing.node);
    heading.tabIndex = -1;
    this.recordPart.scrollIntoView({ block: "start" });
    if (sentence === null || !this.drawing.focus(sentence)) heading.focus({ preventScroll: true });
  }

  /** Buttons to list and neighbours. */
  drawBar(row) {
    const at = this.rows.indexOf(row);
    const place =
      at < 0
        ? "not among the filtered records"
        : `${grouped(at + 1)} of ${counted(this.rows.length, "record")}`;
    const step = (words, name, by) =>
      el(
        "button",
        {
          type: "button",
          disabled: this.neighbour(by) === undefined,
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
      el(
        "button",
        { type: "button", title: "Esc", onclick: () => this.close() },
        icon("list"),
        "List",
      ),
      step("Previous", "previous", -1),
      step("Next", "next", 1),
      el("span", { class: "small muted place" }, place),
      el("button", { type: "button", onclick: () => this.copyLink() }, icon("link"), "Copy link"),
      this.copied,
    );
  }

  /** Say that a link names a record that is not here. */
  showMissing() {
    this.opened = null;
    const message = el(
      "p",
      { class: "notice bad", tabindex: "-1" },
      "This file has no record ",
      el("code", {}, shownText(this.state.record)),
      (this.index.parts ?? []).length > 1 ? ": it may stand in another part of the report." : ".",
    );
    this.recordPart.replaceChildren(
      message,
      el("button", { type: "button", onclick: () => this.close() }, icon("list"), "List"),
    );
    message.focus();
  }

  /** A sentence has the focus: the address names it. */
  onSentence(key) {
    this.state.sentence = key;
    this.writeAddress();
  }

  /** The row before or behind the open one, among those that the filters let through. */
  neighbour(by) {
    const at = this.rows.indexOf(this.opened);
    return at < 0 ? this.rows[by > 0 ? 0 : this.rows.length] : this.rows[at + by];
  }

  /** Open the record before or behind. */
  step(by) {
    const row = this.neighbour(by);
    if (row !== undefined) this.open(row);
  }

  /** Copy the address of the record; where that is forbidden, show it. */
  async copyLink() {
    this.writeAddressNow();
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
      this.copied.replaceChildren("Copy it from here: ", field);
      field.select();
    }
  }

  /** Say that the records cannot be read. */
  fail(error) {
    this.status.textContent = "";
    const notice = el(
      "p",
      { class: "notice bad", role: "alert" },
      `The records of this file could not be read (${error.message}). Is the file whole? Write the report again, or copy it again.`,
    );
    (this.state.record === null ? this.list : this.recordPart).replaceChildren(notice);
  }

  // Keys.

  /** A key was pressed somewhere in the page. */
  onKey(event) {
    const filter = event.target.closest?.("[data-filter]");
    if (filter && filter.localName !== "button" && (event.key === "Enter" || event.key === " "))
      return this.onFilterLink(event);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || this.help.open)
      return undefined;
    if (isWriting(event.target)) return this.onKeyInField(event);
    const done = this.state.record === null ? this.onKeyInList(event) : this.onKeyInRecord(event);
    if (done || this.onKeyAnywhere(event)) event.preventDefault();
    return undefined;
  }

  /** Escape leaves the search for the list. */
  onKeyInField(event) {
    if (event.key !== "Escape" || event.target !== this.searchField) return;
    this.rowLink(this.rows[this.state.page * PAGE_SIZE])?.focus();
  }

  /** Keys of list and record alike. */
  onKeyAnywhere({ key }) {
    if (key === "?") this.help.showModal();
    else if (key === "/") {
      if (this.state.record !== null) this.close();
      this.searchField.focus();
      this.searchField.select();
    } else return false;
    return true;
  }

  /** Keys of the list. */
  onKeyInList({ key, target }) {
    const inList = this.list.contains(target);
    const by = { j: 1, k: -1, ArrowDown: inList && 1, ArrowUp: inList && -1 }[key];
    if (by) return this.moveInList(by);
    const pages = { n: 1, p: -1 }[key];
    if (!pages || this.rows.length <= PAGE_SIZE) return false;
    const to = this.state.page + pages;
    if (to >= 0 && to * PAGE_SIZE < this.rows.length) this.turnTo(to);
    return true;
  }

  /** Focus the row before or behind, on whatever page it is. */
  moveInList(by) {
    const from = this.state.page * PAGE_SIZE;
    const held = this.focusedRow();
    const at = held === null ? from : this.rows.indexOf(held) + by;
    if (at < 0 || at >= this.rows.length) return true;
    const page = Math.floor(at / PAGE_SIZE);
    if (page !== this.state.page) this.change((state) => (state.page = page), { keepPage: true });
    this.rowLink(this.rows[at])?.focus();
    return true;
  }

  /** Keys of the open record. */
  onKeyInRecord({ key, target }) {
    if (key === "Escape") {
      this.close();
      return true;
    }
    const inSentence = target.closest?.(".sentence");
    const by = {
      j: 1,
      n: 1,
      k: -1,
      p: -1,
      ArrowRight: inSentence ? 0 : 1,
      ArrowLeft: inSentence ? 0 : -1,
    }[key];
    if (by) this.step(by);
    return Boolean(by);
  }
}

/** Write the address; browsers refuse where that is done too often, and then it stays as it is. */
function rewriteAddress(how, hash) {
  try {
    history[how](null, "", hash);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}

/**
 * Add a filter as the page's charts and tables name it.
 * @param {BrowserState} state what it is added to.
 * @param {object} filter a range of a metric, whose high end is left out unless `closed`; or a check, pattern, subset,
 *   place of a signature, or reason of a failure.
 */
function addFilter(
  state,
  { metric, low, high, closed, check, pattern, subset, signature, failed },
) {
  if (metric !== undefined)
    state.ranges.set(metric, { low: low ?? null, high: high ?? null, open: !closed });
  if (check !== undefined) state.checks.push(check);
  if (pattern !== undefined) state.patterns.push(pattern);
  if (subset !== undefined) state.subset = subset;
  if (signature !== undefined) state.signature = signature;
  if (failed !== undefined) state.failed = failed === true ? "any" : failed;
}

/** A filter by range, in words. */
function rangeWords(metric, { low, high, open }) {
  if (low !== null && low === high) return `${metric} = ${low}`;
  if (low === null) return `${metric} ${open ? "<" : "≤"} ${high}`;
  if (high === null) return `${metric} ≥ ${low}`;
  return `${metric} ${low} to ${open ? "below " : ""}${high}`;
}

/** A row that has no label, and why. */
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
    el("h2", { class: "question" }, "This row has no label"),
    el("p", {}, el("span", { class: "chip bad" }, `failed: ${view.failed.reason}`)),
    el("p", { class: "notice bad failure", dir: "auto" }, shownText(view.failed.message)),
  );
  return { node, focus: () => false };
}

/** Fill the section of the browser, or say why that cannot be. */
async function startReport() {
  const place = $("#browser");
  if (!place) return;
  const say = (...words) =>
    place.replaceChildren(
      el("h2", {}, "Records"),
      el("p", { class: "notice bad", role: "alert" }, ...words),
    );
  if (!canUnpack()) {
    say(
      "This browser cannot unpack the records. Use a newer one: Chrome or Edge from 80, Firefox from 113, Safari from 16.4.",
    );
    return;
  }
  try {
    const index = new RecordIndex(await unpackBlock("index"));
    new RecordBrowser(place, index);
  } catch (error) {
    say(
      `The records of this file could not be read (${error.message}). Is the file whole? Write the report again, or copy it again.`,
    );
  }
}

startReport();
