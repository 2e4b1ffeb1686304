/* The diff: a list of the records that changed, and one of them opened, with both labels. */

const DIFF_PAGE = 50;
const DIFF_SIGNS = { gained: "+", lost: "\u2212", changed: "~" };
const DIFF_ORDERS = [
  ["change", "size of change"],
  ["flips", "number of flips"],
  ["id", "record id"],
];

/** A number with its sign, as the tables write it. */
function signedText(value) {
  if (value === null) return "\u2013";
  if (value === 0) return "0";
  return `${value > 0 ? "+" : "\u2212"}${Math.abs(value).toFixed(4)}`;
}

/** Records that changed: which are shown, in what order, and which one is open. */
class DiffBrowser {
  /**
   * @param {object} index what the page's block `index` holds.
   * @param {HTMLElement} root where it is drawn.
   */
  constructor(index, root) {
    this.index = index;
    this.records = index.records;
    this.root = root;
    this.chunks = new Map();
    this.page = 0;
    this.opening = 0;
    this.drawControls();
    this.list = el("div", {});
    this.reader = el("div", { class: "record-part", hidden: true });
    root.replaceChildren(this.controls, this.list, this.reader);
    addEventListener("hashchange", () => this.followAddress());
    this.sort();
  }

  drawControls() {
    const any = [["", "any"]];
    this.metric = this.select("Metric", [["", "all, added up"], ...this.index.metrics.map((id) => [id, id])]);
    this.field = this.select("Flips of", [...any, ...this.index.fields]);
    this.order = this.select("Sort by", DIFF_ORDERS);
    this.words = el("input", { type: "search", id: "diff-words", autocomplete: "off", oninput: () => this.sort() });
    this.controls = el(
      "form",
      { class: "controls diff-controls no-print", role: "search", onsubmit: (event) => event.preventDefault() },
      this.control("Id or question", this.words),
      [["Metric", this.metric], ["Flips of", this.field], ["Sort by", this.order]].map(([name, input]) => this.control(name, input)),
    );
  }

  select(name, options) {
    return el(
      "select",
      { id: `diff-${name.toLowerCase().replaceAll(" ", "-")}`, onchange: () => this.sort() },
      options.map(([value, words]) => el("option", { value }, words)),
    );
  }

  control(name, input) {
    return el("div", { class: "control" }, el("label", { for: input.id }, name), input);
  }

  /** Choose and order the records by the controls. */
  sort() {
    const words = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const all = this.records.id.map((_, place) => place);
    this.shown = all.filter((place) => this.isWanted(place, words));
    const { order } = this;
    if (order.value === "id") this.shown.sort((a, b) => (this.records.id[a] < this.records.id[b] ? -1 : 1));
    else {
      const measure = order.value === "flips" ? (place) => this.flipCount(place) : (place) => Math.abs(this.change(place) ?? 0);
      this.shown.sort((a, b) => measure(b) - measure(a) || a - b);
    }
    this.page = 0;
    this.drawList();
  }

  isWanted(place, words) {
    const text = `${this.records.id[place]} ${this.records.question[place]}`.toLowerCase();
    if (!words.every((word) => text.includes(word))) return false;
    if (this.field.value && this.flipCount(place) === 0) return false;
    return !this.metric.value || Boolean(this.change(place));
  }

  /** What the chosen metric changed by, or all of them together. */
  change(place) {
    const { changes, size } = this.records;
    return this.metric.value ? changes[this.metric.value][place] : size[place];
  }

  /** Flips of the chosen field, or of all. */
  flipCount(place) {
    const chosen = this.index.fields.findIndex(([field]) => field === this.field.value);
    const counts = this.records.flips[place];
    return (chosen < 0 ? counts : [counts[chosen]]).flat().reduce((sum, count) => sum + count, 0);
  }

  drawList() {
    const pages = Math.max(1, Math.ceil(this.shown.length / DIFF_PAGE));
    const first = this.page * DIFF_PAGE;
    const part = this.shown.slice(first, first + DIFF_PAGE);
    this.list.replaceChildren(
      el("p", { class: "browser-status", role: "status" }, counted(this.shown.length, "record")),
      el("div", { class: "record-list" }, this.drawTable(part)),
      pages > 1 ? this.drawPager(pages) : "",
    );
  }

  drawTable(places) {
    const measure = this.metric.value || "size of change";
    return el(
      "table",
      { class: "records" },
      el(
        "thead",
        {},
        el("tr", {}, ["Record", "Question", "Flips"].map((head) => el("th", { scope: "col" }, head)), el("th", { scope: "col", class: "number" }, measure)),
      ),
      el("tbody", {}, places.map((place) => this.drawLine(place, measure))),
    );
  }

  drawLine(place, measure) {
    const { id, question } = this.records;
    const open = el("button", { type: "button", class: "plain", dir: "auto", "data-record": place }, el("span", { class: "clamp" }, shownText(id[place])));
    const line = el(
      "tr",
      { class: "row" },
      el("th", { scope: "row" }, open),
      el("td", { class: "row-question" }, el("span", { class: "clamp", dir: "auto" }, shownText(question[place]))),
      el("td", { class: "diff-flips" }, this.flipWords(place)),
      el("td", { class: "number", "data-name": measure }, this.metric.value ? signedText(this.change(place)) : this.change(place).toFixed(4)),
    );
    line.addEventListener("click", () => this.open(place));
    return line;
  }

  /** `relevant +2 −1, supported −1`. */
  flipWords(place) {
    const signs = Object.values(DIFF_SIGNS);
    return this.records.flips[place]
      .map((counts, field) => [this.index.fields[field][1], counts])
      .filter(([, counts]) => counts.some(Boolean))
      .map(([name, counts]) => [name, ...counts.map((count, way) => (count ? `${signs[way]}${count}` : "")).filter(Boolean)].join(" "))
      .join(", ");
  }

  drawPager(pages) {
    const turn = (by) => () => {
      this.page += by;
      this.drawList();
      $("#browser-title").focus();
    };
    return el(
      "nav",
      { class: "pager", "aria-label": "Pages of the list" },
      el("button", { type: "button", disabled: this.page === 0, onclick: turn(-1) }, icon("previous"), "Previous"),
      el("span", {}, `Page ${this.page + 1} of ${pages}`),
      el("button", { type: "button", disabled: this.page === pages - 1, onclick: turn(1) }, "Next", icon("next")),
    );
  }

  // One record.

  /** Open a record, and say so in the address. */
  open(place) {
    const address = new URLSearchParams({ record: this.records.id[place] });
    if (location.hash === `#${address}`) this.show(place, null);
    else location.hash = address;
  }

  /** Show what the address names: a record and a sentence, or the list. */
  followAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const place = this.records.id.indexOf(asked.get("record"));
    if (place >= 0) this.show(place, asked.get("sentence"));
    else this.showList();
  }

  showList() {
    this.opening += 1;
    const was = this.current;
    this.current = undefined;
    this.reader.hidden = true;
    this.controls.hidden = this.list.hidden = false;
    if (was === undefined) return;
    this.reader.replaceChildren();
    ($(`[data-record="${was}"]`, this.list) ?? $("#browser-title")).focus();
  }

  async show(place, sentence) {
    this.opening += 1;
    const turn = this.opening;
    const size = this.index.chunk_size;
    const chunk = await this.chunk(Math.floor(place / size));
    if (turn !== this.opening) return;
    this.current = place;
    this.drawRecord(chunk[place % size], place, sentence);
    this.controls.hidden = this.list.hidden = true;
    this.reader.hidden = false;
    this.reader.scrollIntoView({ block: "start" });
    if (!sentence) $(".question", this.reader).focus({ preventScroll: true });
  }

  /** Records that are packed together; the last few stay unpacked. */
  chunk(number) {
    if (!this.chunks.has(number)) this.chunks.set(number, unpackBlock(`chunk-${number}`));
    if (this.chunks.size > 4) this.chunks.delete(this.chunks.keys().next().value);
    return this.chunks.get(number);
  }

  drawRecord(record, place, sentence) {
    const drawn = drawRecord(record.view, {
      focus: sentence,
      labelName: "A",
      labels: [{ name: "B", label: record.other }],
      onFocus: (key) => {
        const address = new URLSearchParams({ record: this.records.id[place], sentence: key });
        history.replaceState(null, "", `#${address}`);
      },
    });
    this.reader.replaceChildren(this.drawBar(place), this.drawMoved(record, place, drawn), drawn.node);
    $(".question", this.reader).setAttribute("tabindex", "-1");
  }

  drawBar(place) {
    const at = this.shown.indexOf(place);
    const step = (by, words, name) =>
      el("button", { type: "button", disabled: at < 0 || this.shown[at + by] === undefined, onclick: () => this.open(this.shown[at + by]) }, icon(name), words);
    return el(
      "nav",
      { class: "record-bar", "aria-label": "Records" },
      el("button", { type: "button", onclick: () => this.close() }, icon("list"), "All records"),
      step(-1, "Previous", "previous"),
      step(1, "Next", "next"),
      el("span", { class: "place small muted" }, at < 0 ? "" : `${grouped(at + 1)} of ${grouped(this.shown.length)}`),
    );
  }

  /** Go back to the list. */
  close() {
    history.pushState(null, "", location.pathname + location.search);
    this.showList();
  }

  /** Show the flips, what each metric changed by, and why B decides differently. */
  drawMoved(record, place, drawn) {
    return el(
      "details",
      { class: "diff-moved card" },
      el("summary", {}, `${counted(record.flips.length, "flip")}: ${this.flipWords(place)}`),
      el("ul", { class: "diff-parts", role: "list" }, record.flips.map((flip) => el("li", {}, this.drawFlip(flip, drawn)))),
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values of the record" },
        el(
          "table",
          {},
          el("caption", {}, "Metrics of the record"),
          el(
            "thead",
            {},
            el("tr", {}, ["Metric", "A", "B", "Change"].map((head, at) => el("th", { scope: "col", class: at ? "number" : null }, head))),
          ),
          el("tbody", {}, record.metrics.map((metric) => this.drawMetric(metric))),
        ),
      ),
      this.drawReasons(record, drawn),
    );
  }

  /** B's explanations of its other decisions; A's are next to the sentences. */
  drawReasons({ flips, other, made }, drawn) {
    const has = (field) => flips.some((flip) => flip.field === field);
    const judged = flips.filter(({ field }) => field === "supported" || field === "supporting_keys");
    const reasons = [
      has("relevant") && ["Relevance", other.relevance_explanation],
      has("overall_supported") && [`Overall: ${other.overall ? "supported" : "not supported"}`, other.overall_explanation],
      ...judged.map(({ key }) => [this.keyButton(key, drawn), ownValue(other.support, key)?.explanation]),
    ].filter((reason) => reason && reason[1]);
    return [
      reasons.length > 0 && el("h3", {}, "Why, by B"),
      el("dl", { class: "sides small" }, reasons.map(([name, text]) => [el("dt", {}, name), el("dd", { class: "diff-reason", dir: "auto" }, shownText(text))])),
      el("p", { class: "small muted" }, "B was made by ", el("code", {}, shownText(made.signature)), made.at && ` at ${made.at}`),
    ];
  }

  keyButton(key, drawn) {
    return el("button", { type: "button", class: "key", title: `Go to sentence ${key}`, onclick: () => drawn.focus(key) }, key);
  }

  drawMetric(metric) {
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, metric.metric),
      [["A", metric.a], ["B", metric.b]].map(([name, text]) => el("td", { class: "number", "data-name": name }, shownText(text))),
      el("td", { class: "number", "data-name": "change" }, signedText(metric.change)),
    );
  }

  /** A flip, such as `relevant +0b`; it leads to its sentence, where it has one. */
  drawFlip(flip, drawn) {
    const text = `${flip.field.replaceAll("_", " ")} ${DIFF_SIGNS[flip.direction]}${flip.key ?? ""}`;
    if (flip.key === null) return el("span", { class: "chip" }, text);
    return el("button", { type: "button", title: `Go to sentence ${flip.key}`, onclick: () => drawn.focus(flip.key) }, text);
  }
}

/** Draw the list, and open what the address names. */
async function startDiff() {
  const root = $("#diff");
  if (!canUnpack()) {
    root.append(el("p", { class: "notice bad" }, "This browser is too old to unpack the records: it has no DecompressionStream."));
    return;
  }
  const browser = new DiffBrowser(await unpackBlock("index"), root);
  if (location.hash.includes("record=")) browser.followAddress();
}

startDiff();
