/* The statistics of the review so far. */

function toggleFigures() {
  const box = $("#figures");
  box.hidden = !box.hidden;
  $("#figures-open").setAttribute("aria-expanded", String(!box.hidden));
  if (!box.hidden) void refreshFigures();
}

/** Fetch the statistics; the old ones stay visible meanwhile. */
async function refreshFigures() {
  const box = $("#figures");
  try {
    if (box.childElementCount === 0) box.replaceChildren(el("p", { class: "muted" }, "Working them out…"));
    box.replaceChildren(...drawFigures(await request("statistics")));
  } catch (error) {
    if (!(error instanceof ReviewError)) console.error(error);
    box.replaceChildren(el("p", {}, error instanceof ReviewError ? error.message : "The figures cannot be shown."));
  }
}

function drawFigures(figures) {
  if (figures.judged === 0) return [el("p", {}, "Nothing is judged yet: the figures begin with the first judgement.")];
  return [drawFields(figures), drawMeans(figures), drawPeople(figures)].filter(isShown);
}

/** A scrollable table with a caption. */
function drawTable(caption, heads, rows) {
  return el(
    "div",
    { class: "scroll" },
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
    `The judge against people, on ${counted(figures.judged, "judged record")}`,
    ["", "decisions", "same", "kappa", "AC1"],
    rows,
  );
}

function drawMeans(figures) {
  const rows = figures.metrics.map((metric) => [
    metric.metric,
    withInterval(metric.judge),
    withInterval(metric.estimate),
    number(metric.overlaid),
  ]);
  return el(
    "div",
    {},
    rows.length > 0 && drawTable(
      `Means over ${counted(figures.rows, "labelled row")}, with 95 % intervals`,
      ["", "judge alone", "set right by people (PPI++)", "corrected where judged"],
      rows,
    ),
    rows.length > 0 && figures.drawn > 0 && el("p", { class: "small muted" }, `PPI++ carries over to all rows what people said of ${counted(figures.drawn, "record")} drawn at random.`),
    figures.notes.map((note) => el("p", { class: "small muted" }, `${capital(note).replace(/\.$/, "")}.`)),
  );
}

function drawPeople(figures) {
  const rows = figures.annotators.map((one) => [shownText(one.annotator), ...[one.agree, one.disagree, one.unsure].map(grouped)]);
  const among = figures.among.map((one) => [one.field.replaceAll("_", " "), grouped(one.units), coefficient(one.alpha.value), coefficient(one.ac1.value)]);
  return el(
    "div",
    {},
    drawTable("Who judged", ["", "agree", "disagree", "not sure"], rows),
    among.length > 0 && drawTable("People among themselves", ["", "decisions", "alpha", "AC1"], among),
  );
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
