// The console: a frame around the views, and which view is shown.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Schemas } from "./api";
import { counted, grouped } from "./format";
import { higher, lag, missing, useLive } from "./live";
import { copyRaw, showRaw, useRaw } from "./raw";
import { link, useRoute } from "./route";
import { choose, useTheme, type Theme } from "./theme";
import { HEAD, HEAD_MS, useCondition, useWatch } from "./watch";
import { Explore } from "./views/explore";
import { Export } from "./views/export";
import { Markets } from "./views/markets";
import { Now } from "./views/now";
import { Submit } from "./views/submit";

const VIEWS = [
  ["now", "Now", Now],
  ["markets", "Markets", Markets],
  ["explore", "Explore", Explore],
  ["export", "Export", Export],
  ["submit", "Submit", Submit],
] as const;

const THEMES: Record<Theme, [next: Theme, name: string, sign: string]> = {
  system: ["light", "as the system", "◐"],
  light: ["dark", "light", "☀"],
  dark: ["system", "dark", "☾"],
};

/** What a service is for, in the words of somebody who misses it. */
const WITHOUT: Record<string, string> = {
  query: "markets, accounts and the other lists",
  "node-info": "height, node and upgrade status",
  export: "downloads",
  "tx-relay": "submitting",
};

function Frame() {
  const route = useRoute();
  const live = useLive();
  const isRaw = useRaw();
  const [view, title, View] = VIEWS.find(([name]) => name === route.path[0]) ?? VIEWS[0];
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · Tradewind`;
    // Whoever reads with a screen reader hears where they are now; the first view needs no announcement.
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [view]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={link("now")}>
          <span class="mark" aria-hidden="true" />
          Tradewind
        </a>
        <nav aria-label="Views">
          {VIEWS.map(([name, title]) => (
            <a key={name} href={link(name)} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <Pulse />
        <Raw />
        <Themes />
      </header>
      <Missing />
      <main id="main" ref={main} tabIndex={-1}>
        <h1 class="unseen">{title}</h1>
        <View route={route} live={live} />
      </main>
      <footer class="bottom">
        <a href="docs">API</a>
        <a href="openapi.json?pretty">openapi.json</a>
        <a href="limits?pretty">Limits</a>
        <a href="console/licences.txt">Licences</a>
        <span class="dim">
          Times are UTC, {isRaw ? "figures raw: in the smallest unit." : "figures scaled where it is known how."}
        </span>
      </footer>
    </>
  );
}

/** A lag that is said beside the height, blocks. */
const LATE = 10;

/** Height and lag at a glance, in every view, and whether what is shown is as new as it can be. */
function Pulse() {
  const { now } = useLive();
  const head = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS);
  const { state, said } = useCondition();
  const late = lag(now);
  const height = higher(head.data?.height, now?.nodeHeight ?? now?.store?.height);
  const stored =
    late === null
      ? "how far the store is behind is not known"
      : late === 0
        ? "the store is at the newest block"
        : `the store is ${counted(late, "block")} behind`;
  return (
    <span class="pulse" title={`${said}; ${stored}`} data-live={state}>
      <span class={`dot ${state}`} aria-hidden="true" />
      {(state === "behind" || state === "lost") && (
        <span class="state" aria-hidden="true">
          {state}
        </span>
      )}
      <span class="unseen" role="status">
        {said}
      </span>
      <span class="unseen">{stored}, block</span>
      <span class="number" data-pulse>
        {height === undefined ? "–" : grouped(height)}
      </span>
      {late !== null && late > LATE && (
        <span class="late number" aria-hidden="true">
          −{grouped(String(late))}
        </span>
      )}
    </span>
  );
}

/** Figures as people read them, or as the API has them. */
function Raw() {
  const isRaw = useRaw();
  return (
    <button type="button" class="raw" aria-pressed={isRaw} onClick={() => showRaw(!isRaw)} title="Figures as the API has them">
      raw
    </button>
  );
}

function Themes() {
  const [theme] = useTheme();
  const [next, name, sign] = THEMES[theme];
  return (
    <button
      type="button"
      class="themes"
      onClick={() => choose(next)}
      aria-label={`Colours: ${name}. Change.`}
      title={`Colours: ${name}`}
    >
      <span aria-hidden="true">{sign}</span>
    </button>
  );
}

/** What cannot be shown right now, and why. */
function Missing() {
  const { now, isReached } = useLive();
  const absent = missing(now);
  let said: string[] = [];
  if (!isReached) said = ["The gateway does not answer. Trying again."];
  else if (now && !now.isBusThere) said = ["The gateway has lost the message bus: only what it knows by itself is here."];
  else {
    said = absent.map((name) => `${name} is missing: no ${WITHOUT[name] ?? "answers of it"}.`);
    if (now?.store && !now.store.isThere) said.push("The database is away: lists show what was last known.");
  }
  return (
    <div class="missing" role="status">
      {said.length > 0 && (
        <div>
          {said.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      )}
    </div>
  );
}

copyRaw();
const page = document.getElementById("page");
if (page) render(<Frame />, page);
