/* The claims of a sentence, and their verdicts. */

const CLAIM_VERDICTS = {
  entailment: { letter: "✓", look: "good" },
  neutral: { letter: "–", look: "unsure" },
  contradiction: { letter: "✗", look: "bad" },
};

/** Source of the verdicts on each kind of claims. */
const CLAIM_JUDGES = { claims: "documents", reference_claims: "response" };

/**
 * Draw the claims of a sentence, by the record's own label and by other labels with different ones.
 * @param {RecordSubject} subject the record.
 * @param {keyof CLAIM_JUDGES} kind kind of claims.
 * @param {string} key key of the sentence.
 */
function drawClaims(subject, kind, key) {
  if (!subject.label) return null;
  const by = CLAIM_JUDGES[kind];
  const claimsOf = (label) =>
    label[kind]?.length > 0 ? label[kind].filter(({ sentence }) => sentence === key) : null;
  const own = claimsOf(subject.label);
  const others = subject.others
    .map(({ name, label }) => [name, claimsOf(label)])
    .filter(([, claims]) => claims !== null && JSON.stringify(claims) !== JSON.stringify(own));
  return [
    own && drawClaimsOf(subject, others.length > 0 ? subject.labelName : "", own, by),
    others.map(([name, claims]) => drawClaimsOf(subject, name, claims, by)),
  ];
}

/** Draw the claims of one label, with its name if there are others. */
function drawClaimsOf(subject, name, claims, by) {
  const head = name && el("p", { class: "claims-by small muted" }, `Claims by ${name}`);
  if (claims.length === 0) return [head, el("p", { class: "small muted" }, "No claim.")];
  const rows = claims.map((claim) => el("li", {}, drawClaim(subject, claim, by)));
  return [head, el("ul", { class: "claims", role: "list" }, rows)];
}

/** Draw a claim with its verdicts. */
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

/** Draw the verdict on a claim. */
function claimVerdict(verdict, by) {
  const { letter, look } = ownValue(CLAIM_VERDICTS, verdict) ?? { letter: "?", look: "unsure" };
  return el("span", { class: `chip ${look}`, title: `${verdict} ${by}` }, `${letter} ${verdict}`);
}
