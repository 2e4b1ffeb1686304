/* Charts and tables that filter the list of records. */

/** Elements with `data-filter`; those of the active filters are marked. */
class ChartFilters {
  /** @param {function(object[]): void} filterBy replaces the filters of the list. */
  constructor(filterBy) {
    this.filterBy = filterBy;
    this.links = alike([...document.querySelectorAll("[data-filter]")], filterText);
    document.addEventListener("click", (event) => this.onPress(event));
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** Handle a key on such an element; buttons turn keys into clicks by themselves. */
  onKey(event) {
    const link = event.target.closest?.("[data-filter]");
    if (link && link.localName !== "button" && isPress(event.key)) this.onPress(event);
  }

  /** Apply the filters of a pressed element. */
  onPress(event) {
    const link = event.target.closest?.("[data-filter]");
    if (!link) return;
    event.preventDefault();
    this.filterBy(filtersOf(link));
  }

  /** Mark the elements whose filters are active. */
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

/** Return the filters of an element: one, or several that all hold. */
function filtersOf(link) {
  return [JSON.parse(link.getAttribute("data-filter"))].flat();
}

/** Return the filters of an element as in an address. */
function filterText(link) {
  const state = new BrowserState();
  for (const filter of filtersOf(link)) state.add(filter);
  return state.filters().toString();
}
