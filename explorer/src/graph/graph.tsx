// The Graph view: a name and what authors wrote around it, drawn and as a list, at any time; or the way between two.

import { useEffect, useMemo, useState } from "preact/hooks";

import { go, keep, writePlace } from "../address";
import { readFields, useFields } from "../fields";
import { explain, service } from "../service";
import type { ViewProps } from "../shell";
import { clean, count } from "../text";
import type { Connection, Entity, EntityList, Related } from "../types";
import { Drawing } from "./drawing";
import { Merged, type Separated, Undo } from "./merged";
import { MAX_NODES, collect, describeShown, findPeriod, readLimit } from "./model";
import { Time, readDay } from "./time";
import { Tree } from "./tree";

const MAX_FACTS = 1_000; // of one answer of the service
const NAMES_READ = 1_000; // to start with
const NAMES_SHOWN = 100; // the most mentioned of them
const SEPARATOR = "\n"; // between the names that were opened, which contain none

interface Answer {
  related: Related[];
  connection: Connection | null;
}

export function GraphView({ collection, place, visit }: ViewProps) {
  const { entity = "", to = "", hops = "1", more = "", nodes = "", user = "" } = place.values;
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState("");
  const [day, setDay] = useState(readDay(place.values["day"]));
  const [separated, setSeparated] = useState<Separated | null>(null);
  useEffect(() => setDay(readDay(place.values["day"])), [visit]);
  useEffect(() => {
    document.title = entity ? `${entity} · Waylore` : "Graph · Waylore";
    setProblem("");
    if (!entity) return setAnswer(null);
    let isLeft = false;
    read(collection, { entity, to, hops, more, nodes, user }).then(
      (news) => isLeft || setAnswer(news),
      (error: Error) => isLeft || setProblem(explain(error)),
    );
    return () => void (isLeft = true);
  }, [collection, visit]);
  const values = { ...place.values, day };
  const open = (name: string) => {
    const names = [...more.split(SEPARATOR).filter(Boolean), name];
    if (name !== entity) go({ view: "graph", values: { ...values, more: [...new Set(names)].join(SEPARATOR) } });
  };
  const chooseDay = (chosen: string) => {
    setDay(chosen);
    keep({ view: "graph", values: { ...values, day: chosen } });
  };
  const readAgain = (news: Separated | null) => {
    setSeparated(news);
    go({ view: "graph", values });
  };
  return (
    <div class="graph">
      <h1 class="hidden">Graph</h1>
      <GraphForm collection={collection} values={values} visit={visit} />
      <p class="problem" role="alert">
        {problem}
      </p>
      {separated && <Undo collection={collection} separated={separated} onUndone={() => readAgain(null)} />}
      {answer && (
        <Found
          key={entity}
          collection={collection}
          answer={answer}
          values={values}
          day={day}
          onShowDay={setDay}
          onChooseDay={chooseDay}
          onChoose={open}
          onSeparate={readAgain}
        />
      )}
      {!entity && <Names collection={collection} user={user} />}
    </div>
  );
}

/** Read the facts of the name, or the ways to another, and those of the names that were opened. */
async function read(collection: string, values: Record<string, string>): Promise<Answer> {
  const { entity = "", to = "", hops = "", more = "", nodes = "", user = "" } = values;
  const path = { collection };
  const around = { entity, hops: Number(hops) || 1, user, limit: Math.min(readLimit(nodes), MAX_FACTS) };
  const first = to ? [] : [service.getRelated({ path, query: around })];
  const opened = more.split(SEPARATOR).filter(Boolean);
  const others = opened.map((name) => service.getRelated({ path, query: { entity: name, user, limit: 60 } }));
  const connection = to ? await service.getConnection({ path, query: { entity, to, user, limit: 5 } }) : null;
  return { related: await Promise.all([...first, ...others]), connection };
}

interface FormProps {
  collection: string;
  values: Record<string, string>;
  visit: number;
}

function GraphForm({ collection, values, visit }: FormProps) {
  const form = useFields(values, visit);
  const submit = (event: SubmitEvent) =>
    go({ view: "graph", values: { collection, user: values["user"] ?? "", day: values["day"] ?? "", ...readFields(event) } });
  return (
    <form ref={form} class="names" role="search" onSubmit={submit}>
      <label>
        Name
        <input name="entity" required autocomplete="off" />
      </label>
      <label>
        and its way to
        <input name="to" autocomplete="off" placeholder="another name, if you like" />
      </label>
      <label>
        Facts away
        <select name="hops">
          {["1", "2", "3"].map((number) => (
            <option key={number}>
              {number}
            </option>
          ))}
        </select>
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

interface FoundProps {
  collection: string;
  answer: Answer;
  values: Record<string, string>;
  day: string; // on which facts are to hold; empty for all times
  onShowDay: (day: string) => void;
  onChooseDay: (day: string) => void;
  onChoose: (name: string) => void;
  onSeparate: (separated: Separated) => void;
}

function Found({ collection, answer, values, day, onShowDay, onChooseDay, onChoose, onSeparate }: FoundProps) {
  const found = useMemo(() => collect(answer.related, answer.connection, readLimit(values["nodes"])), [answer]);
  const period = useMemo(() => findPeriod(found.edges.values()), [found]);
  const unknown = answer.related.filter(({ entities }) => entities.length === 0);
  return (
    <div class="neighbourhood">
      <div class="drawn">
        {found.nodes.size > 1 && <Drawing found={found} day={day} onChoose={onChoose} />}
        {period && <Time period={period} day={day} onShow={onShowDay} onChoose={onChooseDay} />}
      </div>
      <section class="told" aria-label="The same as a list">
        {unknown.map((related) => (
          <Unknown key={related.name} name={related.name} others={[...related.candidates, ...related.similar]} values={values} />
        ))}
        {answer.connection && <Ways connection={answer.connection} day={day} values={values} />}
        {answer.related
          .filter(({ entities }) => entities.length > 0)
          .map((related) => (
            <section key={related.name} aria-label={clean(related.name)}>
              <h2>{clean(related.entities[0]?.name ?? related.name)}</h2>
              <OtherNames entities={related.entities} />
              {related.entities.length > 1 && (
                <Merged collection={collection} entities={related.entities} onSeparate={onSeparate} />
              )}
              <p class="quiet">{describeShown(related)}</p>
              <Tree facts={related.facts} day={day} values={values} />
            </section>
          ))}
        {found.isCut && (
          <p class="warning">
            Only {found.limit} names are drawn.{" "}
            {found.limit < MAX_NODES && (
              <a href={writePlace({ view: "graph", values: { ...values, nodes: String(MAX_NODES) } })}>Draw more</a>
            )}
          </p>
        )}
      </section>
    </div>
  );
}

function OtherNames({ entities }: { entities: Entity[] }) {
  const names = new Set(entities.flatMap(({ name, aliases }) => [name, ...aliases]).map(clean));
  names.delete(clean(entities[0]?.name ?? ""));
  if (!names.size) return null;
  return <p class="quiet">also called {[...names].join(", ")}</p>;
}

function Ways({ connection, day, values }: { connection: Connection; day: string; values: Record<string, string> }) {
  return (
    <section aria-label="Ways">
      <h2>{connection.names.map(clean).join(" to ")}</h2>
      <p class="quiet">
        {connection.paths.length ? count(connection.paths.length, "way") : "No way"} found;{" "}
        {connection.exhaustive ? "everything within reach was looked at" : "not everything was looked at"}:{" "}
        {count(connection.entities, "name")} and {count(connection.facts, "fact")}.
      </p>
      {connection.unknown.length > 0 && <p class="problem">No name {connection.unknown.map(clean).join(", ")}.</p>}
      {connection.paths.map((path, index) => (
        <section key={index} aria-label={`Way ${index + 1}`}>
          <p class="way">{clean(path.text)}</p>
          <Tree facts={path.steps} day={day} values={values} />
        </section>
      ))}
    </section>
  );
}

function Unknown({ name, others, values }: { name: string; others: Entity[]; values: Record<string, string> }) {
  return (
    <div class="problem">
      No name {clean(name)} that you may see.
      {others.length > 0 && (
        <>
          {" "}
          Did you mean{" "}
          {others.slice(0, 8).map((entity, index) => (
            <span key={entity.id}>
              {index > 0 && ", "}
              <a href={writePlace({ view: "graph", values: { ...values, entity: entity.name } })}>{clean(entity.name)}</a>
            </span>
          ))}
          ?
        </>
      )}
    </div>
  );
}

/** Names to start with. */
function Names({ collection, user }: { collection: string; user: string }) {
  const [found, setFound] = useState<EntityList | null>(null);
  const query = { user, limit: NAMES_READ };
  useEffect(() => void service.listEntities({ path: { collection }, query }).then(setFound, () => setFound(null)), [collection]);
  if (!found) return null;
  if (!found.entities.length) return <p class="quiet">No names that you may see are in the collection {collection}.</p>;
  const most = found.entities.toSorted((one, other) => other.passages - one.passages).slice(0, NAMES_SHOWN);
  const isAll = !found.after && most.length === found.entities.length;
  return (
    <section class="start" aria-label="Names">
      <p class="quiet">
        {isAll ? "The" : "Some of the"} names of the collection {collection}, the most mentioned first. Choose one, or write one above.
      </p>
      <ul>
        {most.map((entity) => (
          <li key={entity.id}>
            <a href={writePlace({ view: "graph", values: { collection, user, entity: entity.name } })}>{clean(entity.name)}</a>{" "}
            <small>{count(entity.passages, "passage")}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}
