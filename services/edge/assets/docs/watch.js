// "Watch" beside "Execute": the read that a visitor has filled in comes again each time its answer changes. One is
// watched at a time, since a browser has few connections for a host.

/** Events that are shown, and characters of each: an answer may have a thousand rows. */
const MAX_EVENTS = 20;
const MAX_CHARACTERS = 20_000;

/** A stream that was refused for something that passes is tried again. */
const RETRY_MS = 5000;

/** Most reads on one stream of `/watch`, whose events are named by their index. */
const MAX_READS = 16;
const INDEXES = Array.from({ length: MAX_READS }, (_, index) => `-${index}`);
const NAMES = ["answer", "problem"].flatMap((name) => ["", ...INDEXES].map((index) => name + index));

/** What is watched, or was the last. */
let watch;
const listeners = new Set();

function change(changed) {
  Object.assign(watch, changed);
  listeners.forEach((listener) => listener());
}

function stopWatch() {
  watch?.source?.close();
  clearTimeout(watch?.timer);
  if (watch) change({ state: "stopped", said: "Stopped", source: undefined });
}

function startWatch(path, url) {
  stopWatch();
  watch = { path, url, events: [], problems: new Map() };
  openStream();
}

function openStream() {
  const source = new EventSource(watch.url);
  change({ state: "connecting", said: "Connecting", source });
  NAMES.forEach((name) => source.addEventListener(name, takeEvent));
  source.onopen = () => change({ state: "live", said: "Live" });
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) void explainRefusal(watch);
    else change({ state: "lost", said: "Lost: the gateway does not answer, it is asked again" });
  };
}

function takeEvent({ type, lastEventId, data }) {
  const [name, index = ""] = type.split("-");
  if (name === "problem") watch.problems.set(index, reasonOf(JSON.parse(data)));
  else watch.problems.delete(index);
  const [reason] = watch.problems.values();
  const height = name === "answer" ? lastEventId : "";
  const event = { type, height, data, at: new Date(), key: (watch.events[0]?.key ?? 0) + 1 };
  const events = [event, ...watch.events].slice(0, MAX_EVENTS);
  change({ events, ...(reason ? { state: "behind", said: `Behind: ${reason}` } : { state: "live", said: "Live" }) });
}

function reasonOf(problem) {
  const [detail] = problem.details;
  return `${detail.message}${detail.inner && ` (${detail.inner})`}`;
}

/** A browser does not tell a script why a stream is refused: it is asked for once more, to read the error. */
async function explainRefusal(refused) {
  const { url } = refused;
  let said = "the gateway does not answer";
  let passes = true;
  try {
    const leave = new AbortController();
    const answer = await fetch(url, { headers: { Accept: "text/event-stream" }, signal: leave.signal });
    if (answer.ok) {
      leave.abort();
      said = "it is tried again";
    } else {
      said = reasonOf(await answer.json());
      passes = answer.status === 429 || answer.status >= 500;
    }
  } catch {
    // No answer, or none of the gateway's.
  }
  if (watch !== refused || !watch.source) return;
  change({ state: "lost", said: `Refused: ${said}` });
  if (passes) watch.timer = setTimeout(openStream, RETRY_MS);
  else change({ source: undefined });
}

function shownData(data) {
  const text = JSON.stringify(JSON.parse(data), null, 2);
  const left = text.length - MAX_CHARACTERS;
  return left > 0 ? `${text.slice(0, MAX_CHARACTERS)}\n… ${left} characters more` : text;
}

// A browser may keep a page that is left, with its connections.
addEventListener("pagehide", stopWatch);

/** The plugin of the viewer. */
function WatchPlugin({ React }) {
  const h = React.createElement;

  function useWatch(path) {
    const [, setTurn] = React.useState(0);
    React.useEffect(() => {
      const listener = () => setTurn((turn) => turn + 1);
      listeners.add(listener);
      return () => listeners.delete(listener);
    }, []);
    return watch?.path === path ? watch : undefined;
  }

  function WatchButton({ operation, path, method, specSelectors, specActions, fn }) {
    const isRunning = Boolean(useWatch(path)?.source);
    const start = () => {
      specActions.validateParams([path, method]);
      if (!specSelectors.validateBeforeExecute([path, method])) return;
      const { url } = fn.buildRequest({
        spec: specSelectors.specJsonWithResolvedSubtrees().toJS(),
        operationId: operation.get("operationId"),
        parameters: specSelectors.parameterValues([path, method]).toJS(),
        contextUrl: new URL(specSelectors.url(), document.baseURI).href,
      });
      startWatch(path, url);
    };
    const [onClick, label] = isRunning ? [stopWatch, "Stop watching"] : [start, "Watch"];
    return h("button", { type: "button", className: "btn watch-button", onClick }, label);
  }

  function WatchEvents({ path }) {
    const watch = useWatch(path);
    if (!watch) return null;
    const line = ({ key, type, height, at, data }, index) =>
      h("details", { key, open: index === 0 || undefined },
        h("summary", null, h("b", null, type), height && ` block ${height}`, ` ${at.toLocaleTimeString()}`),
        h("pre", null, shownData(data)));
    return h("section", { className: "watch", "aria-label": "Watch", "data-watch": watch.state },
      h("p", { role: "status" }, h("span", { className: `watch-dot ${watch.state}` }), watch.said),
      h("pre", { className: "watch-command" }, `curl -N -H 'Accept: text/event-stream' '${watch.url.replaceAll("'", "%27")}'`),
      watch.events.map(line));
  }

  return {
    wrapComponents: {
      execute: (Execute, system) => (props) => {
        const { operation } = props;
        // A request that is answered by a stream without end is never done executing.
        const isStream = operation.hasIn(["responses", "200", "content", "text/event-stream"]);
        const isWatchable = operation.get("x-watchable") || isStream;
        const button = isWatchable && h(WatchButton, { ...props, fn: system.fn });
        return h(React.Fragment, null, !isStream && h(Execute, props), button);
      },
      responses: (Responses) => (props) =>
        h(React.Fragment, null, props.method === "get" && h(WatchEvents, { path: props.path }), h(Responses, props)),
    },
  };
}
