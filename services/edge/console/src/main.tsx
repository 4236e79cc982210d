// The console: a frame around the views, and which view is shown.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { readBlockOf, useRead, type Block, type Schemas } from "./api";
import { blockPath } from "./blocks";
import { counted, grouped } from "./format";
import { higher, lag, missing, useLive } from "./live";
import { NO_KEY } from "./key";
import { copyRaw, showRaw, useRaw } from "./raw";
import { useMine } from "./mine";
import { Card, Empty, KeyForm, Notice } from "./parts";
import { Past } from "./past";
import { addressBlock, link, partyLink, readBlock, useRoute } from "./route";
import { choose, useTheme, type Theme } from "./theme";
import { nameView } from "./title";
import { HEAD, HEAD_MS, useCondition, useWatch } from "./watch";
import { Explore } from "./views/explore";
import { Export } from "./views/export";
import { Markets } from "./views/markets";
import { PartyPage } from "./views/party";
import { Status } from "./views/status";
import { Submit } from "./views/submit";

const VIEWS = [
  ["markets", "Markets", Markets],
  ["explore", "Explore", Explore],
  ["export", "Export", Export],
  ["submit", "Submit", Submit],
  ["status", "Status", Status],
] as const;

const THEMES: Record<Theme, [next: Theme, name: string, sign: string]> = {
  system: ["light", "as the system", "◐"],
  light: ["dark", "light", "☀"],
  dark: ["system", "dark", "☾"],
};

/** Views without a link of their own in the navigation. */
const OTHERS = [
  ["party", "Party", PartyPage],
  ["now", "Status", Status],
] as const;

const ABSENT = ["", "Page not found", NotFound] as const;

function NotFound() {
  return (
    <Empty>
      Page not found. <a href={link("markets")}>Show all markets</a>
    </Empty>
  );
}

/** What is unavailable without a service. */
const WITHOUT: Record<string, string> = {
  query: "Markets, accounts and the other lists are",
  "node-info": "The network's height, limits and upgrade status are",
  export: "Downloads are",
  "tx-relay": "Submitting is",
};

function Frame() {
  const route = useRoute();
  const live = useLive();
  const isRaw = useRaw();
  const [, current, View] = [...VIEWS, ...OTHERS].find(([name]) => name === route.path[0]) ?? ABSENT;
  const mine = useMine();
  const height = readBlock();
  const block = useRead<Block>(addressBlock() ? blockPath(addressBlock()) : undefined, readBlockOf);
  const head = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS);
  const refused = head.problem?.number === NO_KEY ? head.problem : undefined;
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    nameView(`${current}${height && ` at block ${height}`}`);
    // A screen reader announces the new view; the first one is announced by the browser.
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [current, height, route.path[0] === "explore" ? "" : route.path[1]]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class={height ? "top in-past" : "top"}>
        <a class="brand" href={link("markets")}>
          <span class="mark" aria-hidden="true" />
          Tradewind
        </a>
        <nav aria-label="Views">
          {VIEWS.map(([name, title]) => (
            <a key={name} href={link(name)} aria-current={title === current ? "page" : undefined}>
              {title}
            </a>
          ))}
          {mine && (
            <a href={partyLink(mine)} aria-current={route.path[1] === mine ? "page" : undefined}>
              My party
            </a>
          )}
        </nav>
        {!height && <Pulse />}
        <Raw />
        <Themes />
        <Past of={block} />
      </header>
      <Missing />
      <main id="main" ref={main} tabIndex={-1}>
        <h1 class="unseen">{current}</h1>
        {refused ? (
          <Card title="Key">
            <Notice problem={refused} />
            <KeyForm />
          </Card>
        ) : height && !block.data ? (
          block.problem ? (
            <Notice problem={block.problem} />
          ) : (
            <Empty>Loading…</Empty>
          )
        ) : (
          <View key={height} route={route} live={height ? { ...live, past: block.data?.time } : live} />
        )}
      </main>
      <footer class="bottom">
        <a href="guide/">Guide</a>
        <a href="docs">API</a>
        <a href="openapi.json?pretty">openapi.json</a>
        <a href="limits?pretty">Limits</a>
        <a href="console/licences.txt">Licences</a>
        <span class="dim">
          Times are UTC. {isRaw && "Raw values: figures are in the smallest unit."}
        </span>
      </footer>
    </>
  );
}

/** A lag that is said beside the height, blocks. */
const LATE = 10;

/** Height and lag at a glance, in every view, and whether what is shown is as new as it can be. */
function Pulse() {
  const { now, isReached } = useLive();
  const head = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS);
  const { state, said } = useCondition();
  // Otherwise it is that of a time that is over.
  const late = isReached && (state === "live" || state === "behind") ? lag(now) : null;
  const height = higher(head.data?.height, now?.nodeHeight ?? now?.store?.height);
  const stored =
    late === null
      ? "the lag of the store is unknown"
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
    <button type="button" class="raw" aria-pressed={isRaw} onClick={() => showRaw(!isRaw)} title="Raw values: figures as the API has them">
      Raw
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

/** What is unavailable at present, and why. */
function Missing() {
  const { now, isReached } = useLive();
  const { state } = useCondition();
  const absent = missing(now);
  let said: string[] = [];
  // While all connections are busy the state of the mesh may be late, and the stream still has each block.
  if (!isReached && state !== "live") said = ["The gateway does not answer. Retrying."];
  else if (now && !now.isBusThere) said = ["The gateway has lost the message bus. Only cached answers are available."];
  else {
    said = absent.map((name) => `${WITHOUT[name] ?? "Some answers are"} unavailable: the service ${name} does not run.`);
    if (now?.store && !now.store.isThere) said.push("The database is unavailable. Lists show the last answers.");
    // The service node-info announces its height.
    else if (now?.store && absent.length === 0 && now.nodeHeight === undefined)
      said.push("The consensus node is unreachable. There are no new blocks, and submitting is unavailable.");
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
