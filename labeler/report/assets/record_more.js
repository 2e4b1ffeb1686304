/* Metrics and provenance of a record. */

/** Draw the metrics; null without any. */
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

/** Draw signature, key, metadata and other facts about row and label. */
function drawRecordMade({ signature, key, made, metadata }) {
  const facts = [["signature", signature], ["key", key], ...Object.entries(made)];
  return el(
    "details",
    { class: "record-made" },
    el("summary", {}, "Provenance"),
    factList(facts),
    Object.keys(metadata).length > 0 && [
      el("h4", {}, "Metadata"),
      factList(Object.entries(metadata)),
    ],
  );
}

/** Draw facts with their names. */
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
