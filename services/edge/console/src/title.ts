// The title of the page: what the view shows, the name of the view, and the block as of which it reads.
import { useEffect } from "preact/hooks";

let view = "";
/** What is shown, with the view that named it. */
let subject = { name: "" };

function show(): void {
  document.title = [subject.name, view, "Tradewind"].filter((part) => part !== "").join(" · ");
}

/** Names the view. */
export function nameView(name: string): void {
  view = name;
  show();
}

/** Names what the view shows, as long as it is shown, so that tabs of one view differ. */
export function useSubject(name: string): void {
  useEffect(() => {
    const own = { name };
    subject = own;
    show();
    return () => {
      // The next view may have named its subject already.
      if (subject !== own) return;
      subject = { name: "" };
      show();
    };
  }, [name]);
}
