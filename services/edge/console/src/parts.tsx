// What the views are put together from.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, type Problem } from "./api";
import { clock, grouped, isOfThisYear, local, nanoseconds, quoted, scaled, seconds, short, time, TIMES } from "./format";
import { changeKey, hasKey, withKey } from "./key";
import { useRaw } from "./raw";
import { readBlock } from "./route";

/** A part of a view under a heading of its own; `heading` is shown instead of the title where it is more than a text. */
export function Card(props: {
  title: string;
  heading?: ComponentChildren;
  id?: string;
  aside?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="card" id={props.id} aria-label={props.title}>
      <header class="card-head">
        <h2>{props.heading ?? props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
  );
}

/** Why something is not on the screen. */
export function Notice(props: { problem: Problem }) {
  const { problem } = props;
  return (
    <div class="notice" role="alert">
      <strong>{problem.message}</strong>
      {problem.inner && <span class="hostile">{problem.inner}</span>}
      <span class="dim">
        {problem.isPassing ? "Retrying." : problem.status > 0 && `HTTP ${problem.status}, number ${problem.number}.`}
        {problem.requestId && ` Request ${problem.requestId}.`}
      </span>
    </div>
  );
}

/** Stands for a figure that is not read yet. */
export const UNREAD = <span class="dim">…</span>;

/** Says while newer rows wait, in a word where there is less room. */
export function Paused(props: { isWaiting: boolean; isShort?: boolean }) {
  const { isWaiting, isShort } = props;
  const sentence = isWaiting ? "Updates are paused while text is selected or a row is open." : "";
  return (
    <span class="dim" role="status" data-waiting={isWaiting} title={isShort ? sentence : undefined}>
      {isShort && isWaiting && <span aria-hidden="true">Paused</span>}
      <span class={isShort ? "unseen" : undefined}>{sentence}</span>
    </span>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

/** A button that copies a text and says so. */
export function Copy(props: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => setSaid(""), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = async () => setSaid((await copied(props.text)) ? "Copied" : "Not allowed");
  return (
    <button type="button" class="copy" onClick={copy} aria-label={`Copy ${props.label}`} title={`Copy ${props.label}`}>
      {said || "Copy"}
      <span class="unseen" role="status">
        {said}
      </span>
    </button>
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS there is no clipboard but the old one.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

/** A long id: its ends, the whole of it on asking, and a link to what it is. */
export function Id(props: { id: string; href?: string }) {
  if (props.id === "") return <span class="dim">–</span>;
  const text = (
    <code class="id" title={props.id} data-value={props.id} data-exact>
      {short(props.id)}
    </code>
  );
  return props.href ? <a href={props.href}>{text}</a> : text;
}

/** How a figure is shown. */
export interface Scale {
  /** Decimal places that its digits have. */
  places: number;
  /** Decimals that are shown at least, and at most. */
  least?: number;
  most?: number;
  /** What it counts, and more of it on asking. */
  unit?: string;
  unitTitle?: string;
}

/** A number of the API, exact: scaled where it is known how, unless figures are shown raw. */
export function Figure(props: { value: string; scale?: Scale }) {
  const { value, scale } = props;
  const isRaw = useRaw();
  if (value === "") return <span class="dim">–</span>;
  const isScaled = scale !== undefined && !isRaw;
  const unit = isScaled && scale.unit;
  return (
    <span>
      <span class="number" title={isScaled ? `raw: ${value}` : undefined} data-value={value} data-exact>
        {isScaled ? scaled(value, scale.places, scale.least, scale.most) : grouped(value)}
      </span>
      {unit && " "}
      {unit && (
        <bdi class="unit" title={scale.unitTitle}>
          {unit}
        </bdi>
      )}
    </span>
  );
}

/** A time in UTC; the title has the nanoseconds. `isShort`: without the current year, of today the time of day alone. */
export function Time(props: { ns: string; isShort?: boolean }) {
  if (props.ns === "0") return <span class="dim">not set</span>;
  const shown = seconds(props.ns);
  const isThisYear = isOfThisYear(props.ns);
  const isToday = new Date().toISOString().startsWith(shown.slice(0, 10));
  return (
    <time class={isThisYear ? "number" : "number other-year"} title={`${time(props.ns)} UTC, ${props.ns} ns`} data-value={props.ns}>
      {props.isShort ? (
        isToday ? clock(props.ns) : shown.slice(isThisYear ? 5 : 0)
      ) : (
        <>
          <span class="year">{shown.slice(0, 5)}</span>
          {shown.slice(5)}
        </>
      )}
    </time>
  );
}

/** A longer text may scroll. */
const LONG = 120;

/** A text of anybody's: shown as it is, however long and in whatever direction. */
export function Foreign(props: { text: string }) {
  if (props.text === "") return <span class="dim">–</span>;
  // What scrolls must be reached by keys, too.
  const scrolls = props.text.length > LONG;
  return (
    <bdi class="hostile" data-value={props.text} tabIndex={scrolls ? 0 : undefined} role={scrolls ? "group" : undefined} aria-label={scrolls ? "A long text" : undefined}>
      {props.text}
    </bdi>
  );
}

/** Values under their names. `isWide`: they are long, such as hashes. */
export function Facts(props: { of: [name: string, value: ComponentChildren][]; isWide?: boolean }) {
  return (
    <dl class={props.isWide ? "facts wide" : "facts"}>
      {props.of.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Line {
  name: string;
  text: string;
}

/** A call over gRPC as a command line, as of the block that the page is put at where the method has a past. */
export function grpcLine(message: object, method: string, hasPast = true): Line {
  const { host, protocol } = new URL(document.baseURI);
  const plain = protocol === "https:" ? "" : "-plaintext ";
  return { name: "gRPC", text: `grpcurl ${plain}-d ${quoted(JSON.stringify({ ...message, atBlock: (hasPast && readBlock()) || undefined }))} ${host} ${method}` };
}

/** The same requests as command lines. */
export function Lines(props: { of: Line[] }) {
  return (
    <details class="lines" open>
      <summary>Command lines</summary>
      {props.of.map(({ name, text }) => ({ name, text: withKey(text) })).map((line) => (
        <div class="line" key={line.name}>
          <span class="line-name">{line.name}</span>
          <code tabIndex={0} role="group" aria-label={`${line.name} line`}>
            {line.text}
          </code>
          <Copy text={line.text} label={`the ${line.name} line`} />
        </div>
      ))}
      {hasKey && (
        <p class="dim">
          The lines take your key from the variable <code>MESH_API_KEY</code>.
        </p>
      )}
      {props.of.some(({ name }) => name === "mesh") && (
        <p class="dim">
          <code>mesh</code> is the command-line program of this project; the <a href="guide/">guide</a> says how to get it.
        </p>
      )}
    </details>
  );
}

/** A link to this view, and a button that copies it. */
export function ViewLink(props: { to: string }) {
  return (
    <p class="dim">
      <a href={props.to}>Link to this view</a> <Copy text={address(props.to)} label="the link to this view" />
    </p>
  );
}

/** One of several, as buttons side by side. */
export function Choice<T extends string>(props: {
  label: string;
  of: readonly (readonly [value: T, name: string])[];
  value: T;
  onChoose: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.of.map(([value, name]) => (
        <button
          type="button"
          key={value}
          aria-pressed={value === props.value}
          onClick={() => props.onChoose(value)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** A text field with its name; what is wrong with it is said below. `list` are the options to choose from. */
export function Field(props: {
  label: string;
  value: string;
  onInput: (value: string) => void;
  hint?: string;
  wrong?: string;
  wide?: boolean;
  type?: "text" | "datetime-local";
  list?: ComponentChildren;
}) {
  const id = useRef(`field-${Math.random().toString(36).slice(2)}`).current;
  const note = props.wrong || props.hint;
  return (
    <div class={props.wide ? "field wide" : "field"}>
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type={props.type ?? "text"}
        {...(props.type === "datetime-local" ? { step: 1, min: TIMES[0], max: TIMES[1] } : {})}
        value={props.value}
        list={props.list ? `${id}-list` : undefined}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={props.wrong ? true : undefined}
        aria-describedby={note ? `${id}-note` : undefined}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      {props.list && <datalist id={`${id}-list`}>{props.list}</datalist>}
      {note && (
        <small id={`${id}-note`} class={props.wrong ? "wrong" : "dim"}>
          {note}
        </small>
      )}
    </div>
  );
}

/** A field for a time in UTC. `value`: nanoseconds since the Unix epoch, or what is typed. */
export function TimeField(props: { label: string; value: string; wrong?: string; onInput: (value: string) => void }) {
  const { label, value, onInput } = props;
  const isTime = nanoseconds(value) !== undefined;
  // A browser complains about other forms, and shows a year of five digits while it is typed.
  const shown = /^\d{4,6}-\d\d-\d\dT[\d:.]+$/.test(value) ? value : local(value);
  const wrong = isTime ? props.wrong : `expected: a time from ${TIMES.join(" to ").replaceAll("T", " ")}`;
  return <Field label={label} type="datetime-local" value={shown} wrong={wrong} onInput={onInput} />;
}

/** Asks for the key of this client, or forgets it. */
export function KeyForm() {
  const input = useRef<HTMLInputElement>(null);
  const [isWrong, setWrong] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    const key = input.current?.value.trim() ?? "";
    // A browser sends nothing else in a header.
    setWrong(!/^[\x21-\x7e]*$/.test(key));
    if (/^[\x21-\x7e]+$/.test(key)) changeKey(key);
  };
  return (
    <form class="filters" onSubmit={submit} aria-label="Key">
      <div class="field wide">
        <label for="key">Key</label>
        <input id="key" ref={input} type="password" autocomplete="off" aria-describedby="key-note" aria-invalid={isWrong ? true : undefined} />
        <small id="key-note" class={isWrong ? "wrong" : "dim"}>
          {isWrong ? "expected: ASCII characters without spaces" : hasKey ? "This tab has a key." : "Kept until this tab is closed."}
        </small>
      </div>
      <button type="submit" class="primary">
        Use this key
      </button>
      {hasKey && (
        <button type="button" onClick={() => changeKey("")}>
          Forget the key
        </button>
      )}
    </form>
  );
}

/** One of a list. */
export function Select(props: {
  label: string;
  value: string;
  of: [value: string, name: string][];
  onChoose: (value: string) => void;
}) {
  const id = useRef(`select-${Math.random().toString(36).slice(2)}`).current;
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        {props.of.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

/** How far something is. */
export function Bar(props: { label: string; done: number; of: number | undefined }) {
  const share = props.of ? Math.min(100, (100 * props.done) / props.of) : undefined;
  return (
    <div
      class="bar"
      role="progressbar"
      aria-label={props.label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={share === undefined ? undefined : Math.floor(share)}
    >
      <div style={{ width: share === undefined ? "100%" : `${share}%` }} class={share === undefined ? "unknown" : ""} />
    </div>
  );
}
