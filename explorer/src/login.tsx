// Ask for a key, when the service requires one.

import { useState } from "preact/hooks";

import { listCollections } from "./api";
import { getKey, setKey } from "./session";

export function Login({ reason, onOpen }: { reason: string; onOpen: () => void }) {
  const [problem, setProblem] = useState(reason);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const former = getKey();
    setKey(String(new FormData(event.currentTarget as HTMLFormElement).get("key")).trim());
    try {
      await listCollections();
      onOpen();
    } catch (error) {
      setKey(former);
      setProblem((error as Error).message);
    }
  };
  return (
    <main class="login">
      <h1>Waylore</h1>
      <p>This service asks for a key. It stays in this tab and is forgotten when you close it.</p>
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
