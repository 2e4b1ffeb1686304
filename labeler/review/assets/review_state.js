/* State of the review page, and its requests to the server. */

const API = "/api/";
const STORED_TOKEN = "token";

/** State of the page; the server keeps the rest. */
const review = {
  token: null,
  overview: null,
  item: null,
  judgment: null,
  /** True if the person set the overall verdict, which is otherwise derived from the sentences. */
  ownOverall: false,
  drawing: null,
  /** @type {Set<Element>} documents and response that were never in sight. */
  unseen: new Set(),
  /** Position, key and time of the answer saved last, and the answer before, for undo. */
  saved: null,
  /** True while a request runs whose response changes the page. */
  busy: false,
  /** Selector of the element to focus after the running request. */
  focusAfter: null,
  /** True once the person has done something with the record shown. */
  looked: false,
  /** @type {Set<string>} questions about the judgment shown that an answer now confirms. */
  asked: new Set(),
};

/** Move the token from the address, where it could be copied, to the session storage. */
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    sessionStorage.setItem(STORED_TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  review.token = sessionStorage.getItem(STORED_TOKEN) ?? "";
  return given !== null;
}

/** A failed request, with a message for the person. */
class ReviewError extends Error {
  /** @param {string} message the message. @param {number} status HTTP status; 0 without a response. */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Send a request to the server.
 * @param {string} path path under the API.
 * @param {?object} [body] JSON to post; without it the request only reads.
 * @returns {Promise<object>} the response.
 */
async function request(path, body = null) {
  const headers = { Authorization: `Bearer ${review.token}` };
  if (body) headers["Content-Type"] = "application/json";
  const options = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), cache: "no-store" };
  let response;
  try {
    response = await fetch(API + path, options);
  } catch {
    throw new ReviewError(
      `The review app does not answer. Your input is kept: start the app again with --port ${location.port} and ` +
        "open the new address in this tab.",
      0,
    );
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const reason = typeof answer.error === "string" ? answer.error : `the review app answered ${response.status}`;
  throw new ReviewError(response.status === 401 ? "The token has expired: open the address that the terminal shows in this tab." : capital(reason), response.status);
}

/** Run work that sends requests, and show its error; entered data is kept. */
async function attempt(work) {
  if (review.busy) return;
  review.busy = true;
  showStatus("");
  paintBar();
  try {
    await work();
    showError("");
  } catch (error) {
    if (!(error instanceof ReviewError)) console.error(error);
    showError(error instanceof ReviewError ? error.message : "The page failed. Load it again; your input is kept.");
  } finally {
    review.busy = false;
    paintBar();
    if (review.focusAfter) $(review.focusAfter).focus({ preventScroll: true });
    review.focusAfter = null;
  }
}

/** Show an error; an empty message hides it. */
function showError(message) {
  const box = $("#trouble");
  box.hidden = message === "";
  box.textContent = message;
}

/** Show a short status message. */
function showStatus(message) {
  $("#status").textContent = message;
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
