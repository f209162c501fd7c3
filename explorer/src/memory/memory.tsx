// The Memory view: what holds now of a user, and how it came about: what superseded what, and who said it.

import { useEffect, useState } from "preact/hooks";

import { go } from "../address";
import { readFields, useFields } from "../fields";
import { explain, service } from "../service";
import type { ViewProps } from "../shell";
import { clean, formatDay, spell } from "../text";
import type { Assertion, Change, ChangeList, Profile } from "../types";

interface Memory {
  profile: Profile;
  changes: ChangeList;
}

export function MemoryView({ collection, place, visit }: ViewProps) {
  const user = place.values["user"] ?? "";
  const [memory, setMemory] = useState<Memory | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = user ? `${user} · Waylore` : "Memory · Waylore";
    setProblem("");
    let isLeft = false;
    const path = { collection };
    const profile = service.getProfile({ path, query: { user, budget: 2_000 } });
    Promise.all([profile, service.listChanges({ path, query: { user, limit: 200 } })]).then(
      ([now, changes]) => isLeft || setMemory({ profile: now, changes }),
      (error: Error) => isLeft || setProblem(explain(error)),
    );
    return () => void (isLeft = true);
  }, [collection, visit]);
  return (
    <div class="memory">
      <h1 class="hidden">Memory</h1>
      <UserForm collection={collection} user={user} visit={visit} />
      <p class="problem" role="alert">
        {problem}
      </p>
      {memory && !problem && (
        <div class="halves">
          <Now profile={memory.profile} user={user} />
          <Past changes={memory.changes} user={user} />
        </div>
      )}
    </div>
  );
}

function UserForm({ collection, user, visit }: { collection: string; user: string; visit: number }) {
  const form = useFields({ user }, visit);
  const submit = (event: SubmitEvent) => go({ view: "memory", values: { collection, ...readFields(event) } });
  return (
    <form ref={form} class="names" role="search" onSubmit={submit}>
      <label>
        User
        <input name="user" autocomplete="off" placeholder="empty for a memory without users" />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function Now({ profile, user }: { profile: Profile; user: string }) {
  return (
    <section aria-labelledby="now">
      <h2 id="now">What holds now</h2>
      {profile.lines.length === 0 && (
        <p class="quiet">
          {user
            ? `Nothing that you may see is known of ${user}.`
            : "Nothing is known without a user. Write the name of a user above: the one that messages were remembered for."}
        </p>
      )}
      <dl>
        {profile.lines.map(({ assertions }, index) => (
          <div key={index}>
            <dt>{spell(assertions[0]?.fact.predicate ?? "")}</dt>
            {assertions.map((assertion, number) => (
              <dd key={number}>
                <b>{clean(assertion.fact.object)}</b>
                <Words assertion={assertion} />
              </dd>
            ))}
          </div>
        ))}
      </dl>
      {profile.has_more && <p class="quiet">There is more; these are the most used and the newest.</p>}
    </section>
  );
}

function Past({ changes, user }: { changes: ChangeList; user: string }) {
  const newest = changes.changes.toReversed();
  return (
    <section aria-labelledby="past">
      <h2 id="past">How it came about</h2>
      {newest.length === 0 && <p class="quiet">No change is known.</p>}
      <ol class="changes">
        {newest.map((change, index) => (
          <li key={index} class={change.kind}>
            <time dateTime={change.at}>{formatDay(change.at)}</time> <span class="tag">{change.kind}</span>
            <p>
              <Told change={change} user={user} />
            </p>
            {change.after && <Words assertion={change.after} />}
            {change.before && (
              <p class="before">
                <span class="hidden">before: </span>
                <s>{clean(change.before.fact.object)}</s>
                <Words assertion={change.before} />
              </p>
            )}
          </li>
        ))}
      </ol>
      {changes.has_more && <p class="quiet">Older changes are left out.</p>}
    </section>
  );
}

/** What holds since the change, or what does no longer; the user is named by the page. */
function Told({ change: { before, after }, user }: { change: Change; user: string }) {
  const fact = (after ?? before)?.fact;
  if (!fact) return null;
  return (
    <>
      {fact.subject !== user && `${clean(fact.subject)} `}
      <em>{spell(fact.predicate)}</em> {clean(fact.object)}
    </>
  );
}

/** What was said, by whom and when. */
function Words({ assertion: { fact, passage, session } }: { assertion: Assertion }) {
  const said = clean(fact.statement || passage.text);
  const about = [clean(passage.speaker), passage.at && formatDay(passage.at), session && `session ${clean(session)}`];
  return (
    <span class="words">
      <q>{said}</q> <small>{about.filter(Boolean).join(", ")}</small>
    </span>
  );
}
