// Submit: a transaction that was signed elsewhere is looked at, checked by the node, sent, and followed into a block.
import { useEffect, useState } from "preact/hooks";
import { address, gateway, post, Problem, type Schemas } from "../api";
import { grouped, quoted, short } from "../format";
import { Card, Choice, Copy, Empty, Facts, Foreign, Id, Lines, Notice } from "../parts";
import { go, link, useTyped, type Route } from "../route";
import { recognise, type Recognised } from "../transaction";
import { useWatch } from "../watch";

const TYPES = [
  ["TYPE_SYNC", "when checked"],
  ["TYPE_ASYNC", "at once"],
  ["TYPE_COMMIT", "in a block"],
] as const;

type Type = (typeof TYPES)[number][0];
type Outcome = Schemas["SubmitTransactionReply"];
type Verdict = Schemas["CheckTransactionReply"];

/** How often is asked for a transaction where it cannot be watched. */
const EVERY_MS = 1000;

const HASH = /^[0-9a-fA-F]{64}$/;

export function Submit(props: { route: Route }) {
  const hash = props.route.query.get("hash") ?? "";
  return (
    <div class="pair">
      <Sending />
      <Fate hash={hash} />
    </div>
  );
}

function Sending() {
  const [text, setText] = useState("");
  const [type, setType] = useState<Type>("TYPE_SYNC");
  const [isBusy, setBusy] = useState(false);
  const [verdict, setVerdict] = useState<Verdict>();
  const [outcome, setOutcome] = useState<Outcome>();
  const [problem, setProblem] = useState<Problem>();
  const found = recognise(text);
  const typed = (text: string) => {
    setText(text);
    setVerdict(undefined);
    setOutcome(undefined);
    setProblem(undefined);
  };
  const ask = async <T,>(path: string, body: object, take: (answer: T) => void) => {
    setBusy(true);
    setProblem(undefined);
    try {
      take(await post<T>(path, JSON.stringify(body)));
    } catch (error) {
      if (error instanceof Problem) setProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const raw = found.kind === "encoded" ? "/raw" : "";
  const check = () => ask<Verdict>(`transaction${raw}/check`, { tx: found.tx }, setVerdict);
  const submit = () =>
    ask<Outcome>(`transaction${raw}`, { tx: found.tx, type }, (outcome) => {
      setOutcome(outcome);
      if (outcome.txHash) go("submit", { hash: outcome.txHash });
    });
  const isGood = found.kind !== "nothing" && found.wrong.length === 0;
  return (
    <Card title="A transaction">
      <div class="field wide">
        <label for="transaction">Signed transaction</label>
        <textarea
          id="transaction"
          rows={9}
          spellcheck={false}
          value={text}
          aria-describedby="transaction-told"
          placeholder='What `mesh tx sign` printed: {"tx":{…}} — or the encoded bytes as base64 or hex'
          onInput={(event) => typed(event.currentTarget.value)}
        />
        <small id="transaction-told" class="dim">
          Nothing is signed here: keys stay where they are.
        </small>
      </div>
      {text.trim() !== "" && <Found found={found} />}
      <div class="buttons">
        <button type="button" disabled={!isGood || isBusy} onClick={check}>
          Check
        </button>
        <button type="button" class="primary" disabled={!isGood || isBusy} onClick={submit}>
          {isBusy ? "Asking…" : "Submit"}
        </button>
        <span class="answer">
          <span class="dim">and answer</span>
          <Choice label="Answer when" of={TYPES} value={type} onChoose={setType} />
        </span>
      </div>
      <div role="status">
        {verdict && (
          <p class={verdict.success ? "good-news" : "bad-news"} data-check={verdict.code}>
            {verdict.success ? "The node would take it." : `The node would refuse it (code ${verdict.code}): `}
            {!verdict.success && <Foreign text={verdict.data || verdict.log || "without a reason"} />}
          </p>
        )}
        {outcome && (
          <p class={outcome.success ? "good-news" : "bad-news"} data-submit={outcome.code}>
            {outcome.success ? "The node has taken it." : `The node refused it (code ${outcome.code}): `}
            {!outcome.success && <Foreign text={outcome.data || outcome.log || "without a reason"} />}
          </p>
        )}
      </div>
      {problem && (
        <div class="notice" role="alert">
          <strong>{problem.message}</strong>
          {problem.inner && <span class="hostile">{problem.inner}</span>}
          <span class="dim">
            {problem.isPassing
              ? "Its fate may be unknown. Submitting the same again is safe: it gets the same fate."
              : `HTTP ${problem.status}, reason ${problem.number}.`}
          </span>
        </div>
      )}
      <Lines
        of={[
          { name: "mesh", text: `mesh tx sign --key my.key --input command.bin --url ${quoted(gateway())} > tx.json` },
          { name: "mesh", text: `mesh tx submit --wait tx.json --url ${quoted(gateway())}` },
          {
            name: "curl",
            text: `curl -H 'content-type: application/json' -d @tx.json ${quoted(address(`transaction${raw}`))}`,
          },
        ]}
      />
    </Card>
  );
}

/** What was pasted, as it was understood. */
function Found(props: { found: Recognised }) {
  const { found } = props;
  if (found.kind === "nothing") {
    return (
      <p class="wrong" data-recognised="nothing">
        {found.wrong[0]}
      </p>
    );
  }
  if (found.kind === "encoded") {
    return (
      <p class="dim" data-recognised="encoded">
        An encoded transaction of {grouped(String(found.length))} bytes.
      </p>
    );
  }
  const { tx } = found;
  return (
    <div data-recognised="transaction">
      <Facts
        of={[
          ["From", <Id id={found.from} />],
          ["Version", <Foreign text={String(tx.version ?? "")} />],
          ["Command", <Foreign text={found.command} />],
          ["Proof of work", tx.pow ? <Foreign text={short(String(tx.pow.tid ?? ""))} /> : <span class="dim">none</span>],
        ]}
      />
      {found.wrong.map((line) => (
        <p class="wrong" key={line}>
          {line}
        </p>
      ))}
    </div>
  );
}

type Told = Schemas["GetTransactionReply"];

/** What became of a transaction, by its hash. */
function Fate(props: { hash: string }) {
  const { hash } = props;
  const [typed, setTyped] = useTyped(hash, hash);
  const isHash = HASH.test(hash);
  const [over, setOver] = useState<{ hash: string; told: Told }>();
  const relative = `transaction/${hash}`;
  const isOver = over?.hash === hash;
  const watched = useWatch<Told>(isHash && !isOver ? relative : undefined, EVERY_MS);
  // What is in a block stays there: it is watched no more.
  const data = isOver ? over.told : watched.data;
  const { problem } = watched;
  useEffect(() => {
    if (data && (data.status === "INCLUDED" || data.status === "REFUSED")) setOver({ hash, told: data });
  }, [data?.status]);
  const wrong = typed !== "" && !HASH.test(typed);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong) go("submit", { hash: typed });
  };
  return (
    <Card title="Its fate">
      <form class="filters" onSubmit={submit} role="search" aria-label="Find a transaction">
        <div class="field wide">
          <label for="hash">Hash</label>
          <input
            id="hash"
            value={typed}
            spellcheck={false}
            autocomplete="off"
            aria-invalid={wrong ? true : undefined}
            onInput={(event) => setTyped(event.currentTarget.value.trim())}
          />
          {wrong && <small class="wrong">expected: 64 hex digits</small>}
        </div>
        <button type="submit">Follow</button>
      </form>
      {!isHash && <Empty>A transaction that is submitted here is followed into its block.</Empty>}
      {problem && !data && <Notice problem={problem} />}
      {isHash && data && <Steps told={data} />}
      {isHash && (
        <>
          <Lines
            of={[
              { name: "mesh", text: `mesh tx status ${hash} --url ${quoted(gateway())}` },
              { name: "curl", text: `curl ${quoted(address(relative))}` },
            ]}
          />
          <p class="dim">
            <a href={link("submit", { hash })}>Link to this view</a>{" "}
            <Copy text={address(link("submit", { hash }))} label="the link to this view" />
          </p>
        </>
      )}
    </Card>
  );
}

const STEPS: Record<Told["status"], [stage: number, said: string]> = {
  UNKNOWN: [0, "No node that was asked knows it. If it was just sent, it may still come."],
  PENDING: [1, "The node has taken it; it waits for a block."],
  INCLUDED: [2, "It is in a block."],
  REFUSED: [1, "The node refused it."],
};

function Steps(props: { told: Told }) {
  const { told } = props;
  const [stage, said] = STEPS[told.status] ?? STEPS.UNKNOWN;
  const isRefused = told.status === "REFUSED";
  const isFailed = told.status === "INCLUDED" && told.code !== 0;
  const names = ["Sent", isRefused ? "Refused" : "Taken", told.height === "0" ? "In a block" : `In block ${grouped(told.height)}`];
  return (
    <div data-fate={told.status} data-block={told.height} role="status">
      <ol class="steps-line">
        {names.map((name, row) => (
          <li
            key={row}
            class={row < stage || (row === stage && told.status !== "UNKNOWN") ? (isRefused && row === stage ? "refused" : "reached") : ""}
          >
            {name}
          </li>
        ))}
      </ol>
      <p class={isRefused || isFailed ? "bad-news" : told.status === "INCLUDED" ? "good-news" : "dim"}>
        {isFailed ? `It is in a block, where it failed (code ${told.code}).` : said}
        {isRefused && ` Code ${told.code}.`}
      </p>
      {told.log && <Foreign text={told.log} />}
    </div>
  );
}
