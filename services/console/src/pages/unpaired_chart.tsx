/** A small chart: unpaired sides by node, as many as were added between two looks. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { addressOf } from "./nodes.tsx";
import type { NodeRow } from "./rows.ts";
import type { Look } from "./unpaired_history.ts";

const HEIGHT = 160;
const LEFT = 32;
const BOTTOM = 20;
/** The axis shows this many at least, so that one is seen as little. */
const LEAST = 4;

/** Told apart by dashes as well as by tone. */
const DASHES = ["", "6 3", "2 3", "10 3 2 3"];

interface ChartProps {
  readonly history: readonly Look[];
  readonly nodes: readonly NodeRow[];
}

export function UnpairedChart({ history, nodes }: ChartProps): JSX.Element {
  const [width, place] = useWidth();
  const most = Math.max(LEAST, ...history.flatMap(({ added }) => [...added.values()]));
  const first = history[0]?.at ?? 0;
  const last = Math.max(history[history.length - 1]?.at ?? 1, first + 60_000);
  const x = (at: number): number => LEFT + ((width - LEFT) * (at - first)) / (last - first);
  const y = (count: number): number => (HEIGHT - BOTTOM) * (1 - count / most) + 4;
  const clock = (at: number): string => new Date(at).toLocaleTimeString(undefined, { timeStyle: "short" });
  const total = history.reduce((sum, { added }) => sum + [...added.values()].reduce((one, other) => one + other, 0), 0);
  return (
    <figure class="chart">
      <svg
        ref={place}
        viewBox={`0 0 ${width} ${HEIGHT}`}
        role="img"
        aria-label={`Unpaired sides by node since ${clock(first)}: ${total === 0 ? "none" : String(total)}`}
      >
        {[0, most / 2, most].map((count) => (
          <g key={count}>
            <line class="grid" x1={LEFT} x2={width} y1={y(count)} y2={y(count)} />
            <text x={LEFT - 6} y={y(count) + 4} text-anchor="end">
              {Math.round(count)}
            </text>
          </g>
        ))}
        <text x={LEFT} y={HEIGHT - 2}>
          {clock(first)}
        </text>
        <text x={width} y={HEIGHT - 2} text-anchor="end">
          {clock(last)}
        </text>
        {nodes.map((node, index) => (
          <polyline
            key={node.node_id}
            class={`line tone-${index % DASHES.length}`}
            stroke-dasharray={DASHES[index % DASHES.length]}
            points={history.map(({ at, added }) => `${x(at)},${y(added.get(node.node_id) ?? 0)}`).join(" ")}
          />
        ))}
      </svg>
      <figcaption>
        {nodes.map((node, index) => (
          <span key={node.node_id}>
            <svg viewBox="0 0 24 8" width="24" height="8" aria-hidden="true">
              <line class={`line tone-${index % DASHES.length}`} stroke-dasharray={DASHES[index % DASHES.length]} x1="0" x2="24" y1="4" y2="4" />
            </svg>
            {addressOf(node)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** The width of an element in pixels, so that what is drawn in it keeps its size. */
function useWidth(): [number, { current: SVGSVGElement | null }] {
  const place = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(640);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.max(240, Math.round(element.clientWidth))));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [width, place];
}
