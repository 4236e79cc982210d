// Signs a faucet command of a demo network with a new key, as the guide describes it: Ed25519 by the browser, SHA3-256
// for the digest and the proof of work.
import { sha3_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, concatBytes, randomBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { read, type Schemas } from "./api";
import { HEAD } from "./watch";

type Head = Schemas["LastBlockHeightReply"];

/** The asset that the faucet credits. */
const ASSET = "VOTE";

/** Zero bits of a proof of work that a browser finds in seconds. */
const MOST_BITS = 20;

/** Tries between two pauses, in which the page can react. */
const TRIES = 4096;

/** Whether a chain id is that of a demo network. */
export function isDemo(chainId: string | undefined): boolean {
  return chainId?.startsWith("demo-") ?? false;
}

/** A body that submits a signed faucet command. Rejects with an `Error` where the browser has no Ed25519. */
export async function signedFaucet(): Promise<string> {
  if (!isSecureContext) throw new Error("This browser signs only on pages that come over HTTPS or from this machine.");
  const head = await read<Head>(HEAD);
  const keys = await newKeys();
  const input = utf8ToBytes(JSON.stringify({ faucet: { asset: ASSET } }));
  const digest = sha3_256(concatBytes(utf8ToBytes(head.chainId), Uint8Array.of(0), input));
  const signature = await crypto.subtle.sign("Ed25519", keys.privateKey, Uint8Array.from(digest));
  const pubKey = await crypto.subtle.exportKey("raw", keys.publicKey);
  const tx = {
    inputData: btoa(String.fromCharCode(...input)),
    version: "TX_VERSION_V3",
    signature: { value: bytesToHex(new Uint8Array(signature)), algo: "ed25519", version: 1 },
    pubKey: bytesToHex(new Uint8Array(pubKey)),
    pow: await proofOfWork(head),
  };
  return JSON.stringify({ tx }, null, 2);
}

async function newKeys(): Promise<CryptoKeyPair> {
  try {
    return (await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
  } catch {
    throw new Error("This browser cannot sign with Ed25519; a newer version can.");
  }
}

/** A nonce whose hash over block, `tid` and nonce begins with enough zero bits. */
async function proofOfWork(head: Head): Promise<{ tid: string; nonce: string }> {
  const bits = head.spamPowDifficulty;
  if (bits > MOST_BITS) throw new Error(`The proof of work of this network, ${bits} bits, is too much for a browser.`);
  const tid = bytesToHex(randomBytes(32));
  const begun = sha3_256.create().update(utf8ToBytes(head.hash.toLowerCase() + tid));
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  for (let nonce = 0; ; nonce += 1) {
    view.setBigUint64(0, BigInt(nonce));
    const hash = begun.clone().update(bytes).digest();
    // The first 32 bits are more than `MOST_BITS`.
    if (new DataView(hash.buffer, hash.byteOffset).getUint32(0) >>> (32 - bits) === 0 || bits === 0) return { tid, nonce: nonce.toString() };
    if (nonce % TRIES === TRIES - 1) await new Promise((done) => setTimeout(done));
  }
}
