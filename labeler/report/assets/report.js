/* Starts the report's record browser. */

/** Fill the section of the record browser, or show the error. */
async function startReport() {
  const place = $("#browser");
  if (!place) return;
  const show = (words) =>
    place.replaceChildren(
      el("h2", {}, "Records"),
      el("p", { class: "notice bad", role: "alert" }, words),
    );
  if (!canUnpack()) {
    show(
      "This browser cannot unpack the records. Use Chrome or Edge 80, Firefox 113, Safari 16.4, or newer.",
    );
    return;
  }
  place.replaceChildren(
    el("h2", {}, "Records"),
    el("p", { class: "muted" }, "Loading the list of records…"),
  );
  try {
    new RecordBrowser(place, new RecordIndex(await readBlock("index")));
  } catch (error) {
    show(unreadableWords(error));
  }
}

startReport();
