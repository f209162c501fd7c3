// Ask for a key, when the service requires one.

import { useEffect, useState } from "preact/hooks";

import { explain, service } from "./service";
import { type Provider, findProvider, getKey, setKey, startLogin } from "./session";

const NO_LOGIN = "signing in needs a page that is served with https"; // without it, browsers compute no hash

export function Login({ reason, onOpen }: { reason: string; onOpen: () => void }) {
  const [problem, setProblem] = useState(reason);
  const [provider, setProvider] = useState<Provider | null>(null);
  useEffect(() => void findProvider().then(setProvider, () => setProvider(null)), []);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const former = getKey();
    setKey(String(new FormData(event.currentTarget as HTMLFormElement).get("key")).trim());
    try {
      await service.listCollections({ query: { limit: 1 } });
      onOpen();
    } catch (error) {
      setKey(former);
      setProblem(explain(error));
    }
  };
  return (
    <main class="login">
      <h1>Waylore</h1>
      <p>This service asks for a key. It stays in this tab and is forgotten when you close it.</p>
      {provider?.address && (
        <p>
          <button type="button" onClick={() => void startLogin(provider).catch(() => setProblem(NO_LOGIN))}>
            Sign in with {new URL(provider.issuer).host}
          </button>
        </p>
      )}
      <form onSubmit={submit}>
        <label for="key">API key, or a token of your OpenID provider</label>
        <input id="key" name="key" type="password" autocomplete="off" required spellcheck={false} />
        <button type="submit">Open</button>
      </form>
      <p class="problem" role="alert">
        {problem}
      </p>
      <p class="quiet">
        <code>waylore keys create NAME</code> makes a key. <code>waylore explore</code> needs none.
      </p>
    </main>
  );
}
