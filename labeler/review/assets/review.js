/* The review page: a person agrees with a judge's label, or corrects it. */

const STORED_PLACE = "position";
const STORED_KEYS = "keys-off";

/** Keys with their help text and action; `record_keys.js` handles the keys of sentences. */
const KEYS = [
  ["a", "Agree with the judge", () => answer("agree")],
  ["d", "Save your judgment (also Ctrl+Enter)", () => answer("judged")],
  ["n", "Unsure: no judgment is saved", () => answer("unsure")],
  ["l", "Next record without your judgment", () => later()],
  ["j", "Next record", () => step(1)],
  ["k", "Previous record", () => step(-1)],
  ["o", "Change the verdict on the whole response", () => toggle("overall", null)],
  ["c", "Write a comment", () => $("#comment").focus()],
  ["z", "Undo the last save", () => undo()],
  ["f", "Show or hide the statistics", () => toggleFigures()],
  ["?", "Help", () => $("#help").showModal()],
];

/** Help for the keys that `record_keys.js` handles. */
const RECORD_KEYS = [
  ["↑ ↓ ← →", "Previous and next sentence; documents and response"],
  ["s", "Response sentence: supported or not"],
  ["r", "Document sentence: relevant or not"],
  ["u", "Document sentence: utilized or not"],
  ["Enter", "Document sentence: supports the selected response sentence or not"],
];

/** Fetch and show the record at a position of the queue. */
async function visit(position) {
  const item = await request(`records/${position}`);
  sessionStorage.setItem(STORED_PLACE, String(position));
  show(item);
  scrollTo({ top: 0 });
}

/** Show a queue item, and focus its selected sentence; a draft takes precedence over the saved answer. */
function show(item) {
  review.item = item;
  const draft = readDraft(item);
  review.judgment = draft?.judgment ?? savedJudgment(item);
  review.ownOverall = draft?.ownOverall ?? Boolean(item.mine?.judgment);
  $("#comment").value = draft?.comment ?? item.mine?.comment ?? "";
  review.drawing = drawRecord(item.record, { checks: review.overview.checks, hidden: item.hidden, edit: { judgment: review.judgment, toggle, toggleSupport } });
  $("#record").replaceChildren(review.drawing.node);
  review.unseen = new Set(review.drawing.node.querySelectorAll(".document, .record-response"));
  review.looked = Boolean(draft || item.mine);
  review.asked.clear();
  paint();
  focusRecord();
}

/** Focus the selected sentence of the record: the one that keys change. */
function focusRecord() {
  if (!review.drawing?.focusSelected()) $("#work").focus({ preventScroll: true });
}

/** Note which parts of the record are in sight: an answer needs one look at each. */
function look() {
  const bar = $(".review-buttons").getBoundingClientRect();
  for (const part of review.unseen) {
    const parts = [part, part.closest(".record-documents") ?? part];
    const [box, pane] = parts.map((node) => node.getBoundingClientRect());
    const [top, bottom] = [Math.max(pane.top, 0), Math.min(pane.bottom, bar.top)];
    if (box.top < bottom && box.bottom > top) review.unseen.delete(part);
  }
}

/**
 * Scroll to a part that the person has not seen.
 * @param {string} again how to answer after a look.
 * @returns {boolean} whether there was one.
 */
function showUnseen(again) {
  look();
  const [part] = review.unseen;
  if (!part) return false;
  part.scrollIntoView({ block: "start" });
  showStatus(`Not seen yet: ${$("h3, h4", part).textContent}. ${again} again after a look.`);
  return true;
}

/** Ask about an answer that may be a mistake; return whether it was asked before, and so is confirmed. */
function isConfirmed(question) {
  if (review.asked.has(question)) return true;
  review.asked.add(question);
  showStatus(question);
  return false;
}

/** Save an answer to the record, and go on. */
function answer(kind) {
  return attempt(async () => {
    const { item } = review;
    if (!item || !mayAnswer(kind)) return;
    const { judged: _, ...judgment } = review.judgment;
    const before = item.mine?.at ?? null;
    const message = { key: item.key, before, answer: kind, comment: $("#comment").value.trim() };
    if (kind === "judged") message.judgment = judgment;
    const after = await request(`records/${item.position}`, message);
    dropDraft(item);
    review.saved = { position: item.position, key: item.key, before: item.mine, at: after.mine.at };
    showStatus(`Saved record ${item.position + 1}: ${OPINION_WORDS[after.mine.opinion]}.`);
    if (!$("#figures").hidden) void refreshFigures();
    if (item.hidden) return reveal(after);
    if (after.counts.next_open !== null) return visit(after.counts.next_open);
    show(after);
    showStatus("All records are judged. Stop the app in its terminal with Ctrl-C.");
    showEnd();
  });
}

const OPINION_WORDS = { agree: "you agree with the judge", disagree: "you disagree with the judge", unsure: "you are unsure" };

/** Return whether an answer is possible now; if not, show the reason. */
function mayAnswer(kind) {
  const open = undecided();
  if (kind === "agree" && review.item.hidden) {
    showStatus("The judge's verdicts are hidden: decide yourself, then save (d).");
    return false;
  }
  if (kind === "agree" && isJudgmentChanged()) {
    showStatus("Your marks differ from the judge's: save (d) or reset.");
    return false;
  }
  if (kind === "judged" && open.length > 0) {
    showStatus(`Undecided response sentences: ${open.join(", ")}. Press s on each.`);
    review.drawing.focus(open[0]);
    return false;
  }
  if (kind === "judged" && review.judgment.overall_supported === null) {
    showStatus("The whole response is undecided. Press o.");
    return false;
  }
  if (kind === "unsure") return true;
  // To save the judge's own marks is to agree.
  if (!isJudgmentChanged() && showUnseen(kind === "agree" ? "Agree" : "Save")) return false;
  if (kind === "agree") return true;
  if (!review.looked && !isConfirmed("You changed nothing. Press d again to agree with the judge.")) return false;
  return !isUnmarked() || isConfirmed("No sentence is relevant (R) or utilized (U). Press d again to save.");
}

/** Return whether a blind judgment marks no document sentence, which would count as "no" for each. */
function isUnmarked() {
  const { item, judgment } = review;
  const sentences = item.record.documents.some((document) => document.length > 0);
  return item.hidden && sentences && judgment.relevant.length === 0 && judgment.utilized.length === 0;
}

/** Return whether the marks differ from the judge's. */
function isJudgmentChanged() {
  return review.item.judge !== null && differencesOf(review.item.judge, review.judgment).length > 0;
}

/** Show the judge's label after a blind judgment. */
function reveal(item) {
  show(item);
  review.focusAfter = "#later";
}

/** Go to the next record without an answer. */
function later() {
  return attempt(async () => {
    const next = review.item?.counts.next_open ?? null;
    if (next === null) showStatus("You have judged every record.");
    else await visit(next);
  });
}

/** Move through the queue by a number of positions. */
function step(by) {
  return attempt(async () => {
    const position = (review.item?.position ?? 0) + by;
    if (position >= 0 && position < review.overview.counts.size) await visit(position);
    else showStatus(by > 0 ? "This is the last record." : "This is the first record.");
  });
}

/** Withdraw the answer saved last, or restore the one that it replaced. */
function undo() {
  return attempt(async () => {
    const { saved } = review;
    if (!saved) return showStatus("Nothing to undo.");
    const { position, key, before, at } = saved;
    const message = { key, before: at, answer: null };
    const isRestored = before !== null && (before.judgment !== null || before.opinion === "unsure");
    if (isRestored) Object.assign(message, { answer: before.opinion, comment: before.comment });
    if (isRestored && before.opinion === "disagree") Object.assign(message, { answer: "judged", judgment: before.judgment });
    const item = await request(`records/${position}`, message);
    review.saved = null;
    sessionStorage.setItem(STORED_PLACE, String(position));
    show(item);
    showStatus(`Undone: record ${position + 1} ${isRestored ? "has your earlier answer" : "is not judged"}.`);
    if (!$("#figures").hidden) void refreshFigures();
  });
}

/** Reset to the judge's marks, or to none if they are hidden. */
function startOver() {
  if (!review.item || review.busy) return;
  review.judgment = judgeJudgment(review.item);
  review.ownOverall = false;
  changed();
  focusRecord();
  showStatus(review.item.hidden ? "Marks removed." : "Reset to the judge's marks.");
}

function fillHelp() {
  const list = (keys) => el("dl", { class: "review-keys" }, keys.map(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)]));
  const off = el("input", {
    type: "checkbox",
    onchange: (event) => sessionStorage.setItem(STORED_KEYS, event.target.checked ? "" : "off"),
  });
  off.checked = keysAreOn();
  $("#help").replaceChildren(
    el("h2", { id: "help-title", tabindex: "-1", autofocus: true }, "How to review"),
    el("p", {}, "A judge marked document sentences that help to answer the question (R, relevant) and that the response uses (U, utilized). It decided for each response sentence whether the documents support it (✓ or ✗), and which sentences do."),
    el("p", {}, "Correct the judge. Its label never changes: your judgment goes to a file of corrections, and is stored once the page shows “Saved”."),
    el("h3", {}, "Keys"),
    list(KEYS),
    el("h3", {}, "Keys on a sentence"),
    list(RECORD_KEYS),
    el("p", {}, el("label", {}, off, " Single keys work")),
    el("p", {}, el("button", { type: "button", class: "primary", onclick: () => $("#help").close() }, "Close")),
  );
}

function keysAreOn() {
  return sessionStorage.getItem(STORED_KEYS) !== "off";
}

/** Start where the person stopped, else at the first record without an answer. */
function begin() {
  return attempt(async () => {
    const overview = await request("overview");
    review.overview = overview;
    review.saved = null;
    paintWho();
    const kept = sessionStorage.getItem(STORED_PLACE);
    const wanted = kept === null ? (overview.counts.next_open ?? 0) : Number(kept);
    await visit(wanted < overview.counts.size ? wanted : 0);
  });
}

function onReviewKey(event) {
  if (event.isComposing || $("dialog[open]")) return;
  if (event.defaultPrevented || (keysAreOn() && review.drawing?.press(event))) {
    review.looked = true;
    return;
  }
  // A key that is held down must not confirm a question, or answer the next record.
  if (event.repeat && !["j", "k"].includes(event.key)) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    void answer("judged");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isWriting(event.target)) focusRecord();
  if (isWriting(event.target) || !keysAreOn()) return;
  const found = KEYS.find(([key]) => key === event.key);
  if (found) {
    event.preventDefault();
    void found[2]();
  }
}

/** Go to the record with the typed number. */
function goTo(event) {
  const position = Number(event.target.value) - 1;
  event.target.blur();
  if (!Number.isInteger(position) || position < 0 || position >= review.overview.counts.size) {
    paintBar();
    showStatus(`Enter a number from 1 to ${grouped(review.overview.counts.size)}.`);
  } else {
    void attempt(() => visit(position));
  }
}

function startReview() {
  $("#previous").append(icon("previous"));
  $("#next").append(icon("next"));
  // The second click of a double click must not do either.
  const once = (kind) => (event) => event.detail < 2 && answer(kind);
  const clicks = {
    previous: () => step(-1),
    next: () => step(1),
    agree: once("agree"),
    save: once("judged"),
    unsure: once("unsure"),
    later,
    undo,
    reset: startOver,
    "figures-open": toggleFigures,
    "help-open": () => $("#help").showModal(),
  };
  for (const [id, act] of Object.entries(clicks)) $(`#${id}`).addEventListener("click", (event) => void act(event));
  $("#comment").addEventListener("input", () => {
    if (review.item) writeDraft();
    review.looked = true;
    paintBar();
  });
  $("#position").addEventListener("change", goTo);
  document.addEventListener("keydown", onReviewKey);
  $("#record").addEventListener("pointerdown", () => {
    review.looked = true;
  });
  document.addEventListener("scroll", look, { capture: true, passive: true });
  addEventListener("beforeunload", (event) => {
    if (hasDrafts()) event.preventDefault();
  });
  addEventListener("hashchange", () => {
    if (takeToken()) void begin();
  });
  fillHelp();
  takeToken();
  void begin();
}

startReview();
