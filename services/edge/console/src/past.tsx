// The page as of a block of the past: the control in the header, and the sign that what is shown is not new.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem, type Block, type Reading } from "./api";
import { findBlock } from "./blocks";
import { grouped, time } from "./format";
import { Field } from "./parts";
import { addressBlock, linkAt, open, readBlock } from "./route";

/** The button that opens the form, the form, and the sign. `of`: the block in the address. */
export function Past(props: { of: Reading<Block> }) {
  const [isOpen, setOpen] = useState(false);
  const height = addressBlock();
  return (
    <>
      <button
        type="button"
        class="past-button"
        aria-expanded={isOpen}
        aria-label="Past: choose a block"
        title="Show the page as of a block of the past"
        onClick={() => setOpen(!isOpen)}
      >
        Past
      </button>
      {height && (
        <p class="past" role="status" data-block={height}>
          <strong>{readBlock() ? "The past" : "This view has no past and shows now"}</strong>
          <span class="number">
            {!readBlock() && "Other views: "}block {grouped(height)}
            {props.of.data && `, ${time(String(props.of.data.time))} UTC`}
          </span>
          <a href={linkAt("")}>Back to now</a>
        </p>
      )}
      {isOpen && <Choose onDone={() => setOpen(false)} />}
    </>
  );
}

/** The form: a height or a time. */
function Choose(props: { onDone: () => void }) {
  const [typed, setTyped] = useState(addressBlock());
  const [wrong, setWrong] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const isGone = useRef(false);
  useEffect(() => {
    form.current?.querySelector("input")?.select();
    return () => void (isGone.current = true);
  }, []);
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = typed.trim();
    if (!text || isBusy) return;
    setBusy(true);
    try {
      const { height } = await findBlock(text);
      if (isGone.current) return;
      open(linkAt(String(height)));
      props.onDone();
    } catch (error) {
      const { message } = error as Error;
      setWrong(error instanceof Problem && error.inner ? `${message} (${error.inner})` : message);
      setBusy(false);
    }
  };
  const input = (text: string) => {
    setTyped(text);
    setWrong(undefined);
  };
  return (
    <form class="filters past-form" ref={form} onSubmit={submit} role="search" aria-label="Show the page as of a block">
      <Field label="Height or time, UTC" wide value={typed} hint="The newest block at or before a time, such as 2026-05-01 12:00" wrong={wrong} onInput={input} />
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Searching…" : "Show"}
      </button>
    </form>
  );
}
