// Names and the facts between them, from trees of facts and from paths, without anything that draws.

import { clean, spell } from "../text";
import type { Connection, Entity, Related, RelatedFact } from "../types";

export const FEW_NODES = 300; // more are slow to draw without a graphics card
export const MAX_NODES = 5_000;

export interface Node {
  id: string;
  name: string;
  isValue: boolean; // a plain value, which has no facts of its own
  isStart: boolean;
}

export interface Edge {
  id: string;
  from: string;
  to: string;
  fact: RelatedFact;
}

export interface Neighbourhood {
  nodes: Map<string, Node>;
  edges: Map<string, Edge>;
  isCut: boolean; // there were more names than are drawn
  limit: number; // of names
}

/** Collect the names and facts of all answers; facts beyond the largest number of names are left out. */
export function collect(answers: readonly Related[], connection: Connection | null, limit: number): Neighbourhood {
  const found: Neighbourhood = { nodes: new Map(), edges: new Map(), isCut: false, limit };
  for (const { entities, facts } of answers) {
    const start = entities[0];
    if (!start) continue;
    addNode(found, { ...toNode(start), isStart: true });
    addFacts(found, start.id, facts);
  }
  for (const { start, steps } of connection?.paths ?? []) {
    addNode(found, { ...toNode(start), isStart: true });
    let last = start.id;
    for (const step of steps) last = addFact(found, last, step) ?? last;
    const end = found.nodes.get(last);
    if (end) end.isStart = true;
  }
  return found;
}

function addFacts(found: Neighbourhood, parent: string, facts: readonly RelatedFact[]): void {
  for (const fact of facts) {
    const child = addFact(found, parent, fact);
    if (child) addFacts(found, child, fact.branches);
  }
}

function addFact(found: Neighbourhood, parent: string, fact: RelatedFact): string | null {
  const value = fact.is_forward ? fact.object : fact.subject;
  const other = fact.entity
    ? toNode(fact.entity)
    : { id: `value ${value}`, name: clean(value), isValue: true, isStart: false };
  if (other.id === parent || !addNode(found, other)) return null;
  const [from, to] = fact.is_forward ? [parent, other.id] : [other.id, parent];
  const id = `${fact.fact} ${from} ${to}`;
  found.edges.set(id, { id, from, to, fact });
  return other.id;
}

function toNode({ id, name }: Entity): Node {
  return { id, name: clean(name), isValue: false, isStart: false };
}

function addNode(found: Neighbourhood, node: Node): boolean {
  const known = found.nodes.get(node.id);
  if (known) known.isStart ||= node.isStart;
  else if (found.nodes.size >= found.limit) found.isCut = true;
  else found.nodes.set(node.id, node);
  return found.nodes.has(node.id);
}

/** Return how many names are drawn at most, as the address has it. */
export function readLimit(text = ""): number {
  return Math.min(Math.max(Number.parseInt(text, 10) || FEW_NODES, 2), MAX_NODES);
}

/** Return the days between which the facts begin and end, or null if none has a date. */
export function findPeriod(edges: Iterable<Edge>): [string, string] | null {
  const days = [...edges].flatMap(({ fact }) => [fact.since, getEnd(fact)]).filter((day) => day !== null);
  const sorted = days.map((day) => day.slice(0, 10)).sort();
  return sorted.length ? [sorted[0]!, sorted.at(-1)!] : null;
}

/** Return whether a fact held on a day. A fact without a beginning held always before its end. */
export function holds(fact: RelatedFact, day: string): boolean {
  if (!day) return true;
  const end = getEnd(fact);
  return (fact.since?.slice(0, 10) ?? "") <= day && (end === null || day < end.slice(0, 10));
}

function getEnd(fact: RelatedFact): string | null {
  return fact.until ?? fact.end?.at ?? null;
}

export function nameRelation(fact: RelatedFact): string {
  if (fact.kind === "same") return "same as";
  return spell(fact.predicate) || "named with";
}

/** Say how much of the facts of a name is shown. */
export function describeShown({ name, complete, shown, total, is_exact }: Related): string {
  if (complete) return `All ${total} facts around ${clean(name)}.`;
  return `${shown} of ${is_exact ? "" : "at least "}${total} facts around ${clean(name)}.`;
}
