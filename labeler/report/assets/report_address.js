/* Keeps what a report's browser shows in the page's address. */

/** Milliseconds of rest before the address is written anew: browsers refuse to do it too often. */
const ADDRESS_REST = 120;

/** Writes the state of a browser into the address. */
class AddressBar {
  /** @param {RecordBrowser} browser whose state it writes. */
  constructor(browser) {
    this.browser = browser;
  }

  /** What the state is in the address. */
  get hash() {
    return `#${this.browser.state.written()}`;
  }

  /** Write the state, once there is rest. */
  write() {
    this.leave();
    this.writing = setTimeout(() => this.writeNow(), ADDRESS_REST);
  }

  /** Write the state; no step of its own. */
  writeNow() {
    this.leave();
    if (this.hash !== (location.hash || "#")) rewriteAddress("replaceState", this.hash);
  }

  /** Make the state a step of its own, which the browser's back button undoes. */
  addStep() {
    this.leave();
    rewriteAddress("pushState", this.hash);
  }

  /** Write nothing of what was waiting. */
  leave() {
    clearTimeout(this.writing);
  }

  /** Whether the address asks for something else than is shown, and not for a place in the page. */
  isNews() {
    const asked = location.hash.slice(1);
    if (asked === this.browser.state.written()) return false;
    return !(/^[\w-]+$/.test(asked) && document.getElementById(asked));
  }
}

/** Write the address; browsers refuse where that is done too often, and then it stays as it is. */
function rewriteAddress(how, hash) {
  try {
    history[how](null, "", hash);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}
