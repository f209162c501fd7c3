// Small plots in SVG. Each is a figure with its sentence; shapes have titles, which browsers show on hover.

import type { ComponentChildren } from "preact";

import { count, formatDay } from "../text";
import type { StageLatency } from "../types";
import { type Decision, type Measured, type Part, findQuantile, formatSeconds } from "./figures";

interface PlotProps {
  title: string;
  says: ComponentChildren; // the sentence below the plot
  label?: string; // what the drawing says to those who cannot see it
  isTall?: boolean; // beside two others
  children?: ComponentChildren;
}

export function Plot({ title, says, label, isTall = false, children }: PlotProps) {
  return (
    <figure class={isTall ? "plot tall" : "plot"} aria-label={title}>
      <h2>{title}</h2>
      {label ? (
        <div role="img" aria-label={label}>
          {children}
        </div>
      ) : (
        children
      )}
      <figcaption class="quiet">{says}</figcaption>
    </figure>
  );
}

export interface Size {
  name: string;
  number: number;
}

/** A bar for each kind of item, as long as its number beside the largest. */
export function Sizes({ sizes }: { sizes: Size[] }) {
  const largest = Math.max(...sizes.map(({ number }) => number), 1);
  return (
    <dl class="sizes">
      {sizes.map(({ name, number }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <b>{number.toLocaleString("en-GB")}</b>
            <i style={{ width: `${Math.max((100 * number) / largest, number ? 0.5 : 0)}%` }} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const [WIDTH, HEIGHT] = [600, 200];

/** A bar for the documents of each part of time, and a line of all documents so far. */
export function Growth({ parts }: { parts: Part[] }) {
  const most = Math.max(...parts.map(({ documents }) => documents), 1);
  const total = Math.max(parts.at(-1)?.total ?? 0, 1);
  const step = WIDTH / parts.length;
  const width = Math.min(step * 0.7, 40);
  const points = parts.map(({ total: sum }, index) => `${(index + 0.5) * step},${HEIGHT - (sum / total) * (HEIGHT - 10)}`);
  return (
    <>
      <svg class="growth" viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`} preserveAspectRatio="none">
        {parts.map(({ first, last, documents, passages }, index) => (
          <rect
            key={first}
            x={(index + 0.5) * step - width / 2}
            width={width}
            y={HEIGHT - (documents / most) * (HEIGHT - 10)}
            height={(documents / most) * (HEIGHT - 10)}
          >
            <title>
              {formatPeriod(first, last)}: {count(documents, "document")}, {count(passages, "passage")}
            </title>
          </rect>
        ))}
        <line class="ground" x1={0} x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
        {parts.length > 1 && <polyline points={points.join(" ")} />}
      </svg>
      <p class={parts.length > 1 ? "scale" : "scale single"} aria-hidden="true">
        <span>{formatDay(parts[0]!.first)}</span>
        {parts.length > 1 && <span>{formatDay(parts.at(-1)!.last)}</span>}
      </p>
    </>
  );
}

export function formatPeriod(first: string, last: string): string {
  return first === last ? formatDay(first) : `${formatDay(first)} to ${formatDay(last)}`;
}

/** One bar, with a part for each decision, and what the parts mean. */
export function Decisions({ decisions }: { decisions: Decision[] }) {
  const all = decisions.reduce((sum, { searches }) => sum + searches, 0);
  return (
    <div class="decisions">
      <div class="stack" aria-hidden="true">
        {decisions.map(({ outcome, words, searches }) => (
          <i key={outcome} data-outcome={outcome} title={words} style={{ flexGrow: searches }} />
        ))}
      </div>
      <ul>
        {decisions.map(({ outcome, words, searches }) => (
          <li key={outcome}>
            <i data-outcome={outcome} aria-hidden="true" />
            {words}: <b>{searches.toLocaleString("en-GB")}</b> ({Math.round((100 * searches) / all)}&thinsp;%)
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A strip for each stage: dark where most searches ended, with a mark at the middle one. */
export function Latencies({ stages, bounds }: { stages: StageLatency[]; bounds: number[] }) {
  const cell = WIDTH / (bounds.length + 1);
  return (
    <div class="latencies">
      {stages.map((stage) => (
        <div key={stage.stage} class="row">
          <span>{stage.stage.replaceAll("_", " ")}</span>
          <Strip stage={stage} bounds={bounds} cell={cell} />
          <span class="middle">{formatSeconds(findQuantile(stage, bounds, 0.5))}</span>
        </div>
      ))}
      <div class="row scale" aria-hidden="true">
        <span />
        <div class="bounds">
          {[0.001, 0.01, 0.1, 1].map((bound) => (
            <span key={bound} style={{ left: `${(100 * (bounds.indexOf(bound) + 1)) / (bounds.length + 1)}%` }}>
              {formatSeconds(bound)}
            </span>
          ))}
        </div>
        <span class="middle">median</span>
      </div>
    </div>
  );
}

function Strip({ stage, bounds, cell }: { stage: StageLatency; bounds: number[]; cell: number }) {
  const most = Math.max(...stage.counts, 1);
  const middle = findPlace(findQuantile(stage, bounds, 0.5), bounds) * cell;
  return (
    <svg viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none">
      {stage.counts.map((searches, index) => (
        <rect key={index} x={index * cell} y={0} width={cell} height={20} style={{ fillOpacity: shade(searches / most) }}>
          <title>
            {count(searches, "time")} {describeBound(bounds, index)}
          </title>
        </rect>
      ))}
      <line x1={middle} x2={middle} y1={0} y2={20} />
    </svg>
  );
}

function shade(part: number): number {
  return part === 0 ? 0.06 : 0.2 + 0.7 * part;
}

/** Return where a time lies on the strip, in cells. */
function findPlace(seconds: number, bounds: readonly number[]): number {
  const index = bounds.findIndex((bound) => seconds <= bound);
  if (index < 0) return bounds.length + 0.5;
  const low = bounds[index - 1] ?? 0;
  return index + (seconds - low) / (bounds[index]! - low);
}

function describeBound(bounds: readonly number[], index: number): string {
  const bound = bounds[index];
  return bound === undefined ? `above ${formatSeconds(bounds.at(-1)!)}` : `up to ${formatSeconds(bound)}`;
}

/** A dot with its interval for each method, by set. */
export function Scores({ measured }: { measured: Measured[] }) {
  const sets = [...new Set(measured.map(({ of }) => of))];
  return (
    <div class="scores">
      {sets.map((of) => (
        <section key={of} aria-label={of}>
          <h3>{of === "all" ? "all questions" : of}</h3>
          {measured
            .filter((row) => row.of === of)
            .map((row) => (
              <div key={row.method} class="row">
                <span>{row.method}</span>
                <svg viewBox={`0 0 ${WIDTH} 20`} preserveAspectRatio="none" aria-hidden="true">
                  <line class="ground" x1={0} x2={WIDTH} y1={10} y2={10} />
                  <line class="interval" x1={row.low * WIDTH} x2={row.high * WIDTH} y1={10} y2={10} />
                  <rect x={row.mean * WIDTH - 4} y={2} width={8} height={16} />
                </svg>
                <span class="middle">
                  {Math.round(100 * row.mean)}&thinsp;%
                  <span class="hidden">
                    , between {Math.round(100 * row.low)} and {Math.round(100 * row.high)}
                  </span>
                </span>
              </div>
            ))}
        </section>
      ))}
    </div>
  );
}
