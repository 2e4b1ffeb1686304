/* The state of the record browser, as in the address. */

/** Filters, order, page, and the open record. */
class BrowserState {
  constructor() {
    /** @type {?string} sort key of the list; null for the least supported first. */
    this.sort = null;
    this.descending = false;
    this.columns = null;
    this.record = null;
    /** Row of the open record, if another one has the same id. */
    this.place = null;
    this.sentence = null;
    this.clear();
  }

  /** Parse the fragment of an address; missing parts have their defaults. */
  static read(hash) {
    const state = new BrowserState();
    const parameters = new URLSearchParams(hash.replace(/^#/, ""));
    for (const range of parameters.getAll("metric")) state.readRange(range);
    state.checks = parameters.getAll("check");
    state.patterns = parameters.getAll("pattern");
    for (const name of ["verdict", "subset", "failed", "record", "sentence"]) state[name] = parameters.get(name);
    state.signature = parameters.has("signature") ? Number.parseInt(parameters.get("signature"), 10) : null;
    state.place = parameters.has("place") ? Number.parseInt(parameters.get("place"), 10) : null;
    state.text = parameters.get("q") ?? "";
    state.full = parameters.has("full");
    const sort = parameters.get("sort");
    state.descending = sort?.startsWith("-") ?? false;
    state.sort = sort?.replace(/^-/, "") ?? null;
    state.page = Math.max(0, (Number.parseInt(parameters.get("page") ?? "1", 10) || 1) - 1);
    state.columns = parameters.has("columns") ? parameters.get("columns").split(",").filter(Boolean) : null;
    return state;
  }

  /** Parse `metric:low:high`; a bound may be empty, and a trailing `)` excludes the high one. */
  readRange(text) {
    const found = /^(.*):([^:]*):([^:)]*)(\))?$/.exec(text);
    if (!found) return;
    const [, metric, low, high, open] = found;
    this.ranges.set(metric, { low: bound(low), high: bound(high), open: Boolean(open) });
  }

  /** Return the state as the fragment of an address. */
  written() {
    const parameters = this.filters();
    if (this.sort !== null) parameters.set("sort", `${this.descending ? "-" : ""}${this.sort}`);
    if (this.page > 0) parameters.set("page", String(this.page + 1));
    if (this.columns) parameters.set("columns", this.columns.join(","));
    if (this.record !== null) parameters.set("record", this.record);
    if (this.record !== null && this.place !== null) parameters.set("place", this.place);
    if (this.record !== null && this.sentence !== null) parameters.set("sentence", this.sentence);
    return parameters.toString();
  }

  /** Return the filters as parameters of an address. */
  filters() {
    const parameters = new URLSearchParams();
    for (const [metric, { low, high, open }] of this.ranges)
      parameters.append("metric", `${metric}:${low ?? ""}:${high ?? ""}${open ? ")" : ""}`);
    for (const check of this.checks) parameters.append("check", check);
    for (const pattern of this.patterns) parameters.append("pattern", pattern);
    for (const name of ["verdict", "subset", "signature", "failed"])
      if (this[name] !== null) parameters.set(name, this[name]);
    if (this.text) parameters.set("q", this.text);
    if (this.text && this.full) parameters.set("full", "1");
    return parameters;
  }

  /**
   * Add a filter in the form of `data-filter`.
   * @param {object} filter a range of a metric, without its high end unless `closed`; or a check,
   *   pattern, verdict, subset, index of a signature, or reason of a failure.
   */
  add({ metric, low, high, closed, check, pattern, ...single }) {
    if (metric !== undefined)
      this.ranges.set(metric, { low: low ?? null, high: high ?? null, open: !closed });
    if (check !== undefined) this.checks.push(check);
    if (pattern !== undefined) this.patterns.push(pattern);
    Object.assign(this, single);
  }

  /** Remove all filters. */
  clear() {
    /** @type {Map<string, {low: ?number, high: ?number, open: boolean}>} ranges by metric. */
    this.ranges = new Map();
    this.checks = [];
    this.patterns = [];
    /** @type {?string} a key of {@link OUTCOMES}. */
    this.verdict = null;
    this.subset = null;
    this.signature = null;
    this.failed = null;
    this.text = "";
    this.full = false;
    this.page = 0;
  }
}

/** Parse a bound of a range; null if it is missing. */
function bound(text) {
  const value = text.trim() === "" ? NaN : Number(text);
  return Number.isFinite(value) ? value : null;
}

/** Describe a filter by range. */
function rangeWords(metric, { low, high, open }) {
  if (low !== null && low === high) return `${metric} = ${low}`;
  if (low === null) return `${metric} ${open ? "<" : "≤"} ${high}`;
  if (high === null) return `${metric} ≥ ${low}`;
  return `${metric} ${low} to ${open ? "below " : ""}${high}`;
}
