/* Buttons that lead to a record's sentences. */

/** Keys of one list beyond these are folded away. */
const KEYS_AT_ONCE = 12;

/** Buttons that lead to sentences; what is no sentence stands as a chip. */
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

/** A button that leads to a sentence. */
function keyButton(key) {
  return el(
    "button",
    { type: "button", class: "key", "data-goto": key, title: `Go to sentence ${key}` },
    key,
  );
}

/** Support that names no sentence of the record. */
function specialChip(key) {
  const title = ownValue(SPECIAL_SUPPORT, key) ?? "no sentence of this record";
  return el("span", { class: "chip special", title }, shownText(key));
}
