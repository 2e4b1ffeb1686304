/* The statistics of the review so far. */

function toggleFigures() {
  const box = $("#figures");
  box.hidden = !box.hidden;
  $("#figures-open").setAttribute("aria-expanded", String(!box.hidden));
  if (!box.hidden) void refreshFigures();
}

/** Show what the corrections did to the numbers, once every record is judged. */
function showEnd() {
  if ($("#figures").hidden) toggleFigures();
  else void refreshFigures();
  $("#figures").focus();
}

/** Fetch the statistics; the old ones stay visible meanwhile. */
async function refreshFigures() {
  const box = $("#figures");
  try {
    if (box.childElementCount === 0) box.replaceChildren(el("p", { class: "muted" }, "Computing…"));
    box.replaceChildren(...drawFigures(await request("statistics")));
  } catch (error) {
    if (!(error instanceof ReviewError)) console.error(error);
    box.replaceChildren(el("p", {}, error instanceof ReviewError ? error.message : "Statistics are not available."));
  }
}

function drawFigures(figures) {
  if (figures.judged === 0) return [el("p", {}, "No judgments yet.")];
  return [drawChange(figures), drawFields(figures), drawMeans(figures), drawPeople(figures)].filter(isShown);
}

/** Draw what all corrections did to the numbers in one sentence; null while means are hidden. */
function drawChange({ metrics, judged, rows }) {
  if (metrics.length === 0) return null;
  const changed = metrics.filter(({ judge, overlaid }) => overlaid !== null && number(judge.value) !== number(overlaid));
  const words = changed.map(({ words: name, judge, overlaid }) => `${name} ${number(judge.value)} → ${number(overlaid)}`);
  const said = changed.length > 0 ? `Corrections change: ${words.join("; ")}.` : "Corrections change no mean.";
  return el("p", { class: "review-change" }, el("strong", {}, said), ` ${grouped(judged)} of ${counted(rows, "record")} judged.`);
}

/** A scrollable table with a caption. */
function drawTable(caption, heads, rows) {
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, heads.map((head, index) => el("th", { scope: "col", class: index ? "number" : null }, head)))),
      el("tbody", {}, rows.map(([head, ...cells]) => el("tr", {}, el("th", { scope: "row" }, head), cells.map((cell) => el("td", { class: "number" }, cell))))),
    ),
  );
}

function drawFields(figures) {
  const rows = figures.fields.map((field) => [
    field.field.replaceAll("_", " "),
    grouped(field.units),
    field.raw === null ? "–" : `${(100 * field.raw).toFixed(1)} %`,
    coefficient(field.kappa.value),
    coefficient(field.ac1.value),
  ]);
  return drawTable(
    `Judge and people agree, ${counted(figures.judged, "judged record")}`,
    ["verdict", "decisions", "same", "kappa", "AC1"],
    rows,
  );
}

function drawMeans(figures) {
  const rows = figures.metrics.map((metric) => [
    metric.metric,
    withInterval(metric.judge),
    number(metric.overlaid),
    withInterval(metric.estimate),
  ]);
  return el(
    "div",
    {},
    rows.length > 0 && drawTable(
      `Means over ${counted(figures.rows, "labeled row")}, 95 % intervals`,
      ["metric", "before: judge", "after: judged records corrected", "estimate for all records (PPI++)"],
      rows,
    ),
    rows.length > 0 && figures.drawn > 0 && el("p", { class: "small muted" }, `PPI++ corrects all rows by judgments of ${counted(figures.drawn, "random record")}.`),
    figures.notes.map((note) => el("p", { class: "small muted" }, `${capital(note).replace(/\.$/, "")}.`)),
  );
}

function drawPeople(figures) {
  const among = figures.among.map((one) => [one.field.replaceAll("_", " "), grouped(one.units), coefficient(one.alpha.value), coefficient(one.ac1.value)]);
  return among.length > 0 && drawTable("Agreement of people", ["verdict", "decisions", "alpha", "AC1"], among);
}

function number(value) {
  return value === null ? "–" : value.toFixed(3);
}

function coefficient(value) {
  return value === null ? "–" : value.toFixed(2);
}

function withInterval(mean) {
  if (mean === null || mean.value === null) return "–";
  const interval = mean.interval && ` [${number(mean.interval[0])}, ${number(mean.interval[1])}]`;
  return `${number(mean.value)}${interval ?? ""}`;
}
