// Delays newer rows while text of the list is selected or a row is open.
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

function isInUse(place: HTMLElement | null): boolean {
  if (!place) return false;
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.rangeCount > 0 && selection.getRangeAt(0).intersectsNode(place);
  return isSelected || place.querySelector("details[open]") !== null;
}

/** Of the states of one thing, which `key` names, the one to show: the newest, or that which is in use at this place. */
export function useStill<T>(newest: T | undefined, key: string, place: RefObject<HTMLElement | null>): [shown: T | undefined, isWaiting: boolean] {
  const [, setTurn] = useState(0);
  const shown = useRef<{ key: string; value: T | undefined }>({ key, value: newest });
  const isOther = shown.current.key !== key || shown.current.value === undefined;
  if (isOther || !isInUse(place.current)) shown.current = { key, value: newest };
  const isWaiting = shown.current.value !== newest;
  useEffect(() => {
    if (!isWaiting) return undefined;
    const look = () => !isInUse(place.current) && setTurn((turn) => turn + 1);
    document.addEventListener("selectionchange", look);
    // It does not bubble.
    document.addEventListener("toggle", look, true);
    return () => {
      document.removeEventListener("selectionchange", look);
      document.removeEventListener("toggle", look, true);
    };
  }, [isWaiting]);
  return [shown.current.value, isWaiting];
}
