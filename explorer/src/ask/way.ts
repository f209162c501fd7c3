// The way to a hit as data: from the question over names and the words of authors to the passage.

import { clean, spell } from "../text";
import type { Fact, Hit, Step } from "../types";
import { listShares, nameSearch } from "./shares";

/** A stop of the way: a name. `said` is what leads to it from the stop before. */
export interface Stop {
  name: string;
  said: Said;
}

export interface Said {
  words: string; // the relation, or the words of the author between two names
  isQuote: boolean;
  isBackwards: boolean; // the author wrote it from this stop to the one before
  statement: string; // the whole sentence, if it is stored
  passage: string; // the passage that states it
  about: string; // date and trust, as one line
}

const NAMED: Said = { words: "names", isQuote: false, isBackwards: false, statement: "", passage: "", about: "" };

/** Return the stops on the way to a hit; none if the search found it without the graph. */
export function listStops(hit: Hit, facts: ReadonlyMap<string, Fact>): Stop[] {
  if (!hit.path) return [];
  const stops: Stop[] = [{ name: clean(hit.path.start), said: NAMED }];
  for (const step of hit.path.steps) {
    const fact = facts.get(step.fact_id);
    if (fact) stops.push({ name: clean(step.is_forward ? fact.object : fact.subject), said: readSaid(step, fact) });
  }
  return stops;
}

function readSaid(step: Step, fact: Fact): Said {
  const isQuote = step.kind === "quoted";
  return {
    words: isQuote ? clean(step.words) : step.kind === "named" ? "named together with" : spell(fact.predicate),
    isQuote,
    isBackwards: !step.is_forward,
    statement: clean(fact.statement),
    passage: fact.passage_id,
    about: describeFact(fact),
  };
}

export function describeFact(fact: Fact): string {
  const [from, to] = [fact.valid_from, fact.valid_to].map((time) => time?.slice(0, 10) ?? "");
  const period = from && to ? `${from} to ${to}` : from ? `since ${from}` : to ? `until ${to}` : "";
  const trust = fact.confidence < 1 ? `confidence ${fact.confidence.toFixed(2)}` : "";
  const status = fact.status === "confirmed" ? "" : fact.status;
  const source = fact.source === "file" ? "" : fact.source.replaceAll("_", " ");
  return [period, source, trust, status].filter(Boolean).join(" · ");
}

/** Say by which searches a hit was found, for a hit without a path: the two with the largest shares. */
export function describeSearches(hit: Hit): string {
  const by = listShares(hit)
    .filter(({ part }) => part >= 0.05)
    .sort((one, other) => other.part - one.part)
    .map(({ placement }) => nameSearch(placement.search));
  return by.length ? `found by ${by.slice(0, 2).join(" and ")}` : "found";
}
