// Evaluation of a dropped labelled file: accuracy, confusion matrix, wrong texts.
import { at, kindOf, send } from "./api.js";
import { bar, byId, counted, fill, make, percent, takeFiles } from "./dom.js";

export function start() {
  takeFiles("drop-evaluate", "file-evaluate", async (file) => {
    fill(byId("evaluation"), make("p", { class: "quiet" }, "Measuring …"));
    try {
      let kind = kindOf(file), body = await file.text();
      if (kind === "application/json") { kind = "application/yaml"; } // a mapping or a list of rows; JSON is YAML
      draw(await send("POST", at("evaluate"), body, kind));
    } catch (error) { fill(byId("evaluation")); throw error; }
  });
}

function draw(found) {
  const columns = [...found.labels.filter((label) => !found.unknown_labels.includes(label)), "(refused)"];
  fill(byId("evaluation"),
    make("div", { class: "card" }, make("h2", { id: "accuracy" }, `${percent(found.accuracy, 1)} of ${counted(found.texts, "text")} are right`),
      make("p", { class: "quiet" }, `95 % confidence interval ${percent(found.low, 1)} to ${percent(found.high, 1)}; macro-F1 ${percent(found.macro_f1, 1)}; ${found.refused} refused, which counts as wrong.`),
      found.unknown_labels.length > 0 && make("p", {}, `Labels that the collection does not have: ${found.unknown_labels.join(", ")}.`)),
    make("div", { class: "card" }, make("h2", {}, "Classes, weakest first"),
      make("ul", { class: "rows shares" }, ...found.classes.slice(0, 30).map((item) => make("li", {}, make("span", { class: "name" }, `${item.label} (${item.texts})`), bar(item.f1), make("span", { class: "number" }, percent(item.f1)))))),
    make("div", { class: "card" }, make("h2", {}, "Confusion matrix"), make("p", { class: "quiet" }, "Rows: the true class. Columns: the answer."), matrix(found, columns)),
    found.wrong.length > 0 && make("div", { class: "card" }, make("h2", {}, "Wrong texts, the surest first"),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Wrong texts" }, make("table", { id: "wrong" },
        make("thead", {}, make("tr", {}, ...["text", "true class", "answer", "sure"].map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, ...found.wrong.slice(0, 100).map((row) => make("tr", {}, make("td", {}, row.text), make("td", {}, row.truth), make("td", {}, row.refused ? "(refused)" : row.answer), make("td", { class: "number" }, percent(row.probability)))))))));
}

/** All of a small matrix; of a large one, the classes that were confused most. */
function matrix(found, columns) {
  const most = 20;
  let rows = found.labels.map((label, row) => ({ label, counts: found.confusion[row] }));
  const wrong = (row) => row.counts.reduce((sum, count, column) => sum + (columns[column] === row.label ? 0 : count), 0);
  if (rows.length > most) rows = rows.sort((one, two) => wrong(two) - wrong(one)).slice(0, most);
  const kept = columns.map((label, column) => column).filter((column) => columns.length <= most || rows.some((row) => row.counts[column]));
  const shade = (row, column) => { const count = row.counts[column], total = row.counts.reduce((sum, one) => sum + one, 0); if (!count) return ""; return columns[column] === row.label ? `m${Math.min(3, 1 + Math.floor((2.99 * count) / total))}` : "w1"; };
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusion matrix" }, make("table", { class: "matrix" },
    make("thead", {}, make("tr", {}, make("td", {}), ...kept.map((column) => make("th", { scope: "col" }, columns[column])))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.label), ...kept.map((column) => make("td", { class: shade(row, column) }, row.counts[column] ? String(row.counts[column]) : "·")))))));
}
