// Figures of the Insight view, without anything that draws: growth in equal parts of time, decisions, times, reports.

import type { DayCounts, StageLatency } from "../types";

const DAY = 86_400_000; // milliseconds
const MAX_PARTS = 60; // of the drawn growth

export interface Part {
  first: string; // the first day
  last: string;
  documents: number;
  passages: number;
  total: number; // documents until the end of this part
}

/** Return the growth in parts of equal length: days, or as many days as keep the parts readable. */
export function splitGrowth(growth: readonly DayCounts[]): Part[] {
  const [first, last] = [growth[0], growth.at(-1)].map((each) => (each ? toNumber(each.day) : 0));
  if (first === undefined || last === undefined || !growth.length) return [];
  const days = Math.ceil((last - first + 1) / MAX_PARTS);
  const parts = Array.from({ length: Math.floor((last - first) / days) + 1 }, (_, index): Part => {
    const start = first + index * days;
    return { first: toDay(start), last: toDay(Math.min(start + days - 1, last)), documents: 0, passages: 0, total: 0 };
  });
  for (const { day, documents, passages } of growth) {
    const part = parts[Math.floor((toNumber(day) - first) / days)]!;
    part.documents += documents;
    part.passages += passages;
  }
  let total = 0;
  for (const part of parts) part.total = total += part.documents;
  return parts;
}

function toNumber(day: string): number {
  return Math.round(Date.parse(`${day}T00:00:00Z`) / DAY);
}

function toDay(number: number): string {
  return new Date(number * DAY).toISOString().slice(0, 10);
}

export interface Decision {
  outcome: string;
  words: string;
  searches: number;
}

const OUTCOMES: ReadonlyArray<readonly [string, string]> = [
  ["open", "graph used"],
  ["unsure", "not used: too unsure"],
  ["unnamed", "not used: no known name in the question"],
  ["empty", "not used: no facts"],
  ["unused", "the method uses no graph"],
  ["failed", "the graph could not be searched"],
];

export function listDecisions(gate: Record<string, number>): Decision[] {
  const known = OUTCOMES.map(([outcome, words]) => ({ outcome, words, searches: gate[outcome] ?? 0 }));
  return known.filter(({ searches }) => searches > 0);
}

/** Return the time in seconds below which a share of the searches ended, estimated from the counts by bound. */
export function findQuantile({ counts }: StageLatency, bounds: readonly number[], share: number): number {
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  let below = 0;
  for (const [index, count] of counts.entries()) {
    if (count && below + count >= wanted) {
      const low = bounds[index - 1] ?? 0;
      const high = bounds[index] ?? bounds.at(-1)! * 2;
      return low + ((wanted - below) / count) * (high - low);
    }
    below += count;
  }
  return 0;
}

export function formatSeconds(seconds: number): string {
  if (seconds >= 1) return `${seconds.toLocaleString("en-GB", { maximumFractionDigits: 1 })} s`;
  return `${(1000 * seconds).toLocaleString("en-GB", { maximumSignificantDigits: 2 })} ms`;
}

export interface Measured {
  of: string; // the set or folder
  method: string;
  questions: number;
  mean: number; // found among the first five, between 0 and 1
  low: number;
  high: number;
}

interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** Read the rows of a report that `waylore eval --json` wrote, of folders or of sets. Throw if it has none. */
export function readReport(text: string): Measured[] {
  const { rows } = JSON.parse(text) as { rows?: Array<Record<string, unknown>> };
  const all = (rows ?? []).filter(({ type = "all", split = "all" }) => type === "all" && split === "all");
  const read = all.map(readRow).filter((row) => row !== null);
  if (!read.length) throw new Error("this file has no figures by method; choose one that `waylore eval --json FILE` wrote");
  const sets = new Set(read.map(({ of }) => of));
  return sets.has("all") && sets.size === 2 ? read.filter(({ of }) => of === "all") : read; // one folder is all of it
}

function readRow(row: Record<string, unknown>): Measured | null {
  const isOfSet = "interval" in row;
  const { mean, low, high } = (isOfSet ? row["interval"] : row["recall"]) as Interval;
  const scale = isOfSet ? 100 : 1; // sets have percentages
  if (![mean, low, high].every(Number.isFinite)) return null;
  const of = String(row["set"] ?? row["folder"] ?? "");
  const method = String(row["recipe"] ?? row["method"] ?? "");
  return { of, method, questions: Number(row["questions"]), mean: mean / scale, low: low / scale, high: high / scale };
}
