// The sealed history as a map: each segment where its heights are, gaps as gaps. A range is picked by dragging over it,
// or with the arrow keys.
import { useRef } from "preact/hooks";
import type { Schemas } from "../api";
import { grouped } from "../format";

export type Segment = Schemas["HistorySegment"] & { from: bigint; to: bigint };

const WIDTH = 1000;
const HEIGHT = 56;

/** Finer than this nobody sees. */
const DRAWN_AT_MOST = 1000;

export function SegmentMap(props: {
  segments: Segment[];
  first: number;
  last: number;
  onChoose: (first: number, last: number) => void;
}) {
  const { segments, first, last, onChoose } = props;
  const place = useRef<SVGSVGElement>(null);
  const begun = useRef<number | undefined>(undefined);
  const low = segments[0]!.from;
  const high = segments.at(-1)!.to + 1n;
  // Places are drawn, so they may be rounded; heights are never made of them.
  const x = (height: bigint) => (Number(((height - low) * 1_000_000n) / (high - low)) / 1_000_000) * WIDTH;
  const step = Math.max(1, Math.ceil(segments.length / DRAWN_AT_MOST));
  const gap = segments.length > 200 ? 0 : 1.5;

  /** The segment under a pointer, or the nearest one. */
  const under = (event: PointerEvent): number => {
    const box = place.current!.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    let [nearest, distance] = [0, Infinity];
    segments.forEach((segment, row) => {
      const [from, to] = [x(segment.from), x(segment.to + 1n)];
      const away = at < from ? from - at : at > to ? at - to : 0;
      if (away < distance) [nearest, distance] = [row, away];
    });
    return nearest;
  };
  const down = (event: PointerEvent) => {
    begun.current = under(event);
    (event.currentTarget as Element).setPointerCapture(event.pointerId);
    onChoose(begun.current, begun.current);
  };
  const moved = (event: PointerEvent) => {
    if (begun.current !== undefined) onChoose(begun.current, under(event));
  };
  const up = () => (begun.current = undefined);

  const key = (event: KeyboardEvent) => {
    const end = segments.length - 1;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    let [one, other] = [first, last];
    if (by !== undefined && event.shiftKey) other = Math.max(first, Math.min(end, last + by));
    else if (by !== undefined) {
      const shift = Math.max(-first, Math.min(end - last, by));
      [one, other] = [first + shift, last + shift];
    } else if (event.key === "Home") [one, other] = event.shiftKey ? [0, last] : [0, 0];
    else if (event.key === "End") [one, other] = event.shiftKey ? [first, end] : [end, end];
    else return;
    event.preventDefault();
    onChoose(one, other);
  };

  const range = `blocks ${grouped(segments[first]!.fromHeight)} to ${grouped(segments[last]!.toHeight)}`;
  const left = x(segments[first]!.from);
  const right = x(segments[last]!.to + 1n);
  return (
    <div class="map">
      <div
        role="slider"
        tabIndex={0}
        aria-label="Range of the history. Arrow keys move it, with shift they change its end."
        aria-valuemin={0}
        aria-valuemax={segments.length - 1}
        aria-valuenow={last}
        aria-valuetext={range}
        onKeyDown={key}
        onPointerDown={down}
        onPointerMove={moved}
        onPointerUp={up}
        onPointerCancel={up}
      >
        <svg ref={place} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {segments.map((segment, row) => {
            if (row % step !== 0) return null;
            const to = segments[Math.min(row + step, segments.length) - 1]!.to + 1n;
            const from = x(segment.from);
            return (
              <rect
                key={segment.fromHeight}
                class={row >= first && row <= last ? "segment chosen" : "segment"}
                x={from}
                y={8}
                width={Math.max(0.5, x(to) - from - gap)}
                height={HEIGHT - 16}
                rx={Math.min(3, (x(to) - from) / 4)}
              />
            );
          })}
          <rect class="range" x={left} y={2} width={Math.max(1, right - left - gap)} height={HEIGHT - 4} rx={4} />
        </svg>
      </div>
      <p class="ends">
        <span class="number">{grouped(segments[0]!.fromHeight)}</span>
        <strong role="status" data-range={`${segments[first]!.fromHeight}-${segments[last]!.toHeight}`}>
          {range}
        </strong>
        <span class="number">{grouped(segments.at(-1)!.toHeight)}</span>
      </p>
    </div>
  );
}
