// Names that count as one thing, each with the evidence, and a button that separates them.

import { useEffect, useState } from "preact/hooks";

import { explain, service } from "../service";
import { clean } from "../text";
import type { Entity, Merge } from "../types";

const MAX_ASKED = 8; // names of one thing whose merges are read

/** Two names that the user has separated; the document states it, and is forgotten to undo it. */
export interface Separated {
  name: string;
  other: string;
  document: string;
}

interface MergedProps {
  collection: string;
  entities: readonly Entity[]; // of one thing
  onSeparate: (separated: Separated) => void;
}

export function Merged({ collection, entities, onSeparate }: MergedProps) {
  const [merges, setMerges] = useState<Merge[]>([]);
  const [problem, setProblem] = useState("");
  const ids = entities.map(({ id }) => id).join(" ");
  useEffect(() => void readMerges(collection, entities).then(setMerges, (error: Error) => setProblem(explain(error))), [ids]);
  const separate = async ({ entity, other }: Merge) => {
    const [name, second] = [entity.name, other.name];
    try {
      const made = await service.markDistinct({ path: { collection }, body: { name, other: second } });
      onSeparate({ name, other: second, document: made.id });
    } catch (error) {
      setProblem(explain(error));
    }
  };
  return (
    <>
      <ul class="merged" aria-label="Names that count as the same">
        {merges.map((merge) => (
          <li key={`${merge.entity.id} ${merge.other.id}`}>
            <b>{clean(merge.entity.name)}</b> <em>same as</em> <b>{clean(merge.other.name)}</b>
            <small>{clean(merge.fact.statement)}</small>
            <button type="button" class="plain" onClick={() => void separate(merge)}>
              Separate<span class="hidden"> {clean(merge.other.name)}</span>
            </button>
          </li>
        ))}
      </ul>
      <p class="problem" role="alert">
        {problem}
      </p>
    </>
  );
}

/** Return the pairs of names that were merged, each once. */
async function readMerges(collection: string, entities: readonly Entity[]): Promise<Merge[]> {
  const asked = entities.slice(0, MAX_ASKED).map(({ name }) => service.listMerges({ path: { collection }, query: { entity: name } }));
  const found = (await Promise.all(asked)).flatMap(({ merges }) => merges.filter((merge) => merge.is_same));
  const pairs = new Map(found.map((merge) => [[merge.entity.id, merge.other.id].sort().join(" "), merge]));
  return [...pairs.values()];
}

interface UndoProps {
  collection: string;
  separated: Separated;
  onUndone: () => void;
}

/** Say that two names are separate now, and take it back if the user wants. */
export function Undo({ collection, separated, onUndone }: UndoProps) {
  const [problem, setProblem] = useState("");
  const undo = () =>
    service.forgetDocument({ path: { collection, document: separated.document } }).then(onUndone, (error: Error) => setProblem(explain(error)));
  return (
    <p class="separated" role="status">
      {clean(separated.name)} and {clean(separated.other)} are separate now.{" "}
      <button type="button" class="plain" onClick={() => void undo()}>
        Undo
      </button>
      <span class="problem">{problem}</span>
    </p>
  );
}
