// A small chart of the last two minutes. What it shows stands beside it as text, so it is hidden from readers.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { ink, useTheme } from "./theme";

export function Spark(props: { times: number[]; values: (number | null)[]; colour?: string; height?: number }) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [, theme] = useTheme();
  const { height = 44, colour = "accent" } = props;
  useEffect(() => {
    const parent = place.current;
    if (!parent) return undefined;
    const stroke = ink(colour);
    const made = new uPlot(
      {
        width: parent.clientWidth || 200,
        height,
        padding: [4, 0, 2, 0],
        cursor: { show: false },
        legend: { show: false },
        axes: [{ show: false }, { show: false }],
        scales: { x: { time: false }, y: { range: (_, low, high) => reach(low, high) } },
        series: [{}, { stroke, width: 1.5, fill: ink(`${colour}-soft`), points: { show: false }, spanGaps: false }],
      },
      [props.times, props.values],
      parent,
    );
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: parent.clientWidth || 200, height }));
    resized.observe(parent);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [theme, height, colour]);
  // The lists are the same ones with every look, longer by one.
  useEffect(() => {
    plot.current?.setData([props.times.slice(), props.values.slice()]);
  });
  return <div class="spark" ref={place} aria-hidden="true" />;
}

/** From zero where that is near; a level line is drawn in the middle. */
function reach(low: number, high: number): [number, number] {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  const from = low >= 0 && low < high * 0.8 ? 0 : low;
  return from === high ? [from === 0 ? 0 : from - 1, high + 1] : [from, high + (high - from) * 0.05];
}
