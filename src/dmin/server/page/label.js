// Label mode: suggestions one after the other, answered by a key; the estimated accuracy is prequential:
// each text was predicted before its label was given.
import { ask, at, change, labels, send } from "./api.js";
import { attempt, byId, fill, focusUnlessTyping, make, percent, say, takeFiles } from "./dom.js";

const session = { pile: [], queue: [], done: [], skipped: new Set(), shown: null };
export const pile = () => session.pile;

export function start() {
  takeFiles("drop-pile", "file-pile", async (file) => { byId("pile").value = texts(await file.text(), file.name).join("\n"); await begin(); });
  byId("start-label").addEventListener("click", () => attempt(begin));
  byId("label-new").addEventListener("submit", (event) => { event.preventDefault(); attempt(answerByName); });
  byId("label-skip").addEventListener("click", () => attempt(skip));
  byId("label-undo").addEventListener("click", () => attempt(undo));
  byId("label-stop").addEventListener("click", stop);
  document.addEventListener("keydown", keys);
}

function keys(event) {
  if (byId("panel-label").hidden || byId("labelling").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return;
  if (event.key === "s") attempt(skip);
  else if (event.key === "u") attempt(undo);
  else if (/^[1-9]$/.test(event.key)) byId("label-choices").children[Number(event.key) - 1]?.click();
}

/** The texts of a file: a column `text` where there is one, else its lines. */
export function texts(content, name) {
  const lines = content.split(/\r?\n/);
  if (name.endsWith(".jsonl")) return lines.filter(Boolean).map((line) => JSON.parse(line).text).filter(Boolean);
  if (name.endsWith(".csv") || name.endsWith(".tsv")) {
    const rows = cells(content, name.endsWith(".tsv") ? "\t" : ",");
    const column = Math.max(0, rows[0].indexOf("text"));
    return rows.slice(rows[0].includes("text") ? 1 : 0).map((row) => (row[column] || "").trim()).filter(Boolean);
  }
  return lines.map((line) => line.trim()).filter(Boolean);
}

function cells(content, comma) {
  const rows = [[""]];
  let quoted = false;
  for (let place = 0; place < content.length; place += 1) {
    const sign = content[place], row = rows.at(-1);
    if (quoted && sign === '"' && content[place + 1] === '"') { row[row.length - 1] += '"'; place += 1; }
    else if (sign === '"') quoted = !quoted;
    else if (!quoted && sign === comma) row.push("");
    else if (!quoted && sign === "\n") rows.push([""]);
    else if (quoted || sign !== "\r") row[row.length - 1] += sign;
  }
  return rows.filter((row) => row.some(Boolean));
}

async function begin() {
  session.pile = [...new Set(texts(byId("pile").value, "lines.txt"))];
  if (!session.pile.length) { say("The pile is empty.", true); return; }
  Object.assign(session, { queue: [], done: [], skipped: new Set(), shown: null });
  byId("pile-card").hidden = true;
  byId("labelling").hidden = false;
  await next();
}

function stop() {
  byId("pile-card").hidden = false;
  byId("labelling").hidden = true;
}

const left = () => session.pile.filter((text) => !session.skipped.has(text) && !session.done.some((item) => item.text === text));

async function next() {
  if (!session.queue.length) {
    const rest = left();
    if (!rest.length) { finish(); return; }
    session.queue = await suggestions(rest);
  }
  session.shown = session.queue.shift();
  await show();
}

async function suggestions(rest) {
  return (await ask("suggest", { texts: rest, n: Math.min(10, rest.length), seed: session.done.length })).suggestions;
}

async function show() {
  const { text, reason } = session.shown;
  byId("label-text").textContent = text;
  byId("label-reason").textContent = `Why this one: ${reason}.`;
  fill(byId("label-choices")); // a key pressed early must not answer with the choices of the text before
  let likely = [];
  try {
    const found = (await ask("classify", { texts: [text], top_k: 9 })).answers[0];
    session.shown.predicted = found.top[0].label;
    likely = found.top.map((row) => row.label);
  } catch (error) {
    if (error.status !== 409) throw error;
    likely = (await labels()).map((item) => item.label); // it cannot answer yet
  }
  fill(byId("label-choices"), ...likely.slice(0, 9).map((label, place) => make("button", { type: "button", onclick: () => attempt(() => answer(label)) },
    make("kbd", {}, String(place + 1)), ` ${label}`)));
  byId("label-progress").textContent = `${session.done.length} labelled, ${left().length} left`;
  estimate();
  focusUnlessTyping(byId("label-text"));
}

async function answer(label) {
  const { text, predicted } = session.shown;
  fill(byId("label-choices")); // one answer per text, however often the key is pressed
  try { await change("POST", at("classes", label, "examples"), { examples: [text] }); }
  catch (error) { await show(); throw error; }
  session.done.push({ text, label, predicted });
  await next();
}

async function answerByName() {
  const field = byId("label-name"), name = field.value.trim();
  if (!name) return;
  field.value = "";
  field.blur(); // the keys are for the next text again
  await answer(name);
}

async function skip() {
  session.skipped.add(session.shown.text);
  await next();
}

async function undo() {
  const back = session.done.pop();
  if (!back) { say("Nothing of this session to undo."); return; }
  const rows = (await send("GET", at("classes", back.label))).examples;
  const row = rows.find((item) => item.text === back.text);
  if (row) await change("DELETE", at("classes", back.label, "examples", row.id));
  session.queue.unshift(session.shown);
  session.shown = { text: back.text, reason: "you took its label back" };
  await show();
}

function finish() {
  fill(byId("label-choices"));
  byId("label-text").textContent = "The pile is done.";
  byId("label-reason").textContent = "";
  byId("label-progress").textContent = `${session.done.length} labelled`;
  estimate();
}

/** Wilson's 95 % confidence interval of a share. */
function wilson(right, total, z = 1.96) {
  const share = right / total, middle = share + (z * z) / (2 * total);
  const half = z * Math.sqrt((share * (1 - share)) / total + (z * z) / (4 * total * total)), scale = 1 + (z * z) / total;
  return [Math.max(0, (middle - half) / scale), Math.min(1, (middle + half) / scale)];
}

function estimate() {
  const judged = session.done.filter((item) => item.predicted !== undefined);
  if (judged.length < 3) { fill(byId("label-accuracy"), make("p", { class: "quiet" }, "The estimated accuracy appears after a few answers.")); return; }
  const recent = judged.slice(-50), right = recent.filter((item) => item.predicted === item.label).length;
  const [low, high] = wilson(right, recent.length);
  fill(byId("label-accuracy"), make("h2", {}, `Estimated accuracy ${percent(right / recent.length)}`),
    make("p", { class: "quiet" }, `95 % confidence interval ${percent(low)} to ${percent(high)}: of the last ${recent.length} texts, ${right} were predicted right before you answered. Suggested texts are harder than the rest of the pile.`));
}
