/* What the report's browser shows; it lives in the address. */

/** Filters, order, page, and the open record. */
class BrowserState {
  constructor() {
    /** @type {?string} what the list is sorted by; null is the report's own order. */
    this.sort = null;
    this.descending = false;
    this.columns = null;
    this.record = null;
    /** Row of the open record, where another one has the same id. */
    this.place = null;
    this.sentence = null;
    this.clear();
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
    if (!found) return;
    const [, metric, low, high, open] = found;
    this.ranges.set(metric, { low: bound(low), high: bound(high), open: Boolean(open) });
  }

  /** The part of an address behind `#`. */
  written() {
    const said = this.filters();
    if (this.sort !== null) said.set("sort", `${this.descending ? "-" : ""}${this.sort}`);
    if (this.page > 0) said.set("page", String(this.page + 1));
    if (this.columns) said.set("columns", this.columns.join(","));
    if (this.record !== null) said.set("record", this.record);
    if (this.record !== null && this.place !== null) said.set("place", this.place);
    if (this.record !== null && this.sentence !== null) said.set("sentence", this.sentence);
    return said.toString();
  }

  /** What an address says of the filters. */
  filters() {
    const said = new URLSearchParams();
    for (const [metric, { low, high, open }] of this.ranges)
      said.append("metric", `${metric}:${low ?? ""}:${high ?? ""}${open ? ")" : ""}`);
    for (const check of this.checks) said.append("check", check);
    for (const pattern of this.patterns) said.append("pattern", pattern);
    for (const name of ["subset", "signature", "failed"])
      if (this[name] !== null) said.set(name, this[name]);
    if (this.text) said.set("q", this.text);
    if (this.text && this.full) said.set("full", "1");
    return said;
  }

  /**
   * Add a filter as the page's charts and tables name it.
   * @param {object} filter a range of a metric, whose high end is left out unless `closed`; or a
   *   check, pattern, subset, place of a signature, or reason of a failure.
   */
  add({ metric, low, high, closed, check, pattern, subset, signature, failed }) {
    if (metric !== undefined)
      this.ranges.set(metric, { low: low ?? null, high: high ?? null, open: !closed });
    if (check !== undefined) this.checks.push(check);
    if (pattern !== undefined) this.patterns.push(pattern);
    if (subset !== undefined) this.subset = subset;
    if (signature !== undefined) this.signature = signature;
    if (failed !== undefined) this.failed = failed === true ? "any" : failed;
  }

  /** Forget all filters. */
  clear() {
    /** @type {Map<string, {low: ?number, high: ?number, open: boolean}>} ranges by metric. */
    this.ranges = new Map();
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

/** A filter by range, in words. */
function rangeWords(metric, { low, high, open }) {
  if (low !== null && low === high) return `${metric} = ${low}`;
  if (low === null) return `${metric} ${open ? "<" : "≤"} ${high}`;
  if (high === null) return `${metric} ≥ ${low}`;
  return `${metric} ${low} to ${open ? "below " : ""}${high}`;
}
