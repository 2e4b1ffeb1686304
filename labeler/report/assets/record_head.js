/* The head of a record: id, question, and a one-line summary of the judgment. */

/** Draw id, conversation and question, with a place for the summary. */
function drawRecordHead(view, chips, conversation) {
  return el(
    "header",
    { class: "record-head" },
    el(
      "div",
      { class: "record-line" },
      el(
        "p",
        { class: "record-id" },
        el("span", { class: "small muted" }, "Record "),
        el("code", { dir: "auto" }, shownText(view.id)),
      ),
      chips,
    ),
    conversation,
    el("h2", { class: "question", dir: "auto" }, shownText(view.question)),
  );
}

/** Draw the one-line summary of the judgment. */
function summaryChips({ facts, view, edit, hidden }) {
  const chips = [];
  if (facts) {
    if (!edit) chips.push(overallChip(facts));
    const sentences = view.documents.flat().length;
    chips.push(
      supportedChip(facts, view.response.filter(({ sources }) => !sources)),
      ["", `${facts.relevant.size} of ${grouped(sentences)} relevant`],
      ["", `${facts.utilized.size} utilized`],
    );
  }
  if (!hidden && view.doubt !== null) chips.push(["", `suspicion ${view.doubt.toFixed(2)}`]);
  return chips.map(([look, words]) => el("li", { class: `chip ${look}` }, words));
}

/** Return CSS class and words of the overall verdict. */
function overallChip(facts) {
  const { letter, words, look } = VERDICTS[verdictName(facts.overall)];
  return [look, `${letter} ${words} overall`];
}

/** Return CSS class and words of the number of supported and undecided sentences. */
function supportedChip(facts, response) {
  const count = (verdict) => response.filter(({ key }) => facts.verdict(key) === verdict).length;
  const open = count("undecided");
  if (open > 0 && open === response.length)
    return ["unsure", `? ${counted(open, "sentence")} not judged`];
  const words = `${count("supported")} of ${counted(response.length, "sentence")} supported`;
  if (count("unsupported") > 0) return ["bad", open > 0 ? `${words}, ${open} not judged` : words];
  return open > 0 ? ["unsure", `${words}, ${open} not judged`] : ["good", words];
}

/** The button that toggles the overall verdict. */
class OverallButton {
  constructor(subject, toggle) {
    this.subject = subject;
    this.node = el("button", { type: "button", class: "overall-button", onclick: toggle });
  }

  /** Update the button to the verdict. */
  paint() {
    const { facts, judge } = this.subject;
    const { letter, words } = VERDICTS[verdictName(facts.overall)];
    this.node.textContent = `${letter} ${words} overall`;
    this.node.setAttribute("aria-pressed", String(facts.overall ?? "mixed"));
    this.node.classList.toggle("changed", judge !== null && judge.overall !== facts.overall);
  }
}
