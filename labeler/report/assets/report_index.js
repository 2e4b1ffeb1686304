/* The index of a report's records: filtering and sorting. */

/** Outcomes of rows in words. */
const OUTCOMES = {
  unsupported: "not fully supported",
  supported: "fully supported",
  unjudged: "no verdict",
  failed: "failed",
};

/** The index of a report. */
class RecordIndex {
  /** @param {object} index the page's data block `index`. */
  constructor(index) {
    Object.assign(this, index);
    this.count = this.records.id.length;
    this.rowOf = new Map(this.records.id.map((id, row) => [id, row]).reverse());
    this.checkById = Object.fromEntries(this.checks.map((check) => [check.id, check]));
  }

  /** Return the row of a state's record: the first with its id, unless the state names another. */
  find({ record, place }) {
    return this.records.id[place] === record ? place : this.rowOf.get(record);
  }

  /** Put a row into a state. */
  point(state, row) {
    state.record = this.records.id[row];
    state.place = this.rowOf.get(state.record) === row ? null : row;
  }

  /** Return the value of a metric, or null. */
  value(metric, row) {
    return ownValue(this.records.metrics, metric)?.[row] ?? null;
  }

  /** Return the outcome of a row, a key of {@link OUTCOMES}. */
  outcome(row) {
    if (this.records.failed[row] !== null) return "failed";
    const share = this.support(row);
    if (share === null) return "unjudged";
    return share < 1 ? "unsupported" : "supported";
  }

  /** Return the share of supported sentences of a row, or null. */
  support(row) {
    const counts = this.records.supported[row];
    return counts && counts[0] / counts[1];
  }

  /** Return id and question of a row in lower case. */
  textOf(row) {
    this.texts ??= this.records.id.map((id, at) =>
      `${id}\n${this.records.question[at]}`.toLowerCase(),
    );
    return this.texts[row];
  }

  /** Return the rows that match a state, in its order; `found` are the full-text matches. */
  select(state, found) {
    const tests = this.tests(state, found);
    const rows = [];
    for (let row = 0; row < this.count; row += 1)
      if (tests.every((passes) => passes(row))) rows.push(row);
    return this.sorted(rows, state);
  }

  /** Return a predicate for each filter. */
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
    if (state.verdict !== null) tests.push((row) => this.outcome(row) === state.verdict);
    if (state.subset !== null) {
      const at = this.subset.values.indexOf(state.subset);
      tests.push((row) => at >= 0 && records.subset[row] === at);
    }
    if (state.signature !== null)
      tests.push((row) => records.signature[row] === state.signature);
    if (state.failed !== null) tests.push((row) => records.failed[row] === state.failed);
    const words = wordsOf(state.text);
    if (words.length > 0)
      tests.push((row) => holdsAll(this.textOf(row), words) || (state.full && found.has(row)));
    return tests;
  }

  /** Return whether a value is within a range; a missing value is in none. */
  rangeTest(metric, { low, high, open }) {
    const below = (value) => (open ? value < high : value <= high);
    return (row) => {
      const value = this.value(metric, row);
      return value !== null && (low === null || value >= low) && (high === null || below(value));
    };
  }

  /** Return a state's sort key, and whether it sorts in descending order. */
  orderOf({ sort, descending }) {
    return sort === null ? ["support", false] : [sort, descending];
  }

  /** Return whether descending order puts the worst first. */
  isWorstFirst(sort) {
    const at = this.metrics.indexOf(sort);
    return at >= 0 ? !this.higher_is_better[at] : ["doubt", "findings"].includes(sort);
  }

  /** Sort rows; of equal ones the more suspicious comes first, then the earlier one. */
  sorted(rows, state) {
    const [sort, descending] = this.orderOf(state);
    const value = this.sortValue(sort);
    if (value === null) return descending ? rows.reverse() : rows;
    const values = new Map(rows.map((row) => [row, value(row)]));
    const sign = descending ? -1 : 1;
    const { doubt } = this.records;
    return rows.sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      if (a === null || b === null) return (a === null) - (b === null) || one - other;
      return (a < b ? -sign : a > b ? sign : 0) || doubt[other] - doubt[one] || one - other;
    });
  }

  /** Return the sort value of rows; null for the order of the file. Rows without a value come last. */
  sortValue(sort) {
    const { records } = this;
    if (sort === "support") return (row) => this.support(row);
    if (sort === "id") return (row) => records.id[row];
    if (sort === "doubt") return (row) => records.doubt[row] ?? null;
    if (sort === "findings") return (row) => records.findings[row].length;
    return Object.hasOwn(records.metrics, sort) ? (row) => this.value(sort, row) : null;
  }

  /** Count the records of each value. */
  counts(size, valuesOf) {
    const counts = new Array(size).fill(0);
    for (let row = 0; row < this.count; row += 1)
      for (const at of valuesOf(row)) if (at >= 0) counts[at] += 1;
    return counts;
  }
}
