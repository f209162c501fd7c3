// One document: its passages with the sentences that state facts marked, the facts beside them, and how to forget it.

import { useEffect, useState } from "preact/hooks";

import { describeFact } from "../ask/way";
import { splitBlocks } from "../blocks";
import { Marked } from "../marked";
import { BlockText } from "../passage";
import { explain, service } from "../service";
import { clean, count, formatDay, spell } from "../text";
import type { Fact, IndexedDocument, Passage } from "../types";
import { Forget } from "./forget";
import { markStatements } from "./statements";

const NO_TERMS: ReadonlySet<string> = new Set();

interface OpenProps {
  collection: string;
  id: string;
  user: string;
  onForgotten: () => void;
  onClose: () => void;
}

export function OpenDocument({ collection, id, user, onForgotten, onClose }: OpenProps) {
  const [shown, setShown] = useState<IndexedDocument | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const asked = service.getDocument({ path: { collection, document: id }, query: { user } });
    asked.then(setShown, (error: Error) => setProblem(explain(error)));
  }, []);
  if (problem)
    return (
      <p class="problem" role="alert">
        {problem}
      </p>
    );
  if (!shown) return <p class="quiet">Opening…</p>;
  const { document, passages, facts } = shown;
  return (
    <article class="open" aria-labelledby="open-title">
      <button type="button" class="plain back" onClick={onClose}>
        ← All documents
      </button>
      <h2 id="open-title">{clean(document.title || document.uri || document.id)}</h2>
      <p class="origin">
        {document.uri && <span class="uri">{clean(document.uri)}</span>}
        <span>{document.at ? formatDay(document.at) : `added ${formatDay(document.recorded_at)}`}</span>
        <span>{document.source.replaceAll("_", " ")}</span>
        {document.user && <span>of {clean(document.user)}</span>}
        {document.labels.length > 0 && <span>for {document.labels.map(clean).join(", ")}</span>}
        <span>{count(passages.length, "passage")}</span>
        <span>{count(facts.length, "fact")}</span>
      </p>
      {passages.map((passage, index) => (
        <PassageText
          key={passage.id}
          number={index + 1}
          passage={passage}
          title={document.title}
          facts={facts.filter((fact) => fact.passage_id === passage.id)}
        />
      ))}
      <Forget collection={collection} id={id} user={user} onForgotten={onForgotten} />
    </article>
  );
}

interface PassageProps {
  number: number;
  passage: Passage;
  title: string;
  facts: Fact[];
}

function PassageText({ number, passage, title, facts }: PassageProps) {
  const blocks = splitBlocks(clean(passage.text));
  const statements = facts.map((fact) => clean(fact.statement));
  const said = [passage.speaker, passage.at && formatDay(passage.at)].filter(Boolean).join(", ");
  return (
    <section class="part" aria-label={`Passage ${number}`}>
      {said && <p class="quiet">{clean(said)}</p>}
      <div class="text">
        {blocks.filter(({ kind, text }) => kind !== "heading" || text !== title).map((block, index) => (
          <BlockText key={index} block={block} show={(text) => <Stated text={text} statements={statements} />} />
        ))}
      </div>
      {facts.length > 0 && (
        <ul class="facts" aria-label="Facts of this passage">
          {facts.map((fact, index) => (
            <li key={index}>
              <b>{clean(fact.subject)}</b> <em>{spell(fact.predicate) || "named with"}</em> <b>{clean(fact.object)}</b>
              {describeFact(fact) && <small> {describeFact(fact)}</small>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** A text with the sentences marked that state facts. */
function Stated({ text, statements }: { text: string; statements: string[] }) {
  return (
    <>
      {markStatements(text, statements).map((part, index) => {
        const shown = <Marked key={index} text={part.text} terms={NO_TERMS} />;
        return part.isStatement ? <mark key={index}>{shown}</mark> : shown;
      })}
    </>
  );
}
