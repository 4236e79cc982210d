// The party that the user has marked as their own, kept in this browser.
import { useEffect, useState } from "preact/hooks";

const KEY = "tradewind-party";

function stored(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

let mine = stored();
const listeners = new Set<() => void>();

/** Remembers a party; none for an empty id. */
export function remember(party: string): void {
  mine = party;
  try {
    if (party) localStorage.setItem(KEY, party);
    else localStorage.removeItem(KEY);
  } catch {
    // Without storage it lasts as long as the page.
  }
  listeners.forEach((listener) => listener());
}

/** The remembered party; empty without one. */
export function useMine(): string {
  const [party, setParty] = useState(mine);
  useEffect(() => {
    const changed = () => setParty(mine);
    changed();
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return party;
}
