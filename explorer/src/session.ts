// The key of the user: kept for this tab only, and sent with each request. `waylore explore` gives a ticket instead,
// which is exchanged once for a key.

const KEY = "waylore.key";

export function getKey(): string {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setKey(key: string): void {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** Exchange the ticket of the address, if it has one, and remove it from the address bar and the history. */
export async function exchangeTicket(): Promise<string> {
  const given = new URLSearchParams(location.hash.slice(1));
  const ticket = given.get("ticket");
  if (!ticket) return "";
  const collection = given.get("collection") ?? "";
  const kept = collection ? `#/ask?${new URLSearchParams({ collection })}` : "#/ask";
  history.replaceState(null, "", `${location.pathname}${kept}`);
  const headers = { "Content-Type": "application/octet-stream" };
  const response = await fetch("ticket", { method: "POST", headers, body: ticket });
  const answer = (await response.json()) as { token?: string; detail?: string };
  if (answer.token) setKey(answer.token);
  return answer.token ? "" : (answer.detail ?? "the ticket was refused");
}
