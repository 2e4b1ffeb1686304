/* The records of a report as its index tells of them: which pass the filters, in what order. */

/** The index of a report. */
class RecordIndex {
  /** @param {object} index see the block `index` of the page. */
  constructor(index) {
    Object.assign(this, index);
    this.count = this.records.id.length;
    this.rowOf = new Map(this.records.id.map((id, row) => [id, row]).reverse());
    this.checkById = Object.fromEntries(this.checks.map((check) => [check.id, check]));
    this.firstOrder = this.order === "doubt" ? ["doubt", true] : ["order", false];
  }

  /** The other files of the report. */
  get otherParts() {
    return (this.parts ?? []).filter(({ first }) => first !== this.first);
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

  /** Rows that a state lets through, in its order; `found` are those of a search of all texts. */
  select(state, found) {
    const tests = this.tests(state, found);
    const rows = [];
    for (let row = 0; row < this.count; row += 1)
      if (tests.every((passes) => passes(row))) rows.push(row);
    return this.sorted(rows, state);
  }

  /** One test for each filter. */
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
      tests.push((row) => at >= 0 && records.subset[row] === at);
    }
    if (state.signature !== null)
      tests.push((row) => records.signature[row] === state.signature);
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

  /** Whether the worst come first where the largest values do. */
  isWorstFirst(sort) {
    const at = this.metrics.indexOf(sort);
    return at >= 0 ? !this.higher_is_better[at] : ["doubt", "findings"].includes(sort);
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
