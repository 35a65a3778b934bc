// The classes and their examples: paste, drop, rename, remove, and what the doctor says.
import { ask, at, change, changed, kindOf, labels, onChange, send } from "./api.js";
import { attempt, byId, counted, fill, focusUnlessTyping, make, say, takeFiles } from "./dom.js";

export function start() {
  byId("add-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(add); });
  byId("filter").addEventListener("input", () => attempt(list));
  takeFiles("drop-examples", "file-examples", upload);
  for (const kind of ["yaml", "jsonl"]) byId(`export-${kind}`).addEventListener("click", (event) => { event.preventDefault(); attempt(() => download(kind)); });
  onChange(refresh);
}

async function add() {
  const label = byId("add-label").value.trim(), field = byId("add-texts"), sent = field.value;
  const texts = sent.split("\n").map((line) => line.trim()).filter(Boolean);
  const done = await send("POST", at("classes", label, "examples"), { examples: texts });
  say(`${counted(done.added, "example")} added to ${label}.`);
  if (field.value === sent) field.value = ""; // what was typed meanwhile stays
  focusUnlessTyping(field);
  await changed();
}

async function upload(file) {
  const done = await change("POST", at("import"), await file.text(), kindOf(file));
  say(done.summary || "Done.");
}

async function download(kind) {
  const text = await send("GET", `${at("export")}?format=${kind}`);
  const link = make("a", { href: URL.createObjectURL(new Blob([text])), download: `examples.${kind}` });
  link.click();
  URL.revokeObjectURL(link.href);
}

export async function refresh() {
  await list();
  if (!byId("panel-examples").hidden) await doctor();
}

async function list() {
  const classes = await labels();
  fill(byId("labels"), ...classes.map((item) => make("option", { value: item.label })));
  const wanted = byId("filter").value.trim().toLowerCase();
  const open = new Set([...byId("classes").querySelectorAll("details[open]")].map((item) => item.dataset.label));
  fill(byId("classes"), ...classes.filter((item) => item.label.toLowerCase().includes(wanted)).map((item) => entry(item, open.has(item.label))));
  if (!classes.length) fill(byId("classes"), make("li", { class: "quiet" }, "No class yet. Paste two or three examples of each of two classes, and try it."));
}

function entry(item, open) {
  const inside = make("div", {});
  const details = make("details", { "data-label": item.label, open: open },
    make("summary", {}, make("span", {}, item.label), make("span", { class: "quiet" }, counted(item.examples, "example"))), inside);
  const show = () => { if (details.open) attempt(() => showExamples(item.label, inside)); };
  details.addEventListener("toggle", show);
  if (open) show();
  return make("li", {}, details);
}

async function showExamples(label, inside) {
  const found = await send("GET", at("classes", label));
  const rows = found.examples.map((example) => make("li", {}, make("span", {}, example.text),
    make("button", { class: "plain small", type: "button", "aria-label": `Remove ${example.text}`,
      onclick: () => attempt(() => change("DELETE", at("classes", label, "examples", example.id))) }, "Remove")));
  fill(inside, make("ul", {}, ...rows), make("p", {},
    make("button", { class: "plain small", type: "button", onclick: () => attempt(() => change("DELETE", at("classes", label))) }, "Remove the class"), " ",
    make("button", { class: "plain small", type: "button", onclick: () => attempt(() => rename(label)) }, "Rename")));
}

async function rename(label) {
  const name = window.prompt("New name of the class", label);
  if (name && name.trim() && name !== label) await change("PATCH", at("classes", label), { label: name.trim() });
}

async function doctor() {
  let found;
  try { found = (await ask("check")).report; } catch { fill(byId("doctor")); byId("doctor").hidden = true; return; }
  byId("doctor").hidden = false;
  const lines = [
    ...found.contradictory.map(([text, names]) => `“${text}” stands under ${names.join(" and ")}.`),
    ...found.repeated.map(([text, label]) => `“${text}” is in ${label} twice.`),
    ...found.doubtful.slice(0, 8).map((doubt) => `“${doubt.text}” is in ${doubt.label}, but nearer to ${doubt.nearer}.`),
    ...found.overlapping.slice(0, 5).map(([one, two, count]) => `${one} and ${two} overlap (${counted(count, "example")}).`),
    ...(found.thin.length ? [`Few examples: ${found.thin.slice(0, 8).map(([label, size]) => `${label} (${size})`).join(", ")}${found.thin.length > 8 ? ` and ${found.thin.length - 8} more` : ""}.`] : []),
  ];
  fill(byId("doctor"), make("h2", {}, "What deserves a look"),
    lines.length ? make("ul", {}, ...lines.map((line) => make("li", {}, line))) : make("p", {}, "Nothing: the examples agree with each other."));
}
