// Which view is shown is in the address, behind `#`: each view has a link that brings it back.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** The path behind `#/`, cut at its slashes: the view first. */
  path: string[];
  query: URLSearchParams;
}

export type Values = Record<string, string | number | undefined>;

/** Views that show the past. */
const WITH_PAST = ["markets", "party", "explore"];

let current = read();
const listeners = new Set<() => void>();

for (const name of ["hashchange", "popstate", "route"]) {
  addEventListener(name, () => {
    current = read();
    listeners.forEach((changed) => changed());
  });
}

/** Calls a function after each change of the address, until the function that it returns is called. */
export function onRoute(changed: () => void): () => void {
  listeners.add(changed);
  return () => void listeners.delete(changed);
}

/** The height of the block in the address; empty for now. */
export const addressBlock = () => current.query.get("atBlock") ?? "";

/** The height of the block as of which the view reads; empty for now. */
export const readBlock = () => (WITH_PAST.includes(current.path[0]!) ? addressBlock() : "");

/** The link of this view as of a block; as of now for an empty height. */
export function linkAt(height: string): string {
  const [path, query] = parts();
  return link(path, { ...Object.fromEntries(new URLSearchParams(query)), atBlock: height });
}

/** The link of a view as of the block in the address; values that are empty are left out. */
export function link(path: string, values: Values = {}): string {
  const query = new URLSearchParams();
  const { atBlock = addressBlock(), ...others } = values;
  for (const [name, value] of Object.entries({ ...others, atBlock })) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** The page of a market, and of a party. */
export const marketLink = (id: string, interval = "") => link(`markets/${encodeURIComponent(id)}`, { interval });
export const partyLink = (id: string) => link(`party/${encodeURIComponent(id)}`);

/** Goes to a view; `replace` leaves no step back to this one. */
export function go(path: string, values: Values = {}, replace = false): void {
  open(link(path, values), replace);
}

/** The same for a link. */
export function open(target: string, replace = false): void {
  if (target === location.hash) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  dispatchEvent(new Event("route"));
}

/** The path and the query in the address. */
function parts(): [path: string, query: string] {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return [path || "markets", query];
}

function read(): Route {
  const [path, query] = parts();
  return { path: path.split("/").map(plain), query: new URLSearchParams(query) };
}

function plain(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What is typed into a form that shows a part of the address, which is the key: that part, until something is typed. */
export function useTyped<T>(given: T, key: string): [typed: T, type: (typed: T) => void] {
  const [typed, setTyped] = useState<{ key: string; value: T }>();
  return [typed?.key === key ? typed.value : given, (value) => setTyped({ key, value })];
}

/** The route of this moment. */
export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => onRoute(() => setRoute(current)), []);
  return route;
}
