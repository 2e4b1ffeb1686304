/* The person's judgment of the record shown: changes, drafts, differences from the judge. */

const DRAFT = "draft:";

/** Names of fields in the list of differences. */
const FIELD_WORDS = { relevant: "relevant", utilized: "utilized", supported: "supported", support: "support" };

/** Maximum number of differences listed. */
const DIFFERENCES_AT_ONCE = 12;

/** The judgment to start from: the saved one, else the judge's, else an empty one. */
function savedJudgment(item) {
  if (!item.mine?.judgment) return judgeJudgment(item);
  return ownJudgment(item.mine.judgment, item.record.response.map(({ key }) => key));
}

/** The judge's label as an editable judgment; empty if it is hidden. */
function judgeJudgment(item) {
  if (!item.judge) return { relevant: [], utilized: [], support: {}, overall_supported: null, judged: {} };
  return ownJudgment(item.judge, Object.keys(item.record.label.support));
}

/** An editable copy of a judgment, with the response sentences that it decides. */
function ownJudgment(base, decided) {
  const judged = Object.fromEntries(decided.map((key) => [key, true]));
  const support = Object.fromEntries(Object.entries(base.support).map(([key, keys]) => [key, [...keys]]));
  return { relevant: [...base.relevant], utilized: [...base.utilized], support, overall_supported: base.overall_supported, judged };
}

/** Toggle one decision of the person's judgment. */
function toggle(field, key) {
  if (!review.item || review.busy) return;
  const { judgment } = review;
  if (isOpen() && field === "overall") {
    showStatus("Decide on the sentences first: the verdict on the whole response follows from them.");
    return;
  }
  if (field === "overall") {
    judgment.overall_supported = !judgment.overall_supported;
    review.ownOverall = true;
  } else if (field === "supported") {
    toggleSupported(key);
  } else {
    judgment[field] = toggled(judgment[field], key);
  }
  changed();
}

/** Cycle a response sentence: undecided, supported, not supported, supported. */
function toggleSupported(key) {
  const { judgment } = review;
  if (ownValue(judgment.judged, key) && ownValue(judgment.support, key)) delete judgment.support[key];
  else judgment.support[key] = ownValue(judgment.support, key) ?? [...(ownValue(review.item.judge?.support, key) ?? [])];
  judgment.judged[key] = true;
  deriveOverall();
}

/** Toggle a document sentence or special string as support of a response sentence. */
function toggleSupport(responseKey, documentKey) {
  if (!review.item || review.busy) return;
  const { judgment } = review;
  judgment.support[responseKey] = toggled(ownValue(judgment.support, responseKey) ?? [], documentKey);
  judgment.judged[responseKey] = true;
  deriveOverall();
  changed();
}

/** Return keys with one added or removed. */
function toggled(keys, key) {
  return keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key];
}

/** Derive the overall verdict unless the person set it: every sentence supported; null until all are decided. */
function deriveOverall() {
  if (review.ownOverall) return;
  const { judgment, item } = review;
  const keys = item.record.response.map(({ key }) => key);
  judgment.overall_supported = undecided().length > 0 ? null : keys.every((key) => ownValue(judgment.support, key) !== undefined);
}

/** Keep a changed judgment as a draft, and redraw it. */
function changed() {
  review.looked = true;
  showStatus("");
  review.asked.clear();
  writeDraft();
  review.drawing.update(review.judgment);
  paint();
}

function draftName(item) {
  return `${DRAFT}${review.overview.annotator}:${item.key}`;
}

function readDraft(item) {
  const text = sessionStorage.getItem(draftName(item));
  return text === null ? null : JSON.parse(text);
}

function writeDraft() {
  if (isChanged()) {
    const draft = { judgment: review.judgment, comment: $("#comment").value, ownOverall: review.ownOverall };
    sessionStorage.setItem(draftName(review.item), JSON.stringify(draft));
  } else {
    dropDraft(review.item);
  }
}

function dropDraft(item) {
  sessionStorage.removeItem(draftName(item));
}

/** Return whether any record has an unsaved draft. */
function hasDrafts() {
  return Object.keys(sessionStorage).some((name) => name.startsWith(DRAFT));
}

/** Return whether judgment or comment differ from the saved ones. */
function isChanged() {
  const { item, judgment } = review;
  return $("#comment").value !== (item.mine?.comment ?? "") || canonical(judgment) !== canonical(savedJudgment(item));
}

/** A canonical text of a judgment: equal judgments give equal texts. */
function canonical(judgment) {
  const support = Object.entries(judgment.support).map(([key, keys]) => [key, [...keys].sort()]).sort(([a], [b]) => (a < b ? -1 : 1));
  const judged = Object.keys(judgment.judged).sort();
  return JSON.stringify([[...judgment.relevant].sort(), [...judgment.utilized].sort(), support, judgment.overall_supported, judged]);
}

/**
 * Differences between the person's judgment and the judge's.
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
  for (const { key } of review.item.record.response) {
    const [theirs, own] = [ownValue(judge.support, key), ownValue(mine.support, key)];
    if (!own !== !theirs) found.push({ key, words: own ? "supported" : "not supported" });
    else if (own && own.length > 0 && [...own].sort().join() !== [...theirs].sort().join()) found.push({ key, words: `supported by ${own.join(", ")}` });
  }
  if (mine.overall_supported !== null && mine.overall_supported !== judge.overall_supported) {
    found.push({ key: null, words: mine.overall_supported ? "supported overall" : "not supported overall" });
  }
  return found;
}

/** Keys of the response sentences that the person has not decided. */
function undecided() {
  return review.item.record.response.map(({ key }) => key).filter((key) => !ownValue(review.judgment.judged, key));
}

/** Return whether a blind judgment still lacks decisions. */
function isOpen() {
  return review.item.hidden && undecided().length > 0;
}
