/* Makes elements out of names and texts: nothing here, or in any script of ours, reads markup. */

const SVG = "http://www.w3.org/2000/svg";

/** Lines of small drawings on a ground of 16 by 16. */
const ICONS = {
  search: "M7 12a5 5 0 1 0 0-10a5 5 0 0 0 0 10zM10.8 10.8L14 14",
  close: "M4 4l8 8M12 4l-8 8",
  link: "M6.5 9.5l3-3M7 4.5l1.6-1.6a2.9 2.9 0 0 1 4.1 4.1L11 8.6M9 11.5l-1.6 1.6a2.9 2.9 0 0 1-4.1-4.1L5 7.4",
  next: "M6 3l5 5l-5 5",
  previous: "M10 3l-5 5l5 5",
  up: "M3 10l5-5l5 5",
  down: "M3 6l5 5l5-5",
  check: "M3 8.5l3.2 3.2L13 4.8",
  list: "M3 4h10M3 8h10M3 12h10",
};

/**
 * Make an element.
 * @param {string} tag its name.
 * @param {Object<string, *>} [attributes] what it has: `on…` are listeners; null, undefined and false
 *   are left out, true is an empty attribute.
 * @param {...(Node|string|number|null|undefined|false|Array)} children nodes and texts; lists of them
 *   are laid flat, nothing is skipped.
 * @returns {HTMLElement}
 */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter(isShown).map(nodeOrText));
  return node;
}

/** Whether a child is there at all; 0 is. */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** A node as it is, anything else as text. */
function nodeOrText(child) {
  return child instanceof Node ? child : String(child);
}

/**
 * Draw an icon; it says nothing to a screen reader, so the button around it must.
 * @param {keyof ICONS} name which.
 * @returns {SVGElement}
 */
function icon(name) {
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("viewBox", "0 0 16 16");
  drawing.setAttribute("class", "icon");
  drawing.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  drawing.append(path);
  return drawing;
}

/**
 * The first element that a selector of ours names.
 * @param {string} selector never holds a text of strangers.
 * @param {ParentNode} [root] where to look.
 * @returns {Element|null}
 */
function $(selector, root = document) {
  return root.querySelector(selector);
}

/**
 * A count with its noun: `1 record`, `3,017 records`.
 * @param {number} count how many.
 * @param {string} noun of one.
 * @param {string} [nouns] of several.
 */
function counted(count, noun, nouns = `${noun}s`) {
  return `${grouped(count)} ${count === 1 ? noun : nouns}`;
}

/** A whole number with commas between its thousands. */
function grouped(count) {
  return count.toLocaleString("en");
}

/**
 * Part a list into lists of what is alike, in the order in which each kind comes first.
 * @param {Array} list what to part.
 * @param {function(*): *} kindOf what is the same for those alike.
 * @returns {Array<Array>}
 */
function alike(list, kindOf) {
  const kinds = new Map();
  for (const one of list) {
    const kind = kindOf(one);
    if (kinds.has(kind)) kinds.get(kind).push(one);
    else kinds.set(kind, [one]);
  }
  return [...kinds.values()];
}

const CODE_POINT = /(<U\+[0-9A-F]{4,6}>)/;

/**
 * A stranger's text, in which characters that were written out stand in boxes.
 * @param {string} text as it is; never read as markup.
 * @returns {Array<Node|string>} children for {@link el}.
 */
function shownText(text) {
  if (!text.includes("<U+")) return [text];
  return text
    .split(CODE_POINT)
    .filter((part) => part !== "")
    .map((part) =>
      CODE_POINT.test(part)
        ? el("span", { class: "code-point", title: `The character ${part.slice(1, -1)}` }, part)
        : part,
    );
}

/** Whether this browser can read what is packed into the page. */
function canUnpack() {
  return typeof DecompressionStream === "function";
}

/**
 * Read what is packed into a block of the page: JSON, packed by gzip, in base64, in a JSON string.
 * @param {string} id the id of the `<script type="application/json">`.
 * @returns {Promise<*>} the value.
 */
async function unpackBlock(id) {
  const block = document.getElementById(id);
  if (!block) throw new Error(`the page has no block ${id}`);
  const packed = Uint8Array.from(atob(JSON.parse(block.textContent)), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Let the browser draw and take input, then go on. */
function breath() {
  return new Promise((go) => setTimeout(go, 0));
}

/** Whether key presses belong to a field that is being written in. */
function isWriting(target) {
  return (
    target instanceof Element &&
    target.closest("input, textarea, select, [contenteditable]") !== null
  );
}
