/* Unpacks the records of a report, and looks through their texts. */

/** Chunks that stay unpacked. */
const CHUNKS_AT_HAND = 6;
/** Milliseconds that a search may keep the page from drawing. */
const SLICE = 12;

/** The words of a search, in small letters. */
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Whether a text holds all words. */
function holdsAll(text, words) {
  return words.every((word) => text.includes(word));
}

/** Unpacks the records of a page, a chunk at a time. */
class Chunks {
  constructor(size) {
    this.size = size;
    this.atHand = new Map();
  }

  /** The view of a row. */
  async view(row) {
    const views = await this.chunk(Math.floor(row / this.size));
    return views[row % this.size];
  }

  /** The views of a chunk; those last asked for stay unpacked. */
  chunk(number) {
    const views = this.atHand.get(number) ?? unpackBlock(`chunk-${number}`);
    this.atHand.delete(number);
    this.atHand.set(number, views);
    if (this.atHand.size > CHUNKS_AT_HAND) this.atHand.delete(this.atHand.keys().next().value);
    return views;
  }
}

/** Looks through the texts of all records, in slices so short that the page stays at work. */
class TextSearch {
  /**
   * @param {number} count of the records.
   * @param {number} size of a chunk of them.
   */
  constructor(count, size) {
    this.count = count;
    this.size = size;
    this.found = new Set();
    this.words = null;
    this.run = 0;
    this.done = 0;
  }

  /** Whether there are records that it has not looked through yet. */
  get running() {
    return this.words !== null && this.done < this.count;
  }

  /**
   * Look for words in everything that is written in a record.
   * @param {string[]} words all of them must occur.
   * @param {function(): void} tell called after each chunk.
   */
  async start(words, tell) {
    if (this.words !== null && this.words.join(" ") === words.join(" ")) return;
    this.stop();
    this.words = words;
    const run = this.run;
    let rest = performance.now() + SLICE;
    for (let from = 0; from < this.count; from += this.size) {
      const views = await unpackBlock(`chunk-${from / this.size}`);
      for (const [at, view] of views.entries()) {
        if (performance.now() > rest) {
          await breath();
          rest = performance.now() + SLICE;
        }
        if (this.run !== run) return;
        if (holdsAll(everyText(view).toLowerCase(), words)) this.found.add(from + at);
      }
      this.done = Math.min(this.count, from + views.length);
      tell();
    }
  }

  /** Give up, and forget what was found. */
  stop() {
    this.run += 1;
    this.words = null;
    this.done = 0;
    this.found = new Set();
  }
}

/** All that is written in a record. */
function everyText(view) {
  const texts = [];
  const gather = (value) => {
    if (typeof value === "string") texts.push(value);
    else if (value !== null && typeof value === "object") Object.values(value).forEach(gather);
  };
  const { id, question, documents, response, reference, label, findings, metadata, failed } = view;
  gather([id, question, documents, response, reference, label, findings, metadata, failed]);
  return texts.join("\n");
}

/** How far a search has come, and a button that ends it. */
class SearchProgress {
  /**
   * @param {TextSearch} search which.
   * @param {function(): void} cancel ends it.
   */
  constructor(search, cancel) {
    this.search = search;
    this.bar = el("progress", { "aria-label": "Search in full texts" });
    this.text = el("span", { class: "small muted" });
    this.node = el(
      "div",
      { class: "search-progress no-print", hidden: true },
      this.bar,
      this.text,
      el("button", { type: "button", onclick: cancel }, "Stop"),
    );
  }

  /** Show it, while there is any. */
  show() {
    const { running, done, count } = this.search;
    this.node.hidden = !running;
    if (!running) return;
    this.bar.max = count;
    this.bar.value = done;
    this.text.textContent = `${grouped(done)} of ${counted(count, "record")} searched`;
  }
}
