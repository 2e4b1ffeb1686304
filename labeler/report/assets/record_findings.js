/* The audit findings of a record. */

/** Number of kinds of findings that are not folded. */
const KINDS_AT_ONCE = 4;
const SEVERITIES = ["contradiction", "suspicion", "note"];

/** Draw the findings, the worst first, folded while editing; null without any. */
function drawFindings(subject) {
  const findings = subject.hidden ? [] : subject.view.findings;
  if (findings.length === 0) return null;
  const kinds = alike(findings, ({ check }) => check);
  const worstFirst = kinds.sort(
    ([a], [b]) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity),
  );
  const rows = worstFirst.map((kind) => drawFindingsOfKind(subject, kind));
  const rest = rows.slice(KINDS_AT_ONCE);
  return el(
    "details",
    { class: "findings", open: !subject.edit },
    el("summary", {}, counted(findings.length, "finding")),
    el("ul", { role: "list" }, rows.slice(0, KINDS_AT_ONCE)),
    rest.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, `${counted(rest.length, "more kind", "more kinds")} of findings`),
        el("ul", { role: "list" }, rest),
      ),
  );
}

/** Draw the findings of one check: the first one, the rest folded. */
function drawFindingsOfKind(subject, [first, ...rest]) {
  const about = ownValue(subject.checks, first.check);
  return el(
    "li",
    { class: "finding" },
    el(
      "span",
      { class: `chip ${first.severity}`, title: about?.title ?? first.check },
      first.severity,
    ),
    el(
      "div",
      { class: "finding-text" },
      drawFindingMessage(subject, first),
      about && el("span", { class: "why small muted" }, about.why),
      rest.length > 0 &&
        el(
          "details",
          {},
          el("summary", {}, `${rest.length} more of this kind`),
          el(
            "ul",
            { role: "list" },
            rest.map((finding) => el("li", {}, drawFindingMessage(subject, finding))),
          ),
        ),
    ),
  );
}

/** Draw a finding's message with links to its sentences. */
function drawFindingMessage(subject, finding) {
  return [
    el("span", { dir: "auto" }, shownText(finding.message)),
    " ",
    keyLinks(subject, finding.keys),
  ];
}
