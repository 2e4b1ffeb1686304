// What a person does with a report: milliseconds of each thing, until the page is drawn again.
async () => {
  const $$ = (selector) => document.querySelector(selector);
  const drawn = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 0)));
  const took = async (act, done) => {
    const began = performance.now();
    act();
    do await drawn(); while (!done());
    return performance.now() - began;
  };
  const choose = (selector, value) => {
    $$(selector).value = value;
    $$(selector).dispatchEvent(new Event("change"));
  };
  const write = (text) => {
    $$("#search").value = text;
    $$("#search").dispatchEvent(new Event("input"));
  };
  const chips = () => document.querySelectorAll("[aria-label^='Remove filter']").length;
  const now = () => true;
  const times = [];
  times.push(await took(() => choose("#filter-pattern", "0"), now));
  $$("[aria-label^='Remove filter']").click();
  times.push(await took(() => choose("#sort", "relevance"), now));
  times.push(await took(() => choose("#sort", "id"), now));
  times.push(await took(() => write("row-99"), () => chips() === 1));
  times.push(await took(() => $$("#full").click(), () => $$(".search-progress").hidden));
  write("");
  while (chips() > 0) await drawn();
  times.push(await took(() => $$("#browser tbody a").click(), () => $$("#browser .record")));
  return times;
}
