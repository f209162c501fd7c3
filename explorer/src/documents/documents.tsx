// The Documents view: a list to filter, one document opened beside it, and files to add.

import { useEffect, useState } from "preact/hooks";

import { go, writePlace } from "../address";
import { readFields, useFields } from "../fields";
import { explain, service } from "../service";
import type { ViewProps } from "../shell";
import { clean, formatDay } from "../text";
import type { Document } from "../types";
import { OpenDocument } from "./open";
import { Uploads } from "./uploads";

const PAGE = 50; // documents

export function Documents({ collection, place, visit }: ViewProps) {
  const { under = "", user = "", open = "" } = place.values;
  const [version, setVersion] = useState(0);
  useEffect(() => void (document.title = "Documents · Waylore"), []);
  const update = () => setVersion((number) => number + 1);
  const leave = () => {
    update();
    go({ view: "documents", values: { collection, under, user } });
  };
  return (
    <div class={open ? "documents opened" : "documents"}>
      <h1 class="hidden">Documents</h1>
      <div class="side">
        <Filter collection={collection} under={under} user={user} visit={visit} />
        <List key={`${under} ${user} ${version}`} collection={collection} under={under} user={user} open={open} />
        <Uploads collection={collection} onAdded={update} />
      </div>
      {open ? (
        <OpenDocument key={open} collection={collection} id={open} user={user} onForgotten={update} onClose={leave} />
      ) : (
        <p class="quiet hint">Choose a document to see its text, with the sentences that state facts marked.</p>
      )}
    </div>
  );
}

interface FilterProps {
  collection: string;
  under: string;
  user: string;
  visit: number;
}

function Filter({ collection, under, user, visit }: FilterProps) {
  const form = useFields({ under, user }, visit);
  const submit = (event: SubmitEvent) => go({ view: "documents", values: { collection, ...readFields(event) } });
  return (
    <form ref={form} class="filter" role="search" onSubmit={submit}>
      <label>
        Addresses that begin with
        <input name="under" autocomplete="off" />
      </label>
      <label>
        User
        <input name="user" autocomplete="off" />
      </label>
      <button type="submit">Filter</button>
    </form>
  );
}

interface ListProps {
  collection: string;
  under: string;
  user: string;
  open: string;
}

function List({ collection, under, user, open }: ListProps) {
  const [documents, setDocuments] = useState<Document[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const read = (cursor: string) =>
    service.listDocuments({ path: { collection }, query: { under, user, cursor: cursor || null, limit: PAGE } }).then(
      (page) => {
        setDocuments((known) => [...(cursor ? (known ?? []) : []), ...page.documents]);
        setNext(page.next);
      },
      (error: Error) => setProblem(explain(error)),
    );
  useEffect(() => void read(""), []);
  return (
    <>
      <p class="problem" role="alert">
        {problem}
      </p>
      {documents?.length === 0 && <p class="quiet">No document that you may see.</p>}
      <ul class="list" aria-label="Documents">
        {documents?.map((each) => (
          <li key={each.id}>
            <a
              href={writePlace({ view: "documents", values: { collection, under, user, open: each.id } })}
              aria-current={each.id === open ? "true" : undefined}
            >
              <b>{clean(each.title || each.uri || each.id)}</b>
              <span>
                {clean(each.uri)}
                {each.uri && " · "}
                {formatDay(each.at ?? each.recorded_at)}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {next && (
        <button type="button" class="plain" onClick={() => void read(next)}>
          More documents
        </button>
      )}
    </>
  );
}
