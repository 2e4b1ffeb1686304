/* Keeps the state of the record browser in the page's address. */

/** Milliseconds before the address is updated: browsers limit the rate. */
const ADDRESS_REST = 120;

/** The address, as a copy of the browser's state. */
class AddressBar {
  /** @param {RecordBrowser} browser the browser. */
  constructor(browser) {
    this.browser = browser;
  }

  /** The state as the fragment of an address. */
  get hash() {
    return `#${this.browser.state.written()}`;
  }

  /** Write the state after a delay. */
  write() {
    this.leave();
    this.writing = setTimeout(() => this.writeNow(), ADDRESS_REST);
  }

  /** Write the state without a history entry. */
  writeNow() {
    this.leave();
    if (this.hash !== (location.hash || "#")) rewriteAddress("replaceState", this.hash);
  }

  /** Write the state as a history entry. */
  addStep() {
    this.leave();
    rewriteAddress("pushState", this.hash);
  }

  /** Cancel a delayed write. */
  leave() {
    clearTimeout(this.writing);
  }

  /** Return whether the address has another state, and is not an anchor in the page. */
  isNews() {
    const asked = location.hash.slice(1);
    if (asked === this.browser.state.written()) return false;
    return !(/^[\w-]+$/.test(asked) && document.getElementById(asked));
  }
}

/** Change the address; it stays the same if the browser rejects too frequent changes. */
function rewriteAddress(how, hash) {
  try {
    history[how](null, "", hash);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}
