// The key of the user: kept for this tab only, and sent with each request. `waylore explore` gives a ticket instead,
// which is exchanged once for a key, and an OpenID provider a code, which is exchanged for a token.

const KEY = "waylore.key";
const LOGIN = "waylore.login"; // while the provider asks who the user is

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

/** Where people sign in; without an address nobody can. */
export interface Provider {
  address: string;
  client_id: string;
  issuer: string;
}

export async function findProvider(): Promise<Provider> {
  return (await (await fetch("login")).json()) as Provider;
}

/** Send the browser to the provider. It comes back with a code; the place of the page waits in this tab. */
export async function startLogin({ address, client_id }: Provider): Promise<void> {
  const [verifier, state] = [makeWord(), makeWord()];
  sessionStorage.setItem(LOGIN, JSON.stringify({ verifier, state, place: location.hash }));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  const asked = {
    response_type: "code",
    scope: "openid",
    client_id,
    redirect_uri: findPage(),
    state,
    code_challenge: encode(hash),
    code_challenge_method: "S256",
  };
  location.assign(`${address}${address.includes("?") ? "&" : "?"}${new URLSearchParams(asked)}`);
}

/** Exchange the code of the address, if the provider has sent one, and return to the place before. */
export async function finishLogin(): Promise<string> {
  const given = new URLSearchParams(location.search);
  const kept = sessionStorage.getItem(LOGIN);
  if (!kept || !given.has("state")) return "";
  sessionStorage.removeItem(LOGIN);
  const { verifier, state, place } = JSON.parse(kept) as Record<"verifier" | "state" | "place", string>;
  history.replaceState(null, "", `${location.pathname}${place}`);
  if (given.get("state") !== state) return "this login was not begun here; sign in again";
  const code = given.get("code");
  if (!code) return given.get("error_description") || "the provider did not let you in";
  const body = JSON.stringify({ code, verifier, address: findPage() });
  const response = await fetch("login", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const answer = (await response.json()) as { token?: string; detail?: string };
  if (answer.token) setKey(answer.token);
  return answer.token ? "" : (answer.detail ?? "the login was refused");
}

function findPage(): string {
  return location.origin + location.pathname;
}

function makeWord(): string {
  return encode(crypto.getRandomValues(new Uint8Array(32)));
}

/** Return bytes as base64 for addresses, without padding. */
function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
