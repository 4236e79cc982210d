// Submit: shows a signed transaction, checks it by a dry run of the node, submits it, and follows it into a block.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, gateway, post, Problem, type Schemas } from "../api";
import { grouped, quoted, short } from "../format";
import { Party } from "../named";
import { Card, Choice, Empty, Facts, Foreign, Lines, Notice, ViewLink } from "../parts";
import { isDemo, signedFaucet } from "../demo";
import { go, link, useTyped, type Route } from "../route";
import { recognise, type Recognised } from "../transaction";
import { HEAD, HEAD_MS, useWatch } from "../watch";

const TYPES = [
  ["TYPE_SYNC", "Check"],
  ["TYPE_ASYNC", "Nothing"],
  ["TYPE_COMMIT", "Block"],
] as const;

type Type = (typeof TYPES)[number][0];
type Outcome = Schemas["SubmitTransactionReply"];
type Verdict = Schemas["CheckTransactionReply"];

/** Poll interval of a transaction that cannot be watched. */
const EVERY_MS = 1000;

const HASH = /^[0-9a-fA-F]{64}$/;

export function Submit(props: { route: Route }) {
  const hash = props.route.query.get("hash") ?? "";
  return (
    <div class="pair">
      <Sending />
      <Status hash={hash} />
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
  const chain = useWatch<Schemas["LastBlockHeightReply"]>(HEAD, HEAD_MS).data?.chainId;
  const found = recognise(text);
  const typed = (text: string) => {
    setText(text);
    setVerdict(undefined);
    setOutcome(undefined);
    setProblem(undefined);
  };
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await work();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(-1, 0, error instanceof Error ? error.message : String(error), "", ""));
    } finally {
      setBusy(false);
    }
  };
  const ask = <T,>(path: string, body: object, take: (answer: T) => void) =>
    run(async () => take(await post<T>(path, JSON.stringify(body))));
  const raw = found.kind === "encoded" ? "/raw" : "";
  const check = () => ask<Verdict>(`transaction${raw}/check`, { tx: found.tx }, setVerdict);
  const submitted = (outcome: Outcome) => {
    setOutcome(outcome);
    if (outcome.txHash && !isGone.current) go("submit", { hash: outcome.txHash });
  };
  const submit = () => ask<Outcome>(`transaction${raw}`, { tx: found.tx, type }, submitted);
  const tryDemo = () =>
    run(async () => {
      const body = await signedFaucet();
      typed(body);
      submitted(await post<Outcome>("transaction", body));
    });
  const isGood = found.kind !== "nothing" && found.wrong.length === 0;
  return (
    <Card title="Submit a transaction">
      <div class="field wide">
        <label for="transaction">Signed transaction</label>
        <textarea
          id="transaction"
          rows={9}
          spellcheck={false}
          readOnly={isBusy}
          value={text}
          aria-describedby="transaction-hint"
          placeholder='The output of `mesh tx sign`, {"tx":{…}}, or the encoded bytes as base64 or hex'
          onInput={(event) => typed(event.currentTarget.value)}
        />
        <small id="transaction-hint" class="dim">
          Sign on your own machine. The <a href="guide/">guide</a> has the format; this page needs no key.
        </small>
      </div>
      {text.trim() !== "" && <Found found={found} />}
      <div class="buttons">
        <button type="button" disabled={!isGood || isBusy} onClick={check}>
          Dry run
        </button>
        <button type="button" class="primary" disabled={!isGood || isBusy} onClick={submit}>
          {isBusy ? "Submitting…" : "Submit"}
        </button>
        <span class="answer">
          <span class="dim">Wait for</span>
          <Choice label="Wait for" of={TYPES} value={type} onChoose={setType} />
        </span>
      </div>
      {isDemo(chain) && (
        <div class="buttons">
          <button type="button" disabled={isBusy} onClick={tryDemo}>
            Try with a demo key
          </button>
          <span class="dim">Signs a command of this demo network with a new key: a credit of 1000 VOTE.</span>
        </div>
      )}
      <div role="status">
        {verdict && (
          <p class={verdict.success ? "good-news" : "bad-news"} data-check={verdict.code}>
            {verdict.success ? "Accepted by dry run." : `Rejected by dry run (code ${verdict.code}): `}
            {!verdict.success && <Foreign text={verdict.data || verdict.log || "no reason given"} />}
          </p>
        )}
        {outcome && (
          <p class={outcome.success ? "good-news" : "bad-news"} data-submit={outcome.code}>
            {outcome.success ? "Accepted by the node." : `Rejected by the node (code ${outcome.code}): `}
            {!outcome.success && <Foreign text={outcome.data || outcome.log || "no reason given"} />}
          </p>
        )}
      </div>
      {problem && (
        <div class="notice" role="alert">
          <strong>{problem.message}</strong>
          {problem.inner && <span class="hostile">{problem.inner}</span>}
          <span class="dim">
            {problem.isPassing
              ? "The outcome is unknown. Submitting the same transaction again is safe: it is included at most once."
              : problem.status > 0 && `HTTP ${problem.status}, number ${problem.number}.`}
          </span>
        </div>
      )}
      <p class="dim">
        Or from a terminal, with your encoded command in <code>command.bin</code>:
      </p>
      <Lines
        of={[
          { name: "mesh", text: "mesh tx keygen my.key" },
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

/** The pasted text as it was recognised. */
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
          ["From", <Party id={found.from.toLowerCase()} />],
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

type Known = Schemas["GetTransactionReply"];

/** The status of a transaction, by its hash. */
function Status(props: { hash: string }) {
  const { hash } = props;
  const [typed, setTyped] = useTyped(hash, hash);
  const isHash = HASH.test(hash);
  const [over, setOver] = useState<{ hash: string; known: Known }>();
  const relative = `transaction/${hash}`;
  const isOver = over?.hash === hash;
  const watched = useWatch<Known>(isHash && !isOver ? relative : undefined, EVERY_MS);
  // What is in a block stays there: it is watched no more. What was refused may be submitted again.
  const data = isOver ? over.known : watched.data;
  const { problem } = watched;
  useEffect(() => {
    if (data?.status === "INCLUDED") setOver({ hash, known: data });
  }, [data?.status]);
  const wrong = typed !== "" && !HASH.test(typed);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!wrong) go("submit", { hash: typed });
  };
  return (
    <Card title="Transaction status">
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
      {!isHash && <Empty>Submit a transaction, or give the hash of one. It is followed into its block.</Empty>}
      {problem && !data && <Notice problem={problem} />}
      {isHash && data && <Steps known={data} />}
      {isHash && (
        <>
          <Lines
            of={[
              { name: "mesh", text: `mesh tx status ${hash} --url ${quoted(gateway())}` },
              { name: "curl", text: `curl ${quoted(address(relative))}` },
            ]}
          />
          <ViewLink to={link("submit", { hash })} />
        </>
      )}
    </Card>
  );
}

const STEPS: Record<Known["status"], [stage: number, said: string]> = {
  UNKNOWN: [0, "Not known yet. A transaction that was just sent may still appear."],
  PENDING: [1, "Accepted by the node; waiting for a block."],
  INCLUDED: [2, "Included in a block."],
  REFUSED: [1, "Rejected by the node."],
};

function Steps(props: { known: Known }) {
  const { known } = props;
  const [stage, said] = STEPS[known.status] ?? STEPS.UNKNOWN;
  const isRefused = known.status === "REFUSED";
  const isFailed = known.status === "INCLUDED" && known.code !== 0;
  const names = ["Sent", isRefused ? "Rejected" : "Accepted", known.height === "0" ? "In a block" : `In block ${grouped(known.height)}`];
  return (
    <div data-outcome={known.status} data-block={known.height} role="status">
      <ol class="steps-line">
        {names.map((name, row) => (
          <li
            key={row}
            class={row < stage || (row === stage && known.status !== "UNKNOWN") ? (isRefused && row === stage ? "refused" : "reached") : ""}
          >
            {name}
          </li>
        ))}
      </ol>
      <p class={isRefused || isFailed ? "bad-news" : known.status === "INCLUDED" ? "good-news" : "dim"}>
        {isFailed ? `Included in a block, but the command failed (code ${known.code}).` : said}
        {isRefused && ` Code ${known.code}.`}
      </p>
      {known.log && <Foreign text={known.log} />}
    </div>
  );
}
