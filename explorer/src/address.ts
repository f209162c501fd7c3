// The address bar holds the whole state: `#/ask?collection=default&q=…`. It follows a `#`, so that no server logs it.

import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  values: Record<string, string>;
}

export function readPlace(hash: string = location.hash): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path || "ask", values: Object.fromEntries(new URLSearchParams(query)) };
}

export function writePlace(place: Place): string {
  const given = Object.entries(place.values).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return `#/${place.view}${query ? `?${query}` : ""}`;
}

/** Go to a place, as a new entry of the history, or again if it is the same. */
export function go(place: Place): void {
  const hash = writePlace(place);
  if (hash === location.hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}

/** Write a place into the address bar, without an entry of the history and without a visit. */
export function keep(place: Place): void {
  history.replaceState(null, "", writePlace(place));
}

/** Return the place of the address bar, and a number that grows with each visit. */
export function usePlace(): [Place, number] {
  const [visit, setVisit] = useState<[Place, number]>(() => [readPlace(), 0]);
  useEffect(() => {
    const read = () => setVisit(([, count]) => [readPlace(), count + 1]);
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return visit;
}
