// The Ask view: a question, and the way to each of its answers.

import { useEffect, useState } from "preact/hooks";

import { writePlace } from "../address";
import { explain, service } from "../service";
import type { ViewProps } from "../shell";
import { count } from "../text";
import type { SearchResult, Statistics } from "../types";
import { QuestionForm } from "./form";
import { readQuestion } from "./question";
import { Result } from "./result";

type Answer = { result?: SearchResult; problem?: string; isWaiting?: boolean };

export function Ask({ collection, place, visit }: ViewProps) {
  const [answer, setAnswer] = useState<Answer>({});
  const question = readQuestion(place.values);
  useEffect(() => {
    document.title = question ? `${question.query} · Waylore` : "Waylore";
    if (!question) return setAnswer({});
    const leaving = new AbortController();
    setAnswer(({ result }) => ({ ...(result ? { result } : {}), isWaiting: true }));
    service
      .searchCollection({ path: { collection }, body: { ...question, explain: true }, signal: leaving.signal })
      .then((result) => setAnswer({ result }))
      .catch((error: Error) => leaving.signal.aborted || setAnswer({ problem: explain(error) }));
    return () => leaving.abort();
  }, [collection, visit]);
  return (
    <div class="ask">
      <h1 class="hidden">Ask</h1>
      <QuestionForm collection={collection} values={place.values} visit={visit} />
      <p class="hidden" role="status">
        {announce(answer)}
      </p>
      {answer.problem && (
        <p class="problem" role="alert">
          {answer.problem}
        </p>
      )}
      {answer.isWaiting && !answer.result && (
        <p class="quiet" aria-hidden="true">
          Searching…
        </p>
      )}
      {answer.result && (
        <div class={answer.isWaiting ? "stale" : undefined} aria-busy={answer.isWaiting ?? false}>
          <Result result={answer.result} collection={collection} user={place.values["user"] ?? ""} />
        </div>
      )}
      {!question && <Welcome collection={collection} />}
    </div>
  );
}

function announce({ result, isWaiting }: Answer): string {
  if (isWaiting) return "Searching";
  return result ? `${count(result.hits.length, "passage")} found` : "";
}

function Welcome({ collection }: { collection: string }) {
  const [size, setSize] = useState<Statistics | null>(null);
  useEffect(() => void service.getStats({ path: { collection } }).then(setSize, () => setSize(null)), [collection]);
  return (
    <div class="welcome">
      <p>
        Ask in plain words. Every passage that is found shows its way: from the names in your question, over what
        authors wrote, to the passage itself.
      </p>
      {size?.documents === 0 && (
        <p>
          The collection {collection} is empty. Add files on the page{" "}
          <a href={writePlace({ view: "documents", values: { collection } })}>Documents</a>, or with <code>waylore add</code>.
        </p>
      )}
      {size && size.documents > 0 && (
        <p class="quiet">
          The collection {collection} has {count(size.documents, "document")}, {count(size.passages, "passage")},{" "}
          {count(size.entities, "name")} and {count(size.facts, "fact")}
          {size.model ? `, with vectors of ${size.model}` : ", without vectors"}.
        </p>
      )}
      <p class="quiet">
        The key <kbd>/</kbd> leads to the question. The address of the page holds the question and all options: send it
        to a colleague, who sees the same answer as far as their key allows.
      </p>
    </div>
  );
}
