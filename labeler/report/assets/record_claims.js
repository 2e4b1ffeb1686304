/* The claims that a sentence makes, and what the other side says of them. */

const CLAIM_VERDICTS = {
  entailment: { letter: "✓", look: "good" },
  neutral: { letter: "–", look: "unsure" },
  contradiction: { letter: "✗", look: "bad" },
};

/** Who says the verdict on each kind of claims that a label can have. */
const CLAIM_JUDGES = { claims: "documents", reference_claims: "response" };

/**
 * The claims of a sentence, by the record's own label and by others that have different ones.
 * @param {RecordSubject} subject the record.
 * @param {keyof CLAIM_JUDGES} kind which claims.
 * @param {string} key of the sentence.
 */
function drawClaims(subject, kind, key) {
  if (!subject.label) return null;
  const by = CLAIM_JUDGES[kind];
  const claimsOf = (label) => label[kind]?.filter(({ sentence }) => sentence === key) ?? null;
  const own = claimsOf(subject.label);
  const others = subject.others
    .map(({ name, label }) => [name, claimsOf(label)])
    .filter(([, claims]) => claims !== null && JSON.stringify(claims) !== JSON.stringify(own));
  return [
    own && drawClaimsOf(subject, others.length > 0 ? subject.labelName : "", own, by),
    others.map(([name, claims]) => drawClaimsOf(subject, name, claims, by)),
  ];
}

/** The claims by one label, which is named beside others. */
function drawClaimsOf(subject, name, claims, by) {
  const head = name && el("p", { class: "claims-by small muted" }, `Claims by ${name}`);
  if (claims.length === 0) return [head, el("p", { class: "small muted" }, "No claim.")];
  const rows = claims.map((claim) => el("li", {}, drawClaim(subject, claim, by)));
  return [head, el("ul", { class: "claims", role: "list" }, rows)];
}

/** A claim with the verdicts on it. */
function drawClaim(subject, claim, by) {
  return [
    claimVerdict(claim.verdict, `by the ${by}`),
    el("span", { class: "text", dir: "auto" }, shownText(claim.claim)),
    claim.supporting.length > 0 && [" ", keyLinks(subject, claim.supporting)],
    claim.contradicting.length > 0 && [" against ", keyLinks(subject, claim.contradicting)],
    claim.relevant === false && [" ", el("span", { class: "chip note" }, "off the question")],
    claim.reference_verdict && [
      " ",
      el("span", { class: "small muted" }, "reference: "),
      claimVerdict(claim.reference_verdict, "by the reference answer"),
    ],
  ];
}

/** The verdict on a claim. */
function claimVerdict(verdict, by) {
  const { letter, look } = ownValue(CLAIM_VERDICTS, verdict) ?? { letter: "?", look: "unsure" };
  return el("span", { class: `chip ${look}`, title: `${verdict} ${by}` }, `${letter} ${verdict}`);
}
