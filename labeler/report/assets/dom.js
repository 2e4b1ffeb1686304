/* DOM helpers: elements are built from names and texts; no script of ours parses markup. */

const SVG = "http://www.w3.org/2000/svg";

/** SVG paths of icons, 16 by 16. */
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
 * @param {string} tag tag name.
 * @param {Object<string, *>} [attributes] attributes; `on…` are listeners; null, undefined and false
 *   are omitted, true is an empty attribute.
 * @param {...(Node|string|number|null|undefined|false|Array)} children nodes and texts; nested lists
 *   are flattened; null, undefined and false are omitted.
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

/** Return whether a child is shown; 0 is. */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** Return a node unchanged, anything else as text. */
function nodeOrText(child) {
  return child instanceof Node ? child : String(child);
}

/**
 * Draw an icon. It is hidden from screen readers, so the button around it needs a label.
 * @param {keyof ICONS} name name of the icon.
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
 * Find the first matching element.
 * @param {string} selector a selector, never from data.
 * @param {ParentNode} [root] element to search.
 * @returns {Element|null}
 */
function $(selector, root = document) {
  return root.querySelector(selector);
}

/**
 * Format a count with its noun: `1 record`, `3,017 records`.
 * @param {number} count the count.
 * @param {string} noun singular noun.
 * @param {string} [nouns] plural noun.
 */
function counted(count, noun, nouns = `${noun}s`) {
  return `${grouped(count)} ${count === 1 ? noun : nouns}`;
}

/** Format an integer with thousands separators. */
function grouped(count) {
  return count.toLocaleString("en");
}

/**
 * Group a list, in the order of each group's first element.
 * @param {Array} list the elements.
 * @param {function(*): *} kindOf key of an element's group.
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
 * Draw text from data, with boxes around the characters that were written out.
 * @param {string} text the text; never parsed as markup.
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

/** Return whether this browser can decompress the page's data. */
function canUnpack() {
  return typeof DecompressionStream === "function";
}

/**
 * Read a data block of the page.
 * @param {string} id id of the `<script type="application/json">`, which holds a JSON string.
 * @returns {Promise<*>} the value.
 */
async function unpackBlock(id) {
  const block = document.getElementById(id);
  if (!block) throw new Error(`the page has no block ${id}`);
  return unpack(JSON.parse(block.textContent));
}

/** Unpack JSON that is compressed with gzip, in base64. */
async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Let the browser draw and handle input, then continue. */
function breath() {
  return new Promise((go) => setTimeout(go, 0));
}

/** Return whether key presses belong to an input field. */
function isWriting(target) {
  return (
    target instanceof Element &&
    target.closest("input, textarea, select, [contenteditable]") !== null
  );
}
