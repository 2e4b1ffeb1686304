/* The review desk: a person agrees with a judge's label, or says what is right instead. */

const API = "/api/";
const STORED_TOKEN = "token";
const STORED_NAME = "annotator";
const STORED_PLACE = "position";
const STORED_KEYS = "keys-off";
const DRAFT = "draft:";

/** What each key does, and what the help says of it; those of the sentences are the record's own. */
const KEYS = [
  ["a", "Agree with the judge and go on", () => answer("agree")],
  ["d", "Save your own judgement and go on (also Ctrl+Enter)", () => answer("judged")],
  ["n", "Not sure: no judgement of yours counts", () => answer("unsure")],
  ["l", "Later, or go on: the next record that you have not judged", () => later()],
  ["j", "Next record", () => step(1)],
  ["k", "Previous record", () => step(-1)],
  ["o", "Turn the verdict on the response as a whole", () => toggle("overall", null)],
  ["c", "Write a comment", () => $("#comment").focus()],
  ["z", "Undo: take back what you saved last", () => undo()],
  ["f", "Show or hide the figures so far", () => toggleFigures()],
  ["?", "This help", () => $("#help").showModal()],
];

/** The same for keys of the record that `record_keys.js` listens to. */
const RECORD_KEYS = [
  ["↑ ↓ ← →", "Move between sentences; left and right change the side"],
  ["s", "On a response sentence: supported, or not"],
  ["r", "On a document sentence: relevant to the question, or not"],
  ["u", "On a document sentence: utilized by the response, or not"],
  ["Enter", "On a document sentence: it supports the chosen response sentence, or not"],
];

/** What a field is called in the list of differences. */
const FIELD_WORDS = { relevant: "relevant", utilized: "utilized", supported: "supported", support: "support" };

/** Differences that are listed at most. */
const DIFFERENCES_AT_ONCE = 12;

/** What the page knows; the server knows the rest. */
const desk = {
  token: null,
  overview: null,
  annotator: "",
  turn: null,
  judgement: null,
  /** Whether the person has set the verdict on the whole, which else follows the sentences. */
  ownOverall: false,
  drawing: null,
  /** What undo takes back: position and key of what was saved last. */
  saved: null,
  /** Whether a request is under way whose answer decides what is shown. */
  busy: false,
  /** Selector of the button that gets the focus when the request under way is done. */
  focusAfter: null,
  /** Key of the label of which was asked whether no document sentence is meant to be marked. */
  askedUnmarked: null,
  /** Counts up with every change of record, so that late answers are recognised. */
  visit: 0,
};

/** Why a request failed, in words for a person. */
class Trouble extends Error {
  /** @param {string} message what happened. @param {number} status of HTTP; 0 where nobody answered. */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

// Talking to the server.

/**
 * Ask the desk's server.
 * @param {string} path under the API.
 * @param {?object} [body] what to send; without it nothing is changed.
 * @returns {Promise<object>} its answer.
 */
async function ask(path, body = null) {
  const headers = { Authorization: `Bearer ${desk.token}` };
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" };
  let response;
  try {
    response = await fetch(API + path, options);
  } catch {
    throw new Trouble(
      `The desk does not answer. What you entered stays here: start it again with --port ${location.port}, ` +
        "open the new address in this tab, and go on.",
      0,
    );
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const reason = typeof answer.error === "string" ? answer.error : `the desk answered ${response.status}`;
  throw new Trouble(response.status === 401 ? "This page has an old token: open the address that the terminal shows, in this tab." : capital(reason), response.status);
}

/** Do something that talks to the server; what goes wrong is shown, and nothing is lost. */
async function attempt(work) {
  if (desk.busy) return;
  desk.busy = true;
  paintBar();
  try {
    await work();
    trouble("");
  } catch (error) {
    if (!(error instanceof Trouble)) console.error(error);
    trouble(error instanceof Trouble ? error.message : "The page failed; load it again. What you entered is kept.");
  } finally {
    desk.busy = false;
    paintBar();
    if (desk.focusAfter) $(desk.focusAfter).focus({ preventScroll: true });
    desk.focusAfter = null;
  }
}

/** Show what went wrong, or that nothing does. */
function trouble(message) {
  const box = $("#trouble");
  box.hidden = message === "";
  box.textContent = message;
}

/** Say briefly what was done. */
function tell(message) {
  $("#status").textContent = message;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

// Records, one at a time.

/** Fetch and show the record at a place of the queue. */
async function visit(position) {
  const visitNumber = ++desk.visit;
  const turn = await ask(`records/${position}?annotator=${encodeURIComponent(desk.annotator)}`);
  if (visitNumber !== desk.visit) return;
  sessionStorage.setItem(STORED_PLACE, String(position));
  show(turn);
  scrollTo({ top: 0 });
  $("#work").focus({ preventScroll: true });
}

/** Show a record as the server tells of it; a draft goes before what was saved. */
function show(turn) {
  desk.turn = turn;
  const draft = readDraft(turn);
  desk.judgement = draft?.judgement ?? savedJudgement(turn);
  desk.ownOverall = draft?.ownOverall ?? Boolean(turn.mine?.judgement);
  $("#comment").value = draft?.comment ?? turn.mine?.comment ?? "";
  desk.drawing = drawRecord(turn.record, { checks: desk.overview.checks, hidden: turn.hidden, edit: { judgement: desk.judgement, toggle, toggleSupport } });
  $("#record").replaceChildren(desk.drawing.node);
  paint();
}

/** Where a person begins: with what they saved, else with the judge's label, else with nothing. */
function savedJudgement(turn) {
  if (!turn.mine?.judgement) return judgeJudgement(turn);
  return ownJudgement(turn.mine.judgement, turn.record.response.map(({ key }) => key));
}

/** The judge's label as a judgement to change; nothing is decided where it is hidden. */
function judgeJudgement(turn) {
  if (!turn.judge) return { relevant: [], utilized: [], support: {}, overall_supported: null, judged: {} };
  return ownJudgement(turn.judge, Object.keys(turn.record.label.support));
}

/** A judgement to change, and which response sentences it decides on. */
function ownJudgement(base, decided) {
  const judged = Object.fromEntries(decided.map((key) => [key, true]));
  const support = Object.fromEntries(Object.entries(base.support).map(([key, keys]) => [key, [...keys]]));
  return { relevant: [...base.relevant], utilized: [...base.utilized], support, overall_supported: base.overall_supported, judged };
}

/** Turn a decision of the person's judgement round. */
function toggle(field, key) {
  if (!desk.turn || desk.busy) return;
  const { judgement } = desk;
  if (isOpen() && field === "overall") {
    tell("Decide on the sentences first: the whole follows from them, and can then be turned.");
    return;
  }
  if (field === "overall") {
    judgement.overall_supported = !judgement.overall_supported;
    desk.ownOverall = true;
  } else if (field === "supported") {
    toggleSupported(key);
  } else {
    judgement[field] = toggled(judgement[field], key);
  }
  changed();
}

/** Undecided becomes supported, supported becomes not supported, and so round again. */
function toggleSupported(key) {
  const { judgement } = desk;
  if (ownValue(judgement.judged, key) && ownValue(judgement.support, key)) delete judgement.support[key];
  else judgement.support[key] = ownValue(judgement.support, key) ?? [...(ownValue(desk.turn.judge?.support, key) ?? [])];
  judgement.judged[key] = true;
  followSentences();
}

/** Make a document sentence, or a special string, support a response sentence, or no more. */
function toggleSupport(responseKey, documentKey) {
  if (!desk.turn || desk.busy) return;
  const { judgement } = desk;
  judgement.support[responseKey] = toggled(ownValue(judgement.support, responseKey) ?? [], documentKey);
  judgement.judged[responseKey] = true;
  followSentences();
  changed();
}

/** A set of keys with one more, or one less. */
function toggled(keys, key) {
  return keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key];
}

/** Until the person sets it, the whole is supported where every sentence is; null until all are decided. */
function followSentences() {
  if (desk.ownOverall) return;
  const { judgement, turn } = desk;
  const keys = turn.record.response.map(({ key }) => key);
  judgement.overall_supported = undecided().length > 0 ? null : keys.every((key) => ownValue(judgement.support, key) !== undefined);
}

/** After any change: keep it, and draw it. */
function changed() {
  writeDraft();
  desk.drawing.update(desk.judgement);
  paint();
}

// Drafts: what is not saved yet survives reloading, moving on and a server that is gone.

function draftName(turn) {
  return `${DRAFT}${desk.annotator}:${turn.key}`;
}

function readDraft(turn) {
  const text = sessionStorage.getItem(draftName(turn));
  return text === null ? null : JSON.parse(text);
}

function writeDraft() {
  if (isChanged()) {
    const draft = { judgement: desk.judgement, comment: $("#comment").value, ownOverall: desk.ownOverall };
    sessionStorage.setItem(draftName(desk.turn), JSON.stringify(draft));
  } else {
    dropDraft(desk.turn);
  }
}

function dropDraft(turn) {
  sessionStorage.removeItem(draftName(turn));
}

/** Whether anything that was entered is not saved, here or on another record. */
function hasDrafts() {
  return Object.keys(sessionStorage).some((name) => name.startsWith(DRAFT));
}

/** Whether the record shows something else than what is saved. */
function isChanged() {
  const { turn, judgement } = desk;
  return $("#comment").value !== (turn.mine?.comment ?? "") || canonical(judgement) !== canonical(savedJudgement(turn));
}

/** A judgement as a text that two equal ones share. */
function canonical(judgement) {
  const support = Object.entries(judgement.support).map(([key, keys]) => [key, [...keys].sort()]).sort(([a], [b]) => (a < b ? -1 : 1));
  const judged = Object.keys(judgement.judged).sort();
  return JSON.stringify([[...judgement.relevant].sort(), [...judgement.utilized].sort(), support, judgement.overall_supported, judged]);
}

// Differences between the judge and the person.

/**
 * Where a person's judgement differs from the judge's.
 * @returns {Array<{key: ?string, words: string}>} in reading order.
 */
function differencesOf(judge, mine) {
  const found = [];
  for (const field of ["relevant", "utilized"]) {
    for (const key of [...mine[field], ...judge[field]]) {
      if (mine[field].includes(key) === judge[field].includes(key)) continue;
      found.push({ key, words: mine[field].includes(key) ? FIELD_WORDS[field] : `not ${FIELD_WORDS[field]}` });
    }
  }
  for (const { key } of desk.turn.record.response) {
    const [theirs, own] = [ownValue(judge.support, key), ownValue(mine.support, key)];
    if (!own !== !theirs) found.push({ key, words: own ? "supported" : "not supported" });
    else if (own && own.length > 0 && [...own].sort().join() !== [...theirs].sort().join()) found.push({ key, words: `supported by ${own.join(", ")}` });
  }
  if (mine.overall_supported !== null && mine.overall_supported !== judge.overall_supported) {
    found.push({ key: null, words: mine.overall_supported ? "supported as a whole" : "not supported as a whole" });
  }
  return found;
}

/** Response sentences that the person has not decided on. */
function undecided() {
  return desk.turn.record.response.map(({ key }) => key).filter((key) => !ownValue(desk.judgement.judged, key));
}

/** Whether a person who sees no verdicts has not come to one on the whole yet. */
function isOpen() {
  return desk.turn.hidden && undecided().length > 0;
}

// Answers.

/** Store what the person says of the record, and go on. */
function answer(kind) {
  return attempt(async () => {
    const { turn } = desk;
    if (!turn || !mayAnswer(kind)) return;
    const { judged: _, ...judgement } = desk.judgement;
    const said = { key: turn.key, annotator: desk.annotator, answer: kind, comment: $("#comment").value.trim() };
    if (kind === "judged") said.judgement = judgement;
    const after = await ask(`records/${turn.position}`, said);
    dropDraft(turn);
    desk.saved = { position: turn.position, key: turn.key };
    tell(`Saved record ${turn.position + 1}: ${OPINION_WORDS[after.mine.opinion]}.`);
    if (!$("#figures").hidden) void refreshFigures();
    if (turn.hidden) return reveal(after);
    if (after.counts.next_open !== null) return visit(after.counts.next_open);
    show(after);
    desk.focusAfter = "#work";
    tell("All records are judged. Look at the figures (f), or stop the desk in its terminal with Ctrl-C.");
  });
}

const OPINION_WORDS = { agree: "you agree with the judge", disagree: "you disagree with the judge", unsure: "you are not sure" };

/** Whether an answer can be given now; if not, say why. */
function mayAnswer(kind) {
  const open = undecided();
  if (kind === "agree" && desk.turn.hidden) {
    tell("The judge's verdicts are hidden: judge yourself, then save with d.");
    return false;
  }
  if (kind === "agree" && isJudgementChanged()) {
    tell("Your marks differ from the judge's: save them with d, or start over.");
    return false;
  }
  if (kind === "judged" && open.length > 0) {
    tell(`Decide on every response sentence first: ${open.join(", ")} (press s there).`);
    desk.drawing.focus(open[0]);
    return false;
  }
  if (kind === "judged" && desk.judgement.overall_supported === null) {
    tell("Decide on the response as a whole first (press o).");
    return false;
  }
  if (kind === "judged" && isUnmarked() && desk.askedUnmarked !== desk.turn.key) {
    desk.askedUnmarked = desk.turn.key;
    tell("No sentence is marked relevant (R) or utilized (U). Press d again if that is right.");
    return false;
  }
  return true;
}

/** Whether a person who sees no verdicts marked no document sentence: each then counts as a no. */
function isUnmarked() {
  const { turn, judgement } = desk;
  const sentences = turn.record.documents.some((document) => document.length > 0);
  return turn.hidden && sentences && judgement.relevant.length === 0 && judgement.utilized.length === 0;
}

/** Whether the marks differ from what the judge says. */
function isJudgementChanged() {
  return desk.turn.judge !== null && differencesOf(desk.turn.judge, desk.judgement).length > 0;
}

/** After a blind judgement: show the judge's label beside it. */
function reveal(turn) {
  show(turn);
  desk.focusAfter = "#later";
}

/** On to the next record without a judgement. */
function later() {
  return attempt(async () => {
    const next = desk.turn?.counts.next_open ?? null;
    if (next === null) tell("Nothing is left: you have judged every record.");
    else await visit(next);
  });
}

/** On or back by some places. */
function step(by) {
  return attempt(async () => {
    const position = (desk.turn?.position ?? 0) + by;
    if (position >= 0 && position < desk.overview.counts.size) await visit(position);
    else tell(by > 0 ? "This is the last record." : "This is the first record.");
  });
}

/** Take back what was saved last. */
function undo() {
  return attempt(async () => {
    const { saved } = desk;
    if (!saved) return tell("There is nothing to take back.");
    const turn = await ask(`records/${saved.position}/withdrawal`, { key: saved.key, annotator: desk.annotator });
    desk.saved = null;
    sessionStorage.setItem(STORED_PLACE, String(saved.position));
    show(turn);
    tell(`Taken back: record ${saved.position + 1} counts as not judged.`);
    if (!$("#figures").hidden) void refreshFigures();
  });
}

/** Back to the judge's marks, or to none where they are hidden. */
function startOver() {
  if (!desk.turn || desk.busy) return;
  desk.judgement = judgeJudgement(desk.turn);
  desk.ownOverall = false;
  changed();
  tell(desk.turn.hidden ? "Your marks are gone." : "These are the judge's marks again.");
}

// What stands around the record.

function paint() {
  paintHead();
  paintLead();
  paintDifferences();
  paintBar();
}

function paintHead() {
  const { counts } = desk.turn ?? desk.overview;
  const judged = counts.agree + counts.disagree + counts.unsure;
  const progress = $("#progress");
  progress.max = counts.size;
  progress.value = judged;
  $("#counts").replaceChildren(
    el("strong", {}, `${grouped(judged)} of ${grouped(counts.size)} judged`),
    ` · ${counts.agree} agree, ${counts.disagree} disagree, ${counts.unsure} not sure`,
  );
}

/** What to do, in a sentence or two. */
function paintLead() {
  const { turn } = desk;
  const mine = turn.mine && OPINION_WORDS[turn.mine.opinion];
  let words = [el("strong", {}, "Is the judge right? "), "Check its marks against the texts. Press ", el("kbd", {}, "a"), " to agree; or change the marks that are wrong, by click or key, and press ", el("kbd", {}, "d"), " to save."];
  if (turn.hidden) {
    words = [
      el("strong", {}, "Judge it yourself. "),
      "Say of each response sentence whether the documents support it, mark document sentences as relevant (R) or utilized (U), and press ",
      el("kbd", {}, "d"),
      ". Then you see what the judge said.",
    ];
  } else if (turn.mine) {
    words = [el("strong", {}, `You judged this: ${mine}. `), "Go on with ", el("kbd", {}, "l"), ", or change your mind and save again."];
  }
  $("#lead").replaceChildren(...words);
}

function paintDifferences() {
  const { turn } = desk;
  const box = $("#differences");
  if (turn.hidden) {
    const open = undecided();
    box.replaceChildren(open.length > 0 ? `Response sentences to decide: ${open.join(", ")}` : "Every response sentence is decided.");
    return;
  }
  const found = differencesOf(turn.judge, desk.judgement);
  if (found.length === 0) {
    box.replaceChildren(turn.mine?.judgement ? "You and the judge say the same." : "You changed nothing: these are the judge's marks.");
    return;
  }
  const listed = found.slice(0, DIFFERENCES_AT_ONCE);
  const groups = [...new Set(listed.map(({ words }) => words))].map((words) => [
    el("span", { class: "difference" }, words, listed.filter((one) => one.key && one.words === words).map(({ key }) => [" ", goToButton(key)])),
  ]);
  const more = found.length > listed.length && ` and ${found.length - listed.length} more`;
  box.replaceChildren(...[el("strong", {}, `You differ in ${counted(found.length, "place")}: `), groups, more].flat(Infinity).filter(isShown));
}

/** A button that leads to a sentence. */
function goToButton(key) {
  return el("button", { type: "button", class: "key", title: `Go to sentence ${key}`, onclick: () => desk.drawing.focus(key) }, key);
}

/** Which buttons can be pressed, and which is the likely one. */
function paintBar() {
  const { turn, busy } = desk;
  const off = busy || !turn;
  const changedMarks = turn && (turn.hidden || isJudgementChanged());
  for (const id of ["agree", "save", "unsure", "later", "previous", "next"]) $(`#${id}`).disabled = off;
  if (off) return;
  const { size, next_open: nextOpen } = turn.counts;
  $("#later").replaceChildren(turn.mine ? "Go on " : "Later ", el("kbd", {}, "l"));
  const agree = $("#agree");
  agree.hidden = turn.hidden;
  agree.disabled = changedMarks;
  agree.classList.toggle("primary", !changedMarks && !turn.mine);
  $("#save").classList.toggle("primary", Boolean(changedMarks) && (!turn.mine || isChanged()));
  $("#later").disabled = nextOpen === null;
  $("#later").classList.toggle("primary", Boolean(turn.mine) && !isChanged());
  $("#previous").disabled = turn.position === 0;
  $("#next").disabled = turn.position === size - 1;
  $("#undo").disabled = desk.saved === null;
  $("#reset").disabled = canonical(desk.judgement) === canonical(judgeJudgement(turn));
  $("#size").textContent = `of ${grouped(size)}`;
  if (document.activeElement !== $("#position")) $("#position").value = String(turn.position + 1);
}

const QUEUE_WORDS = {
  random: "drawn at random",
  doubtful: "the most doubtful first",
  order: "in the order of the file",
  chosen: "chosen",
};

function paintWho() {
  const { overview } = desk;
  const { size } = overview.counts;
  const records = size < overview.labels ? `${grouped(size)} of ${counted(overview.labels, "record")}` : counted(size, "record");
  $("#who").replaceChildren(
    ...[
      `${records}, ${QUEUE_WORDS[overview.queue]}${overview.blind ? ", blind" : ""} · you are `,
      el("strong", { dir: "auto" }, desk.annotator),
      !overview.fixed && [" ", el("button", { type: "button", class: "plain", onclick: () => openName() }, "Change name")],
    ].flat(Infinity).filter(isShown),
  );
}

// Figures.

function toggleFigures() {
  const box = $("#figures");
  box.hidden = !box.hidden;
  $("#figures-open").setAttribute("aria-expanded", String(!box.hidden));
  if (!box.hidden) void refreshFigures();
}

/** Fetch the figures anew; meanwhile the old ones stay. */
async function refreshFigures() {
  const box = $("#figures");
  try {
    if (box.childElementCount === 0) box.replaceChildren(el("p", { class: "muted" }, "Working them out…"));
    box.replaceChildren(...drawFigures(await ask("statistics")));
  } catch (error) {
    if (!(error instanceof Trouble)) console.error(error);
    box.replaceChildren(el("p", {}, error instanceof Trouble ? error.message : "The figures cannot be shown."));
  }
}

function drawFigures(figures) {
  if (figures.judged === 0) return [el("p", {}, "Nothing is judged yet: the figures begin with the first judgement.")];
  return [drawFields(figures), drawMeans(figures), drawPeople(figures)].filter(isShown);
}

/** A table with a caption, that scrolls by itself. */
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

// Dialogs.

function fillHelp() {
  const list = (keys) => el("dl", { class: "desk-keys" }, keys.map(([key, words]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, words)]));
  const off = el("input", {
    type: "checkbox",
    onchange: (event) => sessionStorage.setItem(STORED_KEYS, event.target.checked ? "" : "off"),
  });
  off.checked = keysAreOn();
  $("#help").replaceChildren(
    el("h2", { id: "help-title", tabindex: "-1", autofocus: true }, "How to review"),
    el("p", {}, "A judge has read the documents and the response. It marked document sentences that help to answer the question (R, relevant) and that the response uses (U, utilized), and said of each response sentence whether the documents support it (✓ or ✗), and by which sentences."),
    el("p", {}, "You say whether that is right. The judge's label is never changed: what you say is added to a file of corrections, and is safe as soon as the page says “Saved”."),
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

/** Let another person judge. */
function openName() {
  const field = el("input", { type: "text", id: "name-field", maxlength: "100", autocomplete: "off", required: true });
  field.value = desk.annotator;
  const done = (event) => {
    event.preventDefault();
    const name = field.value.trim();
    if (name === "") return;
    $("#name").close();
    sessionStorage.setItem(STORED_NAME, name);
    void begin(0);
  };
  $("#name").replaceChildren(
    el(
      "form",
      { onsubmit: done },
      el("h2", { id: "name-title" }, "Who judges?"),
      el("p", {}, el("label", { for: "name-field" }, "Your name, as the corrections will bear it")),
      el("p", {}, field),
      el("p", { class: "desk-group" }, el("button", { type: "submit", class: "primary" }, "Go on"), el("button", { type: "button", onclick: () => $("#name").close() }, "Cancel")),
    ),
  );
  $("#name").showModal();
}

// Beginning.

/** Take the token out of the address, where it could be copied or kept. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    sessionStorage.setItem(STORED_TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  desk.token = sessionStorage.getItem(STORED_TOKEN) ?? "";
  return given !== null;
}

/** Open the desk where the person left it, else where the first record waits. */
function begin(place = null) {
  return attempt(async () => {
    const overview = await ask("overview");
    desk.overview = overview;
    desk.annotator = overview.fixed ? overview.annotator : (sessionStorage.getItem(STORED_NAME) ?? overview.annotator);
    desk.saved = null;
    paintWho();
    const kept = Number(sessionStorage.getItem(STORED_PLACE));
    const wanted = place ?? (sessionStorage.getItem(STORED_PLACE) === null ? overview.counts.next_open : kept) ?? 0;
    await visit(wanted < overview.counts.size ? wanted : 0);
  });
}

function onDeskKey(event) {
  if (event.defaultPrevented || event.isComposing || $("dialog[open]")) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    void answer("judged");
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && isWriting(event.target)) $("#work").focus({ preventScroll: true });
  if (isWriting(event.target) || !keysAreOn()) return;
  const found = KEYS.find(([key]) => key === event.key);
  if (found) {
    event.preventDefault();
    void found[2]();
  }
}

/** Go to the record whose number was typed. */
function goTo(event) {
  const position = Number(event.target.value) - 1;
  event.target.blur();
  if (!Number.isInteger(position) || position < 0 || position >= desk.overview.counts.size) {
    paintBar();
    tell(`There are records 1 to ${grouped(desk.overview.counts.size)}.`);
  } else {
    void attempt(() => visit(position));
  }
}

function startDesk() {
  $("#previous").append(icon("previous"));
  $("#next").append(icon("next"));
  const clicks = {
    previous: () => step(-1),
    next: () => step(1),
    agree: () => answer("agree"),
    save: () => answer("judged"),
    unsure: () => answer("unsure"),
    later,
    undo,
    reset: startOver,
    "figures-open": toggleFigures,
    "help-open": () => $("#help").showModal(),
  };
  for (const [id, act] of Object.entries(clicks)) $(`#${id}`).addEventListener("click", () => void act());
  $("#comment").addEventListener("input", () => {
    if (desk.turn) writeDraft();
    paintBar();
  });
  $("#position").addEventListener("change", goTo);
  document.addEventListener("keydown", onDeskKey);
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

startDesk();
