// Talks to the service. Every change carries an Idempotency-Key, so that sending it again does no harm.
const state = { collection: "default", key: sessionStorage.getItem("dmin-key") || "", listeners: new Set() };

export const current = () => state.collection;
export const choose = (name) => { state.collection = name; };
export const setKey = (key) => { state.key = key; sessionStorage.setItem("dmin-key", key); };
/** Calls `listener` after every change of the collection. */
export const onChange = (listener) => state.listeners.add(listener);
export const changed = () => Promise.all([...state.listeners].map((listener) => listener()));

export class ServiceError extends Error {
  constructor(status, problem) { super(problem.detail || `The service answered ${status}.`); this.status = status; this.problem = problem; }
}

export async function send(method, path, body, type = "application/json") {
  const headers = {};
  if (state.key) headers.Authorization = `Bearer ${state.key}`;
  if (method !== "GET") headers["Idempotency-Key"] = identifier();
  if (body !== undefined) headers["Content-Type"] = type;
  const content = body === undefined ? undefined : type === "application/json" && typeof body !== "string" ? JSON.stringify(body) : body;
  let response;
  try { response = await fetch(path, { method, headers, body: content }); }
  catch { throw new ServiceError(0, { detail: "The service does not answer." }); }
  const text = await response.text();
  let found = text;
  if ((response.headers.get("content-type") || "").includes("json")) found = JSON.parse(text);
  if (!response.ok) throw new ServiceError(response.status, typeof found === "object" ? found : {});
  return found;
}

function identifier() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const at = (...parts) => `/v1/collections/${[state.collection, ...parts].map(encodeURIComponent).join("/")}`;
export const ask = (what, body = {}) => send("POST", at(what), body);
export const labels = async () => (await send("GET", at("classes"))).classes;

export async function change(method, path, body, type) {
  const found = await send(method, path, body, type);
  await changed();
  return found;
}

const KINDS = { csv: "text/csv", tsv: "text/tab-separated-values", jsonl: "application/x-ndjson", json: "application/json", yaml: "application/yaml", yml: "application/yaml" };
export const kindOf = (file) => KINDS[file.name.split(".").pop().toLowerCase()] || "text/csv";
