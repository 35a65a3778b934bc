// The first panel: type a text, see its class, why, and put it right with one click.
import { ask, at, changed, labels, onChange, send } from "./api.js";
import { attempt, bar, breakable, byId, fill, make, percent, say } from "./dom.js";

let waiting, last = "";
export const typed = () => byId("text").value.trim();

export function start() {
  byId("try-form").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(waiting); attempt(classify); });
  byId("text").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); clearTimeout(waiting); attempt(classify); } });
  byId("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => attempt(classify), 350); });
  onChange(() => (typed() ? classify() : undefined));
}

async function classify() {
  const text = typed();
  last = text;
  if (!text) { fill(byId("answer")); return; }
  const found = await ask("classify", { texts: [text], top_k: 5, explain: true });
  if (last !== text) return; // a newer question is on its way
  draw(text, found.answers[0], await labels());
}

function draw(text, answer, classes) {
  const before = byId("other"), naming = before?.value ?? "", focused = before && document.activeElement === before;
  const nearest = answer.top[0].label;
  const verdict = make("div", { class: "verdict" },
    make("strong", {}, answer.refused ? "None of the classes" : answer.label),
    make("span", { class: "badge" + (answer.refused ? " warn" : "") },
      answer.refused ? `refused: nearest is ${nearest}` : `${percent(answer.probability)} sure`));
  const ranked = make("ul", { class: "rows", id: "ranked" }, ...answer.top.map((row) => make("li", {},
    make("span", { class: "name" }, ...breakable(row.label)), bar(row.probability), make("span", { class: "number" }, percent(row.probability)),
    make("button", { class: "plain small", type: "button", "aria-label": `It is this: put the text into ${row.label}`, onclick: () => put(text, row.label) }, "It is this"))));
  const other = make("form", { class: "other", onsubmit: (event) => { event.preventDefault(); put(text, event.target.elements.other.value.trim()); } },
    make("label", { for: "other" }, "It is another class"),
    make("input", { id: "other", name: "other", list: "labels", required: true, maxlength: 200, autocomplete: "off", placeholder: classes[0] ? `for example: ${classes[0].label}` : "" }),
    make("button", { type: "submit" }, "Put it there"));
  const reason = answer.explanation;
  const score = Math.max(1e-9, ...reason.examples.map((share) => Math.abs(share.share ?? 0)));
  const shares = make("ul", { class: "rows shares", id: "shares" }, ...reason.examples.slice(0, 8).map((share) => make("li", {},
    make("span", { class: "name" }, share.is_name ? make("em", {}, `the name: ${share.text}`) : share.text),
    bar((share.share ?? 0) / score), make("span", { class: "number" }, share.share === null ? "?" : share.share.toFixed(3)))));
  const limit = reason.threshold === null ? "" : ` Its similarity is ${answer.cosine.toFixed(2)}; below ${reason.threshold.toFixed(2)} a text is refused.`;
  fill(byId("answer"), make("div", { class: "two-answers" },
    make("div", { class: "card" }, make("h2", {}, "Answer"), verdict, ranked, other),
    make("div", { class: "card" }, make("h2", {}, `The examples of ${nearest} that decided`),
      make("p", { class: "quiet" }, `Their shares add up to the deciding score ${reason.score.toFixed(2)}.${limit}`), shares)));
  byId("other").value = naming; // the name that a person is typing outlives a new answer
  if (focused) byId("other").focus();
}

async function put(text, label) {
  if (!label) return;
  await attempt(async () => {
    const done = await send("POST", at("classes", label, "examples"), { examples: [text] });
    byId("other").value = "";
    await changed();
    say(done.added ? `Added to ${label}. The answer is new.` : `${label} has this text already.`);
  });
}
