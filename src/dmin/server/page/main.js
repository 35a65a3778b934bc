// Brings the panels together: tabs, collections, history, undo, theme, key.
import { at, change, changed, choose, current, onChange, send, setKey } from "./api.js";
import { attempt, byId, counted, fill, make, say } from "./dom.js";
import * as evaluation from "./evaluate.js";
import * as examples from "./examples.js";
import * as labelling from "./label.js";
import * as map from "./map.js";
import * as trying from "./try.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

function openTab(tab, focus = false) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (focus) tab.focus();
  history.replaceState(null, "", `#${tab.id.slice(4)}`);
  if (tab.id === "tab-map") attempt(map.draw);
  if (tab.id === "tab-examples") attempt(examples.refresh);
}

for (const tab of tabs) {
  tab.addEventListener("click", () => openTab(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const ends = { Home: tabs[0], End: tabs.at(-1) }[event.key];
    if (step) openTab(tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length], true);
    else if (ends) openTab(ends, true);
    else return;
    event.preventDefault();
  });
}

async function loadCollections() {
  const found = (await send("GET", "/v1/collections")).collections;
  if (!found.length) found.push(await send("POST", "/v1/collections", { name: "default" }));
  if (!found.some((item) => item.name === current())) choose(found[0].name);
  fill(byId("collection"), ...found.map((item) => make("option", { value: item.name, selected: item.name === current() }, item.name)));
}

async function summary() {
  const found = await send("GET", at());
  byId("summary").textContent = found.classes < 2
    ? "Two classes are needed. Go to Examples and paste two or three texts of each."
    : `${counted(found.classes, "class")} from ${counted(found.examples, "example")} know the answer; nothing was trained.`;
  const past = await send("GET", `${at("history")}?most=100`);
  byId("undo").disabled = past.undoable === null || found.revision === 0;
  const next = past.changes.find((item) => item.revision === past.undoable);
  byId("undo").title = next ? `Undo: ${next.summary}` : "";
  fill(byId("changes"), ...past.changes.map((item) => make("li", { class: item.undone ? "undone" : "" },
    make("span", { class: "what" }, item.summary), make("span", { class: "quiet" }, `${item.who}, ${new Date(item.at).toLocaleString()}`))));
}

async function undo() {
  const done = await send("POST", at("undo"));
  await loadCollections();
  await changed();
  say(done.summary[0].toUpperCase() + done.summary.slice(1));
}

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("dmin-theme", document.documentElement.dataset.theme);
}

async function open() {
  try {
    await loadCollections();
  } catch (error) {
    if (error.status !== 401) throw error;
    byId("key-panel").hidden = false;
    byId("summary").textContent = error.message;
    return;
  }
  byId("key-panel").hidden = true;
  await changed();
  const wanted = byId(`tab-${location.hash.slice(1)}`);
  if (wanted) openTab(wanted);
}

const kept = localStorage.getItem("dmin-theme");
if (kept) document.documentElement.dataset.theme = kept;
byId("theme").addEventListener("click", theme);
byId("undo").addEventListener("click", () => attempt(undo));
byId("collection").addEventListener("change", () => { choose(byId("collection").value); attempt(changed); });
byId("key-form").addEventListener("submit", (event) => { event.preventDefault(); setKey(byId("key").value.trim()); byId("key").value = ""; attempt(open); });
for (const panel of [trying, examples, labelling, evaluation]) panel.start();
onChange(summary);
onChange(() => (byId("panel-map").hidden ? undefined : map.draw()));
attempt(open);
