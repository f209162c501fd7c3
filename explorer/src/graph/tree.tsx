// The same neighbourhood as a list: each fact with its quote, its dates and its source, and names that lead on.

import { writePlace } from "../address";
import { clean, formatDay } from "../text";
import type { RelatedFact } from "../types";
import { holds, nameRelation } from "./model";

interface TreeProps {
  facts: readonly RelatedFact[];
  day: string;
  values: Record<string, string>; // of the address
}

export function Tree({ facts, day, values }: TreeProps) {
  return (
    <ul class="tree">
      {facts.map((fact, index) => (
        <li key={index} class={holds(fact, day) ? undefined : "past"}>
          {!fact.is_forward && (
            <>
              <Name fact={fact} values={values} />{" "}
            </>
          )}
          <em>
            {fact.is_forward ? "" : "← "}
            {nameRelation(fact)}
            {fact.is_forward ? " → " : ""}
          </em>
          {fact.is_forward && <Name fact={fact} values={values} />}
          {fact.quote && fact.kind !== "same" && <q>{clean(fact.quote)}</q>}
          <Source fact={fact} values={values} />
          {fact.branches.length > 0 && <Tree facts={fact.branches} day={day} values={values} />}
        </li>
      ))}
    </ul>
  );
}

function Name({ fact, values }: { fact: RelatedFact; values: Record<string, string> }) {
  if (!fact.entity) return <b>{clean(fact.is_forward ? fact.object : fact.subject)}</b>;
  const { to: _, more: __, ...kept } = values;
  return <a href={writePlace({ view: "graph", values: { ...kept, entity: fact.entity.name } })}>{clean(fact.entity.name)}</a>;
}

/** When the fact holds, who says so, and the document that states it. */
function Source({ fact, values }: { fact: RelatedFact; values: Record<string, string> }) {
  const { document } = fact;
  const { collection = "", user = "" } = values;
  const about = describe(fact);
  return (
    <small>
      {about && `${about} · `}
      stated in{" "}
      <a href={writePlace({ view: "documents", values: { collection, user, open: document.id } })}>
        {clean(document.title || document.uri || "a document")}
      </a>
    </small>
  );
}

function describe(fact: RelatedFact): string {
  const until = fact.until ?? fact.end?.at;
  const parts = [
    fact.since && `since ${formatDay(fact.since)}`,
    until && `until ${formatDay(until)}`,
    fact.end && fact.end.kind,
    fact.source === "file" ? "" : fact.source.replaceAll("_", " "),
    fact.confidence < 1 && `confidence ${fact.confidence.toFixed(2)}`,
    fact.status !== "confirmed" && fact.status,
  ];
  return parts.filter(Boolean).join(" · ");
}
