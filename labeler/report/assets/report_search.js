/* Access to the records of a report, and full-text search. */

/** Number of chunks that stay unpacked. */
const CHUNKS_AT_HAND = 6;
/** Milliseconds that a search may block the page. */
const SLICE = 12;

/** Return the words of a search in lower case. */
function wordsOf(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Return whether a text contains all words. */
function holdsAll(text, words) {
  return words.every((word) => text.includes(word));
}

/** The records of a page, unpacked chunk by chunk. */
class Chunks {
  constructor(size) {
    this.size = size;
    this.atHand = new Map();
  }

  /** Return the view of a row. */
  async view(row) {
    const views = await this.chunk(Math.floor(row / this.size));
    return views[row % this.size];
  }

  /** Return the views of a chunk; the chunks used last stay unpacked. */
  chunk(number) {
    const views = this.atHand.get(number) ?? readBlock(`chunk-${number}`);
    this.atHand.delete(number);
    this.atHand.set(number, views);
    if (this.atHand.size > CHUNKS_AT_HAND) this.atHand.delete(this.atHand.keys().next().value);
    return views;
  }
}

/** A full-text search in short slices, so the page stays responsive. */
class TextSearch {
  /**
   * @param {number} count number of records.
   * @param {number} size records per chunk.
   */
  constructor(count, size) {
    this.count = count;
    this.size = size;
    this.found = new Set();
    this.words = null;
    this.run = 0;
    this.done = 0;
  }

  /** Whether the search is unfinished. */
  get running() {
    return this.words !== null && this.done < this.count;
  }

  /**
   * Search all texts of the records.
   * @param {string[]} words words that must all occur.
   * @param {function(): void} onProgress called after each chunk.
   */
  async start(words, onProgress) {
    if (this.words !== null && this.words.join(" ") === words.join(" ")) return;
    this.stop();
    this.words = words;
    const run = this.run;
    let rest = performance.now() + SLICE;
    for (let from = 0; from < this.count; from += this.size) {
      const views = await readBlock(`chunk-${from / this.size}`);
      for (const [at, view] of views.entries()) {
        if (performance.now() > rest) {
          await breath();
          rest = performance.now() + SLICE;
        }
        if (this.run !== run) return;
        if (holdsAll(everyText(view).toLowerCase(), words)) this.found.add(from + at);
      }
      this.done = Math.min(this.count, from + views.length);
      onProgress();
    }
  }

  /** Stop, and forget the results. */
  stop() {
    this.run += 1;
    this.words = null;
    this.done = 0;
    this.found = new Set();
  }
}

/** Return all texts of a record. */
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

/** The progress of a search, with a button to stop it. */
class SearchProgress {
  /**
   * @param {TextSearch} search the search.
   * @param {function(): void} cancel stops it.
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

  /** Show the progress of a running search. */
  show() {
    const { running, done, count } = this.search;
    this.node.hidden = !running;
    if (!running) return;
    this.bar.max = count;
    this.bar.value = done;
    this.text.textContent = `${grouped(done)} of ${counted(count, "record")} searched`;
  }
}
