// Small helpers. Text always goes in as text, never as HTML.
export const byId = (id) => document.getElementById(id);

/** make("li", { class: "x", onclick: f }, "text", child): an element. */
export function make(tag, attributes = {}, ...children) {
  const space = ["svg", "rect", "circle", "path", "text", "title", "g"].includes(tag) ? "http://www.w3.org/2000/svg" : null;
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const fill = (element, ...children) => element.replaceChildren(...children.filter(Boolean));
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
export const counted = (number, noun) => `${number} ${number === 1 ? noun : noun === "class" ? "classes" : `${noun}s`}`;

/** A class's name as pieces between which a line may break: after _, -, / or a point, before it breaks within a word. */
export const breakable = (name) => name.split(/(?<=[_/.-])/).flatMap((piece) => [piece, document.createElement("wbr")]).slice(0, -1);

/** Moves the focus, unless a person is typing in a field: an answer that comes late must not take their keys. */
export function focusUnlessTyping(element) {
  if (!["INPUT", "TEXTAREA", "SELECT"].includes(document.activeElement?.tagName)) element.focus();
}

/** A bar from zero; its value stands beside it as text, so it is hidden from screen readers. */
export function bar(share) {
  const width = Math.max(0, Math.min(100, Math.abs(share) * 100));
  return make("svg", { class: `bar-line${share < 0 ? " negative" : ""}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    make("rect", { x: 0, y: 0, width, height: 10 }));
}

let timer;
export function say(message, bad = false) {
  const notice = byId("notice");
  notice.textContent = message;
  notice.className = `shown${bad ? " bad" : ""}`;
  clearTimeout(timer);
  timer = setTimeout(() => { notice.className = ""; }, bad ? 7000 : 3500);
}

/** Runs what a person asked for; a problem is said, not thrown. */
export async function attempt(work) {
  try { return await work(); }
  catch (error) { say(error.message, true); return undefined; }
}

/** Calls `take` with the file that is chosen or dropped. */
export function takeFiles(dropId, inputId, take) {
  const area = byId(dropId), input = byId(inputId);
  input.addEventListener("change", () => { if (input.files[0]) attempt(() => take(input.files[0])).finally(() => { input.value = ""; }); });
  for (const kind of ["dragenter", "dragover"]) area.addEventListener(kind, (event) => { event.preventDefault(); area.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) area.addEventListener(kind, () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => { event.preventDefault(); const file = event.dataTransfer.files[0]; if (file) attempt(() => take(file)); });
}
