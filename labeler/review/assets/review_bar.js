/* Progress, instructions, differences and buttons around the record. */

function paint() {
  paintHead();
  paintLead();
  paintDifferences();
  paintBar();
}

function paintHead() {
  const { counts } = review.item ?? review.overview;
  const judged = counts.agree + counts.disagree + counts.unsure;
  const progress = $("#progress");
  progress.max = counts.size;
  progress.value = judged;
  $("#counts").replaceChildren(
    el("strong", {}, `${grouped(counts.size - judged)} of ${grouped(counts.size)} left`),
    el("span", {}, ` · ${counts.agree} agree, ${counts.disagree} disagree, ${counts.unsure} unsure`),
  );
}

/** Draw the instructions. */
function paintLead() {
  const { item } = review;
  const mine = item.mine && OPINION_WORDS[item.mine.opinion];
  let words = [el("strong", {}, "Is the judge right? "), "Agree, or change wrong marks and save."];
  if (item.hidden) {
    words = [
      el("strong", {}, "Judge it yourself. "),
      "Is each response sentence supported (✓) or not (✗)? Which document sentences are relevant (R), which utilized (U)? Save shows the judge's verdicts.",
    ];
  } else if (item.mine) {
    words = [el("strong", {}, `Saved: ${mine}. `)];
  }
  $("#lead").replaceChildren(...words);
}

function paintDifferences() {
  const { item } = review;
  const box = $("#differences");
  if (item.hidden) {
    const open = undecided();
    box.replaceChildren(open.length > 0 ? `Undecided: ${open.join(", ")}` : "All response sentences decided.");
    return;
  }
  const found = differencesOf(item.judge, review.judgment);
  if (found.length === 0) {
    box.replaceChildren(item.mine?.judgment ? "No differences from the judge." : "No changes: to save means to agree.");
    return;
  }
  const listed = found.slice(0, DIFFERENCES_AT_ONCE);
  const groups = [...new Set(listed.map(({ words }) => words))].map((words) => [
    el("span", { class: "difference" }, words, listed.filter((one) => one.key && one.words === words).map(({ key }) => [" ", keyButton(key, () => review.drawing.focus(key))])),
  ]);
  const more = found.length > listed.length && ` and ${found.length - listed.length} more`;
  box.replaceChildren(...[el("strong", {}, `${counted(found.length, "difference")} from the judge: `), groups, more].flat(Infinity).filter(isShown));
}

/** Enable the buttons that apply, and highlight the likely one. */
function paintBar() {
  const { item, busy } = review;
  const off = busy || !item;
  const changedMarks = item && (item.hidden || isJudgmentChanged());
  for (const id of ["agree", "save", "unsure", "later", "previous", "next"]) $(`#${id}`).disabled = off;
  if (off) return;
  const { size, next_open: nextOpen } = item.counts;
  $("#later").replaceChildren(item.mine ? "Next open " : "Later ", el("kbd", {}, "l"));
  const agree = $("#agree");
  agree.hidden = item.hidden;
  agree.disabled = changedMarks;
  agree.classList.toggle("primary", !changedMarks && !item.mine);
  $("#save").classList.toggle("primary", Boolean(changedMarks) && (!item.mine || isChanged()));
  $("#later").disabled = nextOpen === null;
  $("#later").classList.toggle("primary", nextOpen !== null && Boolean(item.mine) && !isChanged());
  $("#previous").disabled = item.position === 0;
  $("#next").disabled = item.position === size - 1;
  $("#undo").disabled = review.saved === null;
  $("#reset").disabled = canonical(review.judgment) === canonical(judgeJudgment(item));
  $("#size").textContent = `of ${grouped(size)}`;
  if (document.activeElement !== $("#position")) $("#position").value = String(item.position + 1);
}

const QUEUE_WORDS = {
  random: "drawn at random",
  doubtful: "most suspicious first",
  order: "in file order",
  chosen: "chosen",
};

function paintWho() {
  const { overview } = review;
  const { size } = overview.counts;
  const records = size < overview.labels ? `${grouped(size)} of ${counted(overview.labels, "record")}` : counted(size, "record");
  $("#who").replaceChildren(
    `${records}, ${QUEUE_WORDS[overview.queue]}${overview.blind ? ", blind" : ""} · you are `,
    el("strong", { dir: "auto" }, overview.annotator),
  );
}
