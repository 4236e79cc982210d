// Dark, light, or as the system has it. Charts are redrawn when it changes.
import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";

const KEPT = "tradewind-theme";
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme {
  try {
    const theme = localStorage.getItem(KEPT);
    return theme === "light" || theme === "dark" ? theme : "system";
  } catch {
    return "system";
  }
}

function put(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

let current = kept();
put(current);
const listeners = new Set<() => void>();
prefersDark.addEventListener("change", () => listeners.forEach((tell) => tell()));

/** Takes a theme, and remembers it where that is allowed. */
export function choose(theme: Theme): void {
  current = theme;
  put(theme);
  try {
    if (theme === "system") localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, theme);
  } catch {
    // It lasts as long as the page.
  }
  listeners.forEach((tell) => tell());
}

/** The theme chosen, and a number that changes whenever colours may have. */
export function useTheme(): [theme: Theme, version: number] {
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const changed = () => setVersion((version) => version + 1);
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return [current, version];
}

/** A colour of the style sheet as a canvas takes it. */
export function ink(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
