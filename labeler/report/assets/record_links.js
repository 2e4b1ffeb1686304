/* Links to the sentences of a record. */

/** Number of keys in a list that are not folded. */
const KEYS_AT_ONCE = 12;

/** Draw links to sentences; special support strings become chips. */
function keyLinks(subject, keys) {
  const nodes = keys.map((key) => (subject.knows(key) ? keyButton(key) : specialChip(key)));
  const spaced = (some) => some.flatMap((node, index) => (index ? [" ", node] : [node]));
  if (nodes.length <= KEYS_AT_ONCE) return spaced(nodes);
  const rest = nodes.splice(KEYS_AT_ONCE);
  return [
    ...spaced(nodes),
    " ",
    el("details", { class: "more-keys" }, el("summary", {}, `${rest.length} more`), spaced(rest)),
  ];
}

/** Draw a link to a sentence; outside its record with a listener that goes there. */
function keyButton(key, onclick = null) {
  return el(
    "button",
    { type: "button", class: "key", "data-goto": key, title: `Go to sentence ${key}`, onclick },
    key,
  );
}

/** Draw a special support string. */
function specialChip(key) {
  const title = ownValue(SPECIAL_SUPPORT, key) ?? "no sentence of this record";
  return el("span", { class: "chip special", title }, shownText(key));
}

/** Draw the citation markers of a sentence as links to the documents that they name. */
function citationLinks(view, cites = []) {
  return cites.map(({ marker, documents, missing }) => [
    " ",
    el(
      "span",
      { class: "cites small" },
      shownText(marker),
      " → ",
      documents.map((index) => [documentLink(view, index), " "]),
      missing.length > 0 &&
        el("span", { class: "chip unsure" }, `no document ${missing.join(", ")}`),
    ),
  ]);
}

/** Draw a link to the first sentence of a document; its name alone if it has none. */
function documentLink(view, index) {
  const [first] = view.documents[index];
  const name = `document ${index}`;
  if (!first) return name;
  const goto = { "data-goto": first.key, title: `Go to ${name}` };
  return el("button", { type: "button", class: "key", ...goto }, name);
}
