// A map of all examples and of the pile in two dimensions.
import { ask } from "./api.js";
import { byId, counted, fill, make } from "./dom.js";
import { pile } from "./label.js";
import { typed } from "./try.js";

const SIZE = 640, MARGIN = 30;
const place = (value) => MARGIN + ((value + 1) / 2) * (SIZE - 2 * MARGIN);
const colour = (number, total) => `hsl(${Math.round((360 * number) / Math.max(1, total))} 62% ${number % 2 ? 44 : 56}%)`;

export async function draw() {
  const area = byId("map");
  fill(area, make("p", { class: "quiet" }, "Drawing …"));
  const text = typed(), others = pile().slice(0, 500);
  let found;
  try { found = await ask("map", { texts: text ? [text, ...others] : others }); }
  catch (error) { fill(area, make("p", {}, error.message)); fill(byId("map-notes")); return; }
  const labels = [...new Set(found.examples.map((point) => point.label))];
  const svg = make("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group", "aria-label": `Map of ${counted(found.examples.length, "example")} in ${counted(labels.length, "class")}` });
  const crosses = text ? found.texts.slice(1) : found.texts;
  svg.append(...crosses.map((point) => make("path", { class: "pile", d: cross(point) }, make("title", {}, point.text))));
  svg.append(...found.examples.map((point) => dot(point, colour(labels.indexOf(point.label), labels.length))));
  svg.append(...names(found.examples, labels));
  if (text) svg.append(make("path", { class: "typed", d: star(found.texts[0]) }, make("title", {}, `you typed: ${text}`)));
  fill(area, svg);
  const doubts = found.examples.filter((point) => point.doubt);
  fill(byId("map-notes"),
    doubts.length > 0 && make("h2", {}, "Likely mistakes"),
    doubts.length > 0 && make("ul", {}, ...doubts.slice(0, 20).map((point) => make("li", {}, `“${point.text}” is in ${point.label}, nearer to ${point.doubt}`))),
    found.overlapping.length > 0 && make("h2", {}, "Classes that overlap"),
    found.overlapping.length > 0 && make("ul", {}, ...found.overlapping.map(([one, two, count]) => make("li", {}, `${one} and ${two}: ${counted(count, "example")} nearer to the other`))));
}

function dot(point, fillColour) {
  const about = `${point.label}: ${point.text}${point.doubt ? ` (nearer to ${point.doubt})` : ""}`;
  const [x, y] = [place(point.x), place(point.y)];
  const shape = point.doubt
    ? make("path", { class: "point doubt", d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z`, fill: fillColour }, make("title", {}, about))
    : make("circle", { class: "point", cx: x, cy: y, r: 4.5, fill: fillColour }, make("title", {}, about));
  return shape;
}

/** The name of each class in its middle; where many are, only those that find room. */
function names(points, labels) {
  const taken = [], found = [];
  for (const label of labels) {
    const own = points.filter((point) => point.label === label);
    const x = place(own.reduce((sum, point) => sum + point.x, 0) / own.length), y = place(own.reduce((sum, point) => sum + point.y, 0) / own.length) - 9;
    if (taken.some(([a, b]) => Math.abs(a - x) < 70 && Math.abs(b - y) < 13)) continue;
    taken.push([x, y]);
    found.push(make("text", { x: Math.min(Math.max(x, 60), SIZE - 60), y, "text-anchor": "middle" }, label.length > 24 ? `${label.slice(0, 23)}…` : label));
  }
  return found;
}

const cross = (point) => { const [x, y] = [place(point.x), place(point.y)]; return `M${x - 3} ${y - 3}L${x + 3} ${y + 3}M${x - 3} ${y + 3}L${x + 3} ${y - 3}`; };
function star(point) {
  const [x, y] = [place(point.x), place(point.y)];
  const corners = [...Array(10).keys()].map((corner) => { const radius = corner % 2 ? 5 : 12, angle = (Math.PI * corner) / 5 - Math.PI / 2; return `${x + radius * Math.cos(angle)} ${y + radius * Math.sin(angle)}`; });
  return `M${corners.join("L")}Z`;
}
