/* The filters of the list: choices, and active filters. */

/**
 * A kind of filters: its values with their words, and a function that adds one to a state.
 * @typedef {{name: string, words: string, options: Array<[*, string]>,
 *   add: function(BrowserState, *): void}} FilterKind
 */

/**
 * The kinds of filters that apply to some record.
 * @param {RecordIndex} index the records.
 * @returns {FilterKind[]} kinds, with the values of the records and their counts.
 */
function filterKinds(index) {
  const { records, subset } = index;
  const offer = (name, words, values, titles, valuesOf, add) => {
    const counts = index.counts(values.length, valuesOf);
    const options = values
      .map((value, at) => [value, `${titles[at]} (${grouped(counts[at])})`])
      .filter((_, at) => counts[at] > 0);
    return { name, words, options, add };
  };
  const known = (name, words, list, found) => {
    const [ids, titles] = [list.map(({ id }) => id), list.map(({ title }) => title)];
    const add = (state, id) => state.add({ [name]: id });
    return offer(name, words, ids, titles, (row) => new Set(found[row]), add);
  };
  const one = (name, words, values, titles, valuesOf) =>
    offer(name, words, values, titles, valuesOf, (state, value) => (state[name] = value));
  const { signatures } = index;
  const several = signatures.length > 1 ? signatures : [];
  const outcomes = Object.keys(OUTCOMES);
  const reasons = [...new Set(records.failed.filter((reason) => reason !== null))].sort();
  return [
    one("verdict", "Answer", outcomes, Object.values(OUTCOMES), (row) => [
      outcomes.indexOf(index.outcome(row)),
    ]),
    one("subset", subset.column ?? "Subset", subset.values, subset.values, (row) => [
      records.subset[row],
    ]),
    known("check", "Finding", index.checks, records.findings),
    known("pattern", "Pattern", index.patterns, records.patterns),
    one("signature", "Configuration", [...several.keys()], several, (row) => [records.signature[row]]),
    one("failed", "Failure", reasons, reasons, (row) => [reasons.indexOf(records.failed[row])]),
  ].filter(({ options }) => options.length > 0);
}

/**
 * Draw a selection box that adds a filter.
 * @param {FilterKind} kind the choices.
 * @param {function(function(BrowserState): void): void} change changes the state.
 */
function drawFilterChoice({ name, words, options, add }, change) {
  const choose = () => {
    const [value] = options[Number(field.value)];
    field.value = "";
    change((state) => add(state, value));
  };
  const field = el(
    "select",
    { id: `filter-${name}`, onchange: choose },
    el("option", { value: "" }, "any"),
    options.map(([, title], at) => el("option", { value: String(at) }, title)),
  );
  return el("div", { class: "control" }, el("label", { for: `filter-${name}` }, words), field);
}

/** Draw the filter by a range of a metric; null without metrics. */
function drawRangeFilter(metrics, change) {
  if (metrics.length === 0) return null;
  const metric = el(
    "select",
    { id: "range-metric", "aria-label": "Metric" },
    metrics.map((id) => el("option", { value: id }, id)),
  );
  const boundField = (name, words) =>
    el("input", { type: "number", step: "any", "aria-label": name, placeholder: words });
  const low = boundField("From", "from");
  const high = boundField("To", "to");
  const apply = (event) => {
    event.preventDefault();
    const range = { low: bound(low.value), high: bound(high.value), open: false };
    if (range.low === null && range.high === null) return;
    change((state) => state.ranges.set(metric.value, range));
    low.value = "";
    high.value = "";
  };
  return el(
    "form",
    { class: "control range", "aria-label": "Metric range", onsubmit: apply },
    el("label", { for: "range-metric" }, "Metric from … to …"),
    el("div", { class: "joined" }, metric, low, high, el("button", { type: "submit" }, "Filter")),
  );
}

/**
 * The active filters, each with a function that removes it.
 * @returns {Array<[string, function(BrowserState): void]>} words and change.
 */
function filtersInForce(state, index) {
  const titled = (list, id) => list.find((one) => one.id === id)?.title ?? id;
  const without = (name, id) => (now) => (now[name] = now[name].filter((one) => one !== id));
  const reset = (name) => (now) => (now[name] = null);
  const { verdict, subset, signature, failed, text } = state;
  return [
    ...[...state.ranges].map(([metric, range]) => [
      rangeWords(metric, range),
      (now) => now.ranges.delete(metric),
    ]),
    ...state.checks.map((id) => [titled(index.checks, id), without("checks", id)]),
    ...state.patterns.map((id) => [titled(index.patterns, id), without("patterns", id)]),
    verdict !== null && [ownValue(OUTCOMES, verdict) ?? verdict, reset("verdict")],
    subset !== null && [`${index.subset.column ?? "subset"}: ${subset}`, reset("subset")],
    signature !== null && [`configuration: ${index.signatures[signature] ?? signature}`, reset("signature")],
    failed !== null && [`failed: ${failed}`, reset("failed")],
    text !== "" && [`“${text}”${state.full ? " in all texts" : ""}`, (now) => (now.text = "")],
  ].filter(Boolean);
}

/** Draw a chip with a remove button for each active filter. */
function drawFilterChips(filters, drop) {
  const chip = (attributes, ...children) =>
    el("li", {}, el("button", { type: "button", class: "chip", ...attributes }, children));
  const chips = filters.map(([words, remove]) =>
    chip(
      { "aria-label": `Remove filter: ${words}`, onclick: () => drop(remove) },
      el("span", { dir: "auto" }, shownText(words)),
      icon("close"),
    ),
  );
  if (chips.length > 1)
    chips.push(chip({ onclick: () => drop((state) => state.clear()) }, "Clear all"));
  return chips;
}
