/* The page on which a person reads the sentences of a plan: one key an answer. */

const ANSWER_KEYS = { yes: "y", no: "n", "not relevant": "x" };

/** Keys with their action. */
const READING_KEYS = {
  j: () => visit(review.item.position + 1),
  k: () => visit(review.item.position - 1),
  z: () => undo(),
  y: () => answer("yes"),
  n: () => answer("no"),
  x: () => answer("not relevant"),
};

/** Show the sentence at a position, if there is one. */
async function visit(position) {
  if (review.item && (position < 0 || position >= review.item.size)) return;
  show(await request(`records/${position}`));
}

/** Save an answer, or withdraw it, and go on. */
async function answer(word) {
  const { item } = review;
  if (!item || !review.overview.choices.includes(word)) return;
  const after = await save(item, item.answer, word);
  review.saved = { item, word };
  showStatus(`Saved: ${word}.`);
  if (after.next_open === null) show(after);
  else await visit(after.next_open);
}

/** Take the answer saved last back, and show its sentence. */
async function undo() {
  const { saved } = review;
  if (!saved) return showStatus("Nothing to undo.");
  show(await save(saved.item, saved.word, saved.item.answer || null));
  review.saved = null;
  showStatus("Undone.");
}

function save({ position, texts }, before, word) {
  return request(`records/${position}`, { id: texts.id, sentence: texts.sentence, before, answer: word });
}

/** Show a sentence. */
function show(item) {
  review.item = item;
  const { texts } = item;
  const part = (heading, text, look = "") =>
    text && [el("h2", { dir: "auto" }, shownText(heading)), el("p", { class: look, dir: "auto" }, shownText(text))];
  $("#reading").replaceChildren(
    ...[
      item.left === 0 && el("p", { class: "notice done" }, "All sentences are read. Stop the app in its terminal with Ctrl-C; it shows the next command."),
      el("p", { class: "small muted" }, `Sentence ${item.position + 1} of ${grouped(item.size)}`, item.again && ", read again", " · record ", el("code", { dir: "auto" }, shownText(texts.id))),
      part("Question", texts.question),
      part(texts.ask || "Does the evidence support this sentence?", texts.text, "read"),
      texts.documents && el("p", { class: "small muted" }, "A sentence that claims nothing, such as a greeting, is a yes."),
      part("Compare with", texts.evidence),
      texts.documents && el("details", {}, el("summary", {}, "All documents"), el("p", { dir: "auto" }, shownText(texts.documents))),
    ].flat(Infinity).filter(isShown),
  );
  $("#work").focus({ preventScroll: true });
  scrollTo({ top: 0 });
  paintBar();
}

/** Update progress and buttons. */
function paintBar() {
  const { item, busy } = review;
  if (!item) return;
  $("#progress").max = item.size;
  $("#progress").value = item.size - item.left;
  $("#counts").replaceChildren(el("strong", {}, `${grouped(item.left)} of ${grouped(item.size)} left`));
  for (const button of $("#answers").children) {
    button.disabled = busy;
    button.setAttribute("aria-pressed", String(button.dataset.answer === item.answer));
  }
  $("#previous").disabled = busy || item.position === 0;
  $("#next").disabled = busy || item.position === item.size - 1;
  $("#undo").disabled = busy || review.saved === null;
}

/** Start at the first sentence without an answer. */
function begin() {
  return attempt(async () => {
    review.overview = await request("overview");
    $("#who").replaceChildren("you are ", el("strong", { dir: "auto" }, shownText(review.overview.annotator)));
    const buttons = review.overview.choices.map((word) =>
      el(
        "button",
        { type: "button", "data-answer": word, onclick: (event) => event.detail < 2 && void attempt(() => answer(word)) },
        `${capital(word)} `,
        el("kbd", {}, ANSWER_KEYS[word]),
      ),
    );
    $("#answers").replaceChildren(...buttons);
    await visit(review.overview.next_open ?? 0);
  });
}

function startReading() {
  const press = (key) => void attempt(READING_KEYS[key]);
  for (const [id, key] of [["previous", "k"], ["next", "j"], ["undo", "z"]])
    $(`#${id}`).addEventListener("click", () => press(key));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(READING_KEYS, event.key)) return;
    event.preventDefault();
    // A key that is held down must not answer the next sentence.
    if (!event.repeat) press(event.key);
  });
  addEventListener("hashchange", () => {
    if (takeToken()) void begin();
  });
  takeToken();
  void begin();
}

startReading();
