"use strict";
// Tables sort by a click on a column's name: numbers from the largest, words from A; empty cells stay last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const number = head.classList.contains("number"), before = head.getAttribute("aria-sort");
    const downward = before === null ? number : before === "ascending";
    const key = (row) => {
      const text = (row.cells[column].querySelector(".text") ?? row.cells[column]).textContent.trim();
      return number ? Number.parseFloat(text) : text;
    };
    const empty = (value) => value === "" || Number.isNaN(value);
    const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
    rows.sort(([one], [two]) => {
      if (empty(one) || empty(two)) return empty(one) - empty(two);
      const order = number ? one - two : one.localeCompare(two);
      return downward ? -order : order;
    });
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", downward ? "descending" : "ascending");
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
// Dark or light, until the page is opened again.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
});
// A chosen theme alone on the map.
const picks = [...document.querySelectorAll("button.pick")];
for (const pick of picks) pick.addEventListener("click", () => {
  const chosen = pick.getAttribute("aria-pressed") !== "true";
  for (const other of picks) other.setAttribute("aria-pressed", String(chosen && other === pick));
  for (const dot of document.querySelectorAll("circle[data-group]"))
    dot.classList.toggle("faded", chosen && dot.dataset.group !== pick.dataset.group);
});
