// Figures as people read them, or raw as the API has them. What is copied is raw either way.
import { useEffect, useState } from "preact/hooks";

const KEPT = "tradewind-figures";

/** What has a raw value behind the text that is shown; the value is in `data-value`. */
const EXACT = "[data-exact]";

function kept(): boolean {
  try {
    return localStorage.getItem(KEPT) === "raw";
  } catch {
    return false;
  }
}

let isRaw = kept();
const listeners = new Set<() => void>();

/** Shows figures raw or scaled, and remembers it where that is allowed. */
export function showRaw(raw: boolean): void {
  isRaw = raw;
  try {
    if (raw) localStorage.setItem(KEPT, "raw");
    else localStorage.removeItem(KEPT);
  } catch {
    // It lasts as long as the page.
  }
  listeners.forEach((tell) => tell());
}

/** Whether figures are shown raw. */
export function useRaw(): boolean {
  const [raw, setRaw] = useState(isRaw);
  useEffect(() => {
    const changed = () => setRaw(isRaw);
    changed();
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return raw;
}

/** The text of a range with raw values in it; nothing when it has none. */
function rawText(range: Range): string | undefined {
  const { commonAncestorContainer: around } = range;
  const inside = (around instanceof Element ? around : around.parentElement)?.closest<HTMLElement>(EXACT);
  if (inside) return inside.dataset.value;
  const place = document.createElement("div");
  place.append(range.cloneContents());
  const exact = place.querySelectorAll<HTMLElement>(EXACT);
  if (exact.length === 0) return undefined;
  for (const element of exact) element.textContent = element.dataset.value ?? "";
  // A unit is that of the scaled figure.
  for (const unit of place.querySelectorAll(".unit, th bdi")) unit.remove();
  // Outside of their paragraph, its parts are not apart.
  for (const part of place.querySelectorAll("span:is([data-best], [data-name])")) part.before(" ");
  // Only what is laid out has its cells and lines apart.
  place.className = "unseen";
  document.body.append(place);
  const text = place.innerText;
  place.remove();
  return text;
}

/** Names and scaled figures are for the eye: whoever copies them gets ids and raw figures. */
export function copyRaw(): void {
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || !event.clipboardData) return;
    if (event.target instanceof Element && event.target.matches("input, textarea")) return;
    const ranges = Array.from({ length: selection.rangeCount }, (_, row) => selection.getRangeAt(row));
    const texts = ranges.map((range) => rawText(range));
    if (texts.every((text) => text === undefined)) return;
    event.clipboardData.setData("text/plain", texts.map((text, row) => text ?? ranges[row]!.toString()).join("\n"));
    event.preventDefault();
  });
}
