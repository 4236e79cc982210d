// Which view is shown is in the address, behind `#`: each view has a link that brings it back.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  /** The path behind `#/`, cut at its slashes: the view first. */
  path: string[];
  query: URLSearchParams;
}

export type Values = Record<string, string | number | undefined>;

/** The link of a view; values that are empty are left out. */
export function link(path: string, values: Values = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
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

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { path: (path || "markets").split("/").map(plain), query: new URLSearchParams(query) };
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
  const [route, setRoute] = useState(read);
  useEffect(() => {
    const changed = () => setRoute(read());
    for (const name of ["hashchange", "popstate", "route"]) addEventListener(name, changed);
    return () => {
      for (const name of ["hashchange", "popstate", "route"]) removeEventListener(name, changed);
    };
  }, []);
  return route;
}
