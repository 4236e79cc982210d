// A download on the screen: start, progress, pause, resume, and whether its checksum matches.
import { useEffect, useState } from "preact/hooks";
import { Download, HELD_AT_MOST, openSink, writesFiles, type Progress } from "./download";
import { hexOf } from "./crc32c";
import { age, bytes } from "./format";
import { Bar, Notice } from "./parts";

/** A download goes on while other views are looked at; coming back finds it by its address. */
interface Begun {
  download?: Download;
  progress?: Progress;
  tell: (progress: Progress | undefined) => void;
}

const begun = new Map<string, Begun>();

const unheard = () => undefined;

addEventListener("beforeunload", (event) => {
  const isUnderWay = [...begun.values()].some(({ progress }) => progress && progress.phase !== "done" && progress.phase !== "failed");
  if (isUnderWay) event.preventDefault();
});

export function Transfer(props: { url: string; fileName: string; isReady: boolean; isResumable: boolean }) {
  const { url, fileName, isReady, isResumable } = props;
  const [progress, setProgress] = useState(begun.get(url)?.progress);
  useEffect(() => {
    const here = begun.get(url);
    setProgress(here?.progress);
    if (here) here.tell = setProgress;
    return () => {
      const here = begun.get(url);
      if (here) here.tell = unheard;
    };
  }, [url]);
  const begin = async () => {
    const sink = await openSink(fileName);
    if (!sink) return;
    const here: Begun = { tell: setProgress };
    begun.set(url, here);
    here.download = new Download(url, sink, fileName, isResumable, (progress) => {
      here.progress = progress;
      here.tell(progress);
    });
  };
  const stop = () => {
    void begun.get(url)?.download?.stop();
    begun.delete(url);
    setProgress(undefined);
  };
  const isOver = !progress || progress.phase === "done" || progress.phase === "failed";
  return (
    <div class="transfer" data-phase={progress?.phase} data-received={progress?.received} data-resumed={progress?.resumed}>
      <div class="buttons">
        {isOver && (
          <button type="button" class="primary" disabled={!isReady} onClick={begin}>
            {progress ? "Download again" : "Download"}
          </button>
        )}
        {!isOver && progress.phase !== "paused" && isResumable && (
          <button type="button" onClick={() => begun.get(url)?.download?.pause()}>
            Pause
          </button>
        )}
        {progress?.phase === "paused" && (
          <button type="button" class="primary" onClick={() => begun.get(url)?.download?.resume()}>
            Resume
          </button>
        )}
        {!isOver && (
          <button type="button" onClick={stop}>
            Stop
          </button>
        )}
        {!writesFiles && isOver && (
          <span class="dim">This browser keeps a download in memory: {bytes(HELD_AT_MOST)} at most.</span>
        )}
      </div>
      {progress && (
        <>
          <Bar label={`Download of ${progress.fileName}`} done={progress.received} of={progress.total} />
          <p class="number">{said(progress)}</p>
          <p class="unseen" role="status">
            {spoken(progress)}
          </p>
          {progress.phase === "done" && (
            <p class="good-news" data-checksum={progress.checksum}>
              {progress.expected
                ? `Complete. CRC-32C ${hexOf(progress.checksum)} (base64 ${progress.checksum}) matches the gateway's checksum.`
                : `Complete. CRC-32C of the file: ${hexOf(progress.checksum)} (base64 ${progress.checksum}).`}
            </p>
          )}
          {progress.problem && <Notice problem={progress.problem} />}
        </>
      )}
    </div>
  );
}

function said(progress: Progress): string {
  const { received, total, perSecond, phase, resumed } = progress;
  const parts = [total === undefined ? bytes(received) : `${bytes(received)} of ${bytes(total)}`];
  if (phase === "running" && perSecond > 0) {
    parts.push(`${bytes(perSecond)}/s`);
    if (total !== undefined) parts.push(`${age(((total - received) * 1000) / perSecond)} left`);
  }
  if (phase === "paused") parts.push("paused");
  if (phase === "waiting") parts.push("interrupted, retrying");
  if (resumed > 0) parts.push(`resumed ${resumed === 1 ? "once" : `${resumed} times`}`);
  return parts.join(" · ");
}

/** For screen readers: changes of the phase, and each tenth. */
function spoken(progress: Progress): string {
  const { phase, received, total } = progress;
  if (phase === "running") {
    return total ? `Downloading, ${Math.floor((10 * received) / total) * 10} percent` : "Downloading";
  }
  return { paused: "Download paused", waiting: "Download interrupted, retrying", done: "Download complete", failed: "Download failed" }[phase];
}
