/* Parts of a report's charts and tables that filter its list of records. */

/** Elements with `data-filter`, and which of them says what the list is filtered by. */
class ChartFilters {
  /** @param {function(object[]): void} filterBy filters the list by these alone. */
  constructor(filterBy) {
    this.filterBy = filterBy;
    this.links = alike([...document.querySelectorAll("[data-filter]")], filterText);
    document.addEventListener("click", (event) => this.onPress(event));
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Such an element was pressed by a key; buttons turn that into a click by themselves. */
  onKey(event) {
    const link = event.target.closest?.("[data-filter]");
    if (link && link.localName !== "button" && isPress(event.key)) this.onPress(event);
  }

  /** Such an element was pressed. */
  onPress(event) {
    const link = event.target.closest?.("[data-filter]");
    if (!link) return;
    event.preventDefault();
    this.filterBy(filtersOf(link));
  }

  /** Mark the elements that say what a state filters by. */
  show(state) {
    const now = state.filters().toString();
    if (this.shown === now) return;
    this.shown = now;
    for (const links of this.links) {
      const inForce = filterText(links[0]) === now;
      for (const link of links) {
        if (inForce) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }
  }
}

/** The filters that an element sets: one, or several that all hold. */
function filtersOf(link) {
  return [JSON.parse(link.getAttribute("data-filter"))].flat();
}

/** What an address says of the filters that an element sets. */
function filterText(link) {
  const state = new BrowserState();
  for (const filter of filtersOf(link)) state.add(filter);
  return state.filters().toString();
}
