/* Starts the report's record browser. */

/** Fill the section of the record browser, or show the error. */
async function startReport() {
  const place = $("#browser");
  if (!place) return;
  const say = (words) =>
    place.replaceChildren(
      el("h2", {}, "Records"),
      el("p", { class: "notice bad", role: "alert" }, words),
    );
  if (!canUnpack()) {
    say(
      "This browser cannot unpack the records. Use a newer one: Chrome or Edge from 80, Firefox from 113, Safari from 16.4.",
    );
    return;
  }
  try {
    new RecordBrowser(place, new RecordIndex(await unpackBlock("index")));
  } catch (error) {
    say(unreadableWords(error));
  }
}

startReport();
