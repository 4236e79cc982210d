// A download that can be paused, and that resumes at the same byte, also after the gateway was unavailable. It is written to
// a file where the browser allows that, otherwise kept in memory up to a limit.
import { Problem, READ, problemOf, refusal } from "./api";
import { crc32c, digestOf, spelled } from "./crc32c";

/** What a page may hold in memory: 512 MiB. */
export const HELD_AT_MOST = 512 * 1024 * 1024;

/** Pauses between two tries of what broke off, in milliseconds; the last one again and again. */
const PAUSES = [200, 500, 1000, 2000, 5000];

/** So many tries in a row that brought nothing are the end. */
const TRIES = 30;

/** Nothing for so long is a broken transfer. */
const SILENT_MS = 60_000;

/** Interval of progress reports. */
const REPORT_EVERY_MS = 100;

export type Phase = "running" | "paused" | "waiting" | "done" | "failed";

export interface Progress {
  phase: Phase;
  fileName: string;
  received: number;
  /** Of the whole file, when it is known. */
  total?: number;
  perSecond: number;
  /** How often it went on after it broke off. */
  resumed: number;
  problem?: Problem;
  /** Of what was received, in base64. */
  checksum: string;
  /** What the gateway says it must be. */
  expected?: string;
  /** Whether a pause keeps what has come. */
  isResumable: boolean;
}

/** Where the bytes go. */
export interface Sink {
  write(bytes: Uint8Array<ArrayBuffer>): Promise<void>;
  /** Forgets what was written. */
  restart(): Promise<void>;
  finish(fileName: string): Promise<void>;
  abandon(): Promise<void>;
}

/** A file that the user chose. */
export function fileSink(stream: FileSystemWritableFileStream): Sink {
  return {
    write: (bytes) => stream.write(bytes),
    restart: async () => {
      await stream.truncate(0);
      await stream.seek(0);
    },
    finish: () => stream.close(),
    abandon: () => stream.abort(),
  };
}

/** Memory, and the browser's own way of saving at the end. */
export function memorySink(): Sink {
  let parts: Uint8Array<ArrayBuffer>[] = [];
  let held = 0;
  return {
    write: async (bytes) => {
      held += bytes.length;
      if (held > HELD_AT_MOST) {
        throw new Problem(-1, 0, "the file is too large for memory; use curl, or a browser that writes files (Chromium)", "", "");
      }
      parts.push(bytes);
    },
    restart: async () => {
      [parts, held] = [[], 0];
    },
    finish: async (fileName) => {
      const url = URL.createObjectURL(new Blob(parts));
      const anchor = document.createElement("a");
      anchor.href = url;
      anchor.download = fileName;
      anchor.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
      parts = [];
    },
    abandon: async () => {
      parts = [];
    },
  };
}

export class Download {
  private progress: Progress;
  private crc = 0;
  private etag = "";
  private running?: AbortController;
  /** One run at a time: what is resumed waits until what was paused has written its last piece. */
  private runs: Promise<void> = Promise.resolve();
  private reportedAt = 0;
  private pace: { at: number; received: number }[] = [];

  constructor(
    private readonly url: string,
    private readonly sink: Sink,
    fileName: string,
    isResumable: boolean,
    private readonly tell: (progress: Progress) => void,
  ) {
    this.progress = {
      phase: "running", fileName, received: 0, perSecond: 0, resumed: 0, checksum: spelled(0), isResumable,
    };
    this.begin();
  }

  pause(): void {
    if (this.progress.phase !== "running" && this.progress.phase !== "waiting") return;
    this.say({ phase: "paused", perSecond: 0 });
    this.running?.abort();
  }

  resume(): void {
    if (this.progress.phase !== "paused") return;
    this.say({ phase: "running", problem: undefined });
    this.begin();
  }

  /** Gives it up. */
  async stop(): Promise<void> {
    this.progress.phase = "failed";
    this.running?.abort();
    await this.sink.abandon().catch(() => undefined);
  }

  private say(change: Partial<Progress>): void {
    this.progress = { ...this.progress, ...change };
    this.reportedAt = performance.now();
    this.tell(this.progress);
  }

  private begin(): void {
    const running = new AbortController();
    this.running = running;
    this.runs = this.runs.then(() => this.run(running));
  }

  private async run(running: AbortController): Promise<void> {
    if (running.signal.aborted) return;
    for (let tries = 0; ; ) {
      const before = this.progress.received;
      try {
        await this.transfer(running);
        if (running.signal.aborted) return;
        await this.sink.finish(this.progress.fileName).catch(unwritten);
        this.say({ phase: "done", perSecond: 0, checksum: spelled(this.crc) });
        return;
      } catch (error) {
        if (running.signal.aborted) return;
        const problem = error instanceof Problem ? error : problemOf(error);
        tries = this.progress.received > before ? 0 : tries + 1;
        const mayGoOn = problem.isPassing && tries < TRIES && (this.progress.isResumable || this.progress.received === 0);
        if (!mayGoOn) {
          this.say({ phase: "failed", problem, perSecond: 0 });
          await this.sink.abandon().catch(() => undefined);
          return;
        }
        this.say({ phase: "waiting", problem, perSecond: 0 });
        await pause(PAUSES[Math.min(tries, PAUSES.length - 1)]!, running.signal);
        if (running.signal.aborted) return;
        this.say({ phase: "running", problem: undefined, resumed: this.progress.resumed + (this.progress.received > 0 ? 1 : 0) });
      }
    }
  }

  /** Takes what is still missing. */
  private async transfer(running: AbortController): Promise<void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENT_MS);
    try {
      const headers: Record<string, string> = { ...READ };
      if (this.progress.received > 0) {
        if (this.progress.received === this.progress.total) return this.check();
        headers.range = `bytes=${this.progress.received}-`;
        headers["if-range"] = this.etag;
      }
      const signal = AbortSignal.any([running.signal, silence.signal]);
      const response = await fetch(this.url, { headers, signal, cache: "no-store" });
      if (!response.ok) throw await refusal(response);
      await this.take(response);
      const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), SILENT_MS);
        if (running.signal.aborted) return;
        if (done) return this.check();
        await this.sink.write(value).catch(unwritten);
        this.crc = crc32c(this.crc, value);
        this.received(value.length);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sees whether what comes goes on where we are, or is the file from its beginning. */
  private async take(response: Response): Promise<void> {
    const { headers } = response;
    const range = headers.get("content-range")?.match(/^bytes (\d+)-\d+\/(\d+)$/);
    if (response.status === 206 && Number(range?.[1]) !== this.progress.received) {
      throw new Problem(-1, 0, "the gateway sent a different part of the file", "", "");
    }
    this.etag = headers.get("etag") ?? "";
    if (response.status === 206) {
      this.say({ total: Number(range?.[2]) });
      return;
    }
    // The whole file: the first time, or because it has changed.
    if (this.progress.received > 0) await this.sink.restart();
    this.crc = 0;
    const length = headers.get("content-length");
    const isPacked = headers.has("content-encoding");
    this.say({
      received: 0,
      total: length && !isPacked ? Number(length) : undefined,
      expected: digestOf(headers.get("repr-digest")),
      fileName: nameOf(headers.get("content-disposition")) ?? this.progress.fileName,
    });
  }

  private received(count: number): void {
    this.progress.received += count;
    const now = performance.now();
    if (now - this.reportedAt < REPORT_EVERY_MS) return;
    this.pace.push({ at: now, received: this.progress.received });
    if (this.pace.length > 20) this.pace.shift();
    const oldest = this.pace[0]!;
    const took = now - oldest.at;
    const perSecond = took > 0 ? Math.max(0, ((this.progress.received - oldest.received) * 1000) / took) : 0;
    this.say({ perSecond, checksum: spelled(this.crc) });
  }

  /** All of it must have come, as it was meant. */
  private check(): void {
    const { total, received, expected } = this.progress;
    if (total !== undefined && received !== total) throw new Problem(0, 0, "the transfer was interrupted", "", "");
    if (expected !== undefined && spelled(this.crc) !== expected) {
      throw new Problem(-1, 0, "the file is damaged: its checksum differs", spelled(this.crc), "");
    }
  }
}

/** A full disk, a file that was taken away: nothing that the gateway could mend. */
function unwritten(error: unknown): never {
  if (error instanceof Problem) throw error;
  throw new Problem(-1, 0, "the file cannot be written", error instanceof Error ? error.message : "", "");
}

/** Waits, unless it is taken back. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });
}

/** The file name in a `Content-Disposition`. */
export function nameOf(disposition: string | null): string | undefined {
  return disposition?.match(/filename="([^"\\/]+)"/)?.[1];
}

interface Picker {
  showSaveFilePicker?: (options: { suggestedName: string }) => Promise<FileSystemFileHandle>;
}

/** Where the browser lets us write: a file that is asked for, or memory. Nothing when the user thought better of it. */
export async function openSink(fileName: string): Promise<Sink | undefined> {
  const { showSaveFilePicker } = window as unknown as Picker;
  if (!showSaveFilePicker) return memorySink();
  try {
    const handle = await showSaveFilePicker.call(window, { suggestedName: fileName });
    return fileSink(await handle.createWritable());
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") return undefined;
    // A frame or a policy forbids it.
    return memorySink();
  }
}

export const writesFiles = "showSaveFilePicker" in window;
