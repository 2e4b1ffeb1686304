/* Keyboard control of the record browser, and its help. */

const KEYS_HELP = [
  ["/", "search"],
  ["j k", "next and previous record"],
  ["↓ ↑", "the same in the list; previous and next sentence in a record"],
  ["→ ←", "next and previous record; in a sentence: to its support, and back"],
  ["n p", "next and previous page of the list, or record"],
  ["Enter", "open the record; in a sentence: to its support, and back"],
  ["Esc", "close the record, or leave a field"],
  ["?", "this help"],
];

/** Draw the help on keys. */
function drawKeysHelp() {
  const rows = KEYS_HELP.map(([keys, does]) => [
    el(
      "dt",
      {},
      keys.split(" ").map((key, at) => [at > 0 && " ", el("kbd", {}, key)]),
    ),
    el("dd", {}, does),
  ]);
  const dialog = el(
    "dialog",
    { "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keyboard"),
    el("dl", { class: "keys" }, rows),
    el("form", { method: "dialog" }, el("button", {}, "Close")),
  );
  // A dialog's form would close it, but the page's policy forbids sending forms.
  $("form", dialog).addEventListener("submit", (event) => {
    event.preventDefault();
    dialog.close();
  });
  return dialog;
}

/** The keys of list and record. */
class BrowserKeys {
  /**
   * @param {RecordBrowser} browser the browser.
   * @param {HTMLDialogElement} help the help.
   */
  constructor(browser, help) {
    this.browser = browser;
    this.help = help;
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Whether a record is open. */
  get reading() {
    return this.browser.state.record !== null;
  }

  /** Handle a key press in the page. */
  onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || this.help.open)
      return;
    if (isWriting(event.target)) {
      this.onKeyInField(event);
      return;
    }
    const done = this.reading ? this.onKeyInRecord(event) : this.onKeyInList(event);
    if (done || this.onKeyAnywhere(event)) event.preventDefault();
  }

  /** Handle keys in the search field: Escape goes to the list. */
  onKeyInField({ key, target }) {
    const { controls, list } = this.browser;
    if (key === "Escape" && target === controls.searchField) list.focusFirst();
  }

  /** Handle keys of both list and record. */
  onKeyAnywhere({ key }) {
    if (key === "?") this.help.showModal();
    else if (key === "/") {
      if (this.reading) this.browser.close();
      this.browser.controls.focusSearch();
    } else return false;
    return true;
  }

  /** Handle keys of the list. */
  onKeyInList({ key, target }) {
    const { list } = this.browser;
    const inTable = list.table.contains(target);
    const by = { j: 1, k: -1, ArrowDown: inTable && 1, ArrowUp: inTable && -1 }[key];
    if (by) {
      list.move(by);
      return true;
    }
    const pages = { n: 1, p: -1 }[key];
    return pages !== undefined && list.turnBy(pages);
  }

  /** Handle keys of the open record. */
  onKeyInRecord({ key, target }) {
    if (key === "Escape") {
      this.browser.close();
      return true;
    }
    const inSentence = Boolean(target.closest?.(".sentence"));
    if (key === "ArrowDown" && !inSentence) return this.enterRecord();
    const across = inSentence ? 0 : 1;
    const by = { j: 1, n: 1, k: -1, p: -1, ArrowRight: across, ArrowLeft: -across }[key];
    if (by) this.browser.reader.step(by);
    return Boolean(by);
  }

  /** Focus the open record's selected sentence, or its first. */
  enterRecord() {
    const { node } = this.browser.reader;
    const sentence = $(".sentence[aria-current]", node) ?? $(".sentence", node);
    sentence?.focus();
    return sentence !== null;
  }
}
