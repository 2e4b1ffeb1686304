/* What else is known of a record: its metrics, and how its label was made. */

/** The metrics of a record; null for none. */
function drawRecordMetrics({ view, hidden }) {
  const metrics = hidden ? [] : Object.entries(view.metrics);
  if (metrics.length === 0) return null;
  const rows = metrics.map(([name, metric]) =>
    el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "number" }, metric.text)),
  );
  return el(
    "details",
    { open: true, class: "record-metrics" },
    el("summary", {}, "Metrics"),
    el("table", {}, el("tbody", {}, rows)),
  );
}

/** Signature, key, and what else is known of row and label. */
function drawRecordMade({ signature, key, made, metadata }) {
  const facts = [["signature", signature], ["key", key], ...Object.entries(made)];
  return el(
    "details",
    { class: "record-made" },
    el("summary", {}, "How it was made"),
    factList(facts),
    Object.keys(metadata).length > 0 && [
      el("h4", {}, "Other columns"),
      factList(Object.entries(metadata)),
    ],
  );
}

/** Facts by name. */
function factList(facts) {
  return el(
    "dl",
    { class: "fact-list" },
    facts.map(([name, fact]) => [
      el("dt", { dir: "auto" }, shownText(name)),
      el("dd", { dir: "auto" }, shownText(fact)),
    ]),
  );
}
