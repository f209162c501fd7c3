// What a search found: how it ran, the set that the question asks for, and a card for each passage.

import { Fragment } from "preact";

import { clean, count, formatDay, listTerms } from "../text";
import type { SearchResult, SetAnswer } from "../types";
import { Card } from "./card";
import { nameSearch } from "./shares";

interface ResultProps {
  result: SearchResult;
  collection: string;
  user: string;
}

export function Result({ result, collection, user }: ResultProps) {
  const terms = listTerms(result.query);
  const facts = new Map(result.facts.map((fact) => [fact.id, fact]));
  const ranks = new Map(result.hits.map((hit, index) => [hit.passage.id, index + 1]));
  const best = Math.max(...result.hits.map((hit) => hit.score), 0);
  return (
    <>
      <Gate result={result} />
      {result.set_answer && <Set answer={result.set_answer} />}
      {result.hits.length === 0 && <p class="nothing">Nothing was found that you may see.</p>}
      <ol class="hits" aria-label="Passages, best first">
        {result.hits.map((hit, index) => (
          <li key={hit.passage.id}>
            <Card
              hit={hit}
              rank={index + 1}
              best={best}
              result={result}
              terms={terms}
              facts={facts}
              ranks={ranks}
              collection={collection}
              user={user}
            />
          </li>
        ))}
      </ol>
    </>
  );
}

/** How the search ran, and why the graph was used or not. */
function Gate({ result }: { result: SearchResult }) {
  const names = result.entities.map((entity) => clean(entity.name));
  return (
    <section class="gate" aria-label="How the search ran">
      <p>
        <strong>{count(result.hits.length, "passage")}</strong> · {clean(result.route_reason || result.recipe)}
        {result.confidence !== null && ` · confidence ${result.confidence.toFixed(2)}`}
      </p>
      {result.skip_reason ? (
        <p>
          <span class="tag">graph not used</span> {clean(result.skip_reason)}
        </p>
      ) : (
        names.length > 0 && (
          <p>
            <span class="tag on">graph used</span> the question names{" "}
            {names.map((name, index) => (
              <Fragment key={name}>
                {index > 0 && ", "}
                <b class="named">{name}</b>
              </Fragment>
            ))}
          </p>
        )
      )}
      {result.spans.map((span) => (
        <p key={span.words}>
          <span class="tag on">dates</span> nearer first: {clean(span.words)}, {formatDay(span.first)}
          {span.last !== span.first && ` to ${formatDay(span.last)}`}
        </p>
      ))}
      {result.is_relevant === false && result.hits.length > 0 && (
        <p class="warning">There is probably no answer here: {clean(result.relevance_reason)}</p>
      )}
      {result.missing.map((what) => (
        <p key={what} class="warning">
          Not searched: {nameSearch(clean(what))}
        </p>
      ))}
    </section>
  );
}

function Set({ answer }: { answer: SetAnswer }) {
  return (
    <section class="set" aria-label="What the graph states">
      <h2>{clean(answer.summary)}</h2>
      <ul>
        {answer.lines.map((line) => (
          <li key={line}>{clean(line)}</li>
        ))}
      </ul>
      {!answer.is_complete && <p class="quiet">These are not all.</p>}
    </section>
  );
}
