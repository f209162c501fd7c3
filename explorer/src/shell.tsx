// The frame of every view: who the user is, which collection is shown, and the way between the views.

import { useEffect, useState } from "preact/hooks";
import { WayloreError } from "waylore";

import { type Place, go, usePlace, writePlace } from "./address";
import { Ask } from "./ask/ask";
import { Documents } from "./documents/documents";
import { GraphView } from "./graph/graph";
import { InsightView } from "./insight/insight";
import { Login } from "./login";
import { MemoryView } from "./memory/memory";
import { explain, isUnreachable, service } from "./service";
import { getKey, setKey } from "./session";
import { type Theme, getTheme, setTheme } from "./theme";
import type { Collection } from "./types";

export interface ViewProps {
  collection: string;
  place: Place;
  visit: number;
}

const VIEWS = [
  { name: "ask", title: "Ask", view: Ask },
  { name: "graph", title: "Graph", view: GraphView },
  { name: "documents", title: "Documents", view: Documents },
  { name: "memory", title: "Memory", view: MemoryView },
  { name: "insight", title: "Insight", view: InsightView },
] as const;

type Access =
  | { state: "unknown" }
  | { state: "silent"; reason: string } // no service answers
  | { state: "locked"; reason: string }
  | { state: "open"; collections: Collection[] };

const MOST_COLLECTIONS = 100; // that are listed

export function Shell({ refusal }: { refusal: string }) {
  const [place, visit] = usePlace();
  const [access, setAccess] = useState<Access>({ state: "unknown" });
  const open = async () => setAccess(await readAccess(refusal));
  useEffect(() => void open(), [place.values["collection"]]); // one that the address names may be new
  if (access.state === "unknown") return <p class="waiting">Opening…</p>;
  if (access.state === "silent") return <Silent reason={access.reason} onRetry={open} />;
  if (access.state === "locked") return <Login reason={access.reason} onOpen={open} />;
  const collection = place.values["collection"] || chooseCollection(access.collections);
  const shown = VIEWS.find(({ name }) => name === place.view) ?? VIEWS[0];
  const View = shown.view;
  const leave = () => {
    setKey("");
    setAccess({ state: "locked", reason: "" });
  };
  return (
    <>
      <a class="skip" href="#main" onClick={focusMain}>
        Skip to the content
      </a>
      <Header place={place} shown={shown.name} collection={collection} names={access.collections} onLeave={leave} />
      <main id="main" tabIndex={-1}>
        {isUnknown(collection, access.collections) ? (
          <UnknownCollection name={collection} known={access.collections} view={shown.name} />
        ) : (
          <View key={`${shown.name} ${collection}`} collection={collection} place={place} visit={visit} />
        )}
      </main>
    </>
  );
}

async function readAccess(refusal: string): Promise<Access> {
  try {
    const { collections } = await service.listCollections({ query: { limit: MOST_COLLECTIONS } });
    return { state: "open", collections };
  } catch (error) {
    if (isUnreachable(error)) return { state: "silent", reason: explain(error) };
    const isKeyMissing = error instanceof WayloreError && error.status === 401;
    return { state: "locked", reason: refusal || (isKeyMissing ? "" : explain(error)) };
  }
}

function chooseCollection(collections: Collection[]): string {
  const names = collections.map(({ name }) => name);
  return names.includes("default") ? "default" : (names[0] ?? "default");
}

/** Return whether no collection of this name may be seen. A store without collections gets them as they are written. */
function isUnknown(collection: string, known: Collection[]): boolean {
  return known.length > 0 && known.length < MOST_COLLECTIONS && !known.some(({ name }) => name === collection);
}

function UnknownCollection({ name, known, view }: { name: string; known: Collection[]; view: string }) {
  return (
    <>
      <p class="problem" role="alert">
        There is no collection {name} that you may see.
      </p>
      <ul aria-label="Collections">
        {known.map((each) => (
          <li key={each.name}>
            <a href={writePlace({ view, values: { collection: each.name } })}>{each.name}</a>
          </li>
        ))}
      </ul>
    </>
  );
}

function Silent({ reason, onRetry }: { reason: string; onRetry: () => void }) {
  return (
    <main class="login">
      <h1>Waylore</h1>
      <p class="problem" role="alert">
        {reason}
      </p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </main>
  );
}

function focusMain(event: Event): void {
  event.preventDefault(); // the address bar holds the state
  document.getElementById("main")?.focus();
}

interface HeaderProps {
  place: Place;
  shown: string;
  collection: string;
  names: Collection[];
  onLeave: () => void;
}

function Header({ place, shown, collection, names, onLeave }: HeaderProps) {
  const change = (event: Event) =>
    go({ view: place.view, values: { collection: (event.currentTarget as HTMLSelectElement).value } });
  return (
    <header class="bar">
      <a class="wordmark" href={writePlace({ view: "ask", values: { collection } })}>
        <Mark />
        Waylore
      </a>
      <nav aria-label="Views">
        {VIEWS.map(({ name, title }) => (
          <a
            key={name}
            href={writePlace({ view: name, values: { collection } })}
            aria-current={name === shown ? "page" : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="corner">
        {names.length > 1 ? (
          <label class="quiet">
            <span class="hidden">Collection</span>
            <select value={collection} onChange={change}>
              {[...new Set([...names.map(({ name }) => name), collection])].map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        ) : (
          <span class="quiet">{collection}</span>
        )}
        <ThemeButton />
        {getKey() && (
          <button type="button" class="plain" onClick={onLeave}>
            Sign out
          </button>
        )}
      </div>
    </header>
  );
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M6 7c0 9 20 7 20 18" />
      <circle cx="6" cy="7" r="4" />
      <circle class="end" cx="26" cy="25" r="5" />
    </svg>
  );
}

function ThemeButton() {
  const [theme, setShown] = useState<Theme>(getTheme);
  const other = theme === "dark" ? "light" : "dark";
  const change = () => {
    setTheme(other);
    setShown(other);
  };
  return (
    <button type="button" class="plain" aria-label={`${other === "dark" ? "Dark" : "Light"} colours`} onClick={change}>
      {other === "dark" ? "Dark" : "Light"}
    </button>
  );
}
