import { send, WayloreError } from "./errors.js";
import { createClient } from "./generated/client/index.js";
import { Operations, type Options } from "./generated/sdk.gen.js";
import type { FollowJobData, FollowJobResponse } from "./generated/types.gen.js";

export { WayloreError } from "./errors.js";
export type * from "./generated/index.js";

export interface WayloreOptions {
  /** Address of the service, such as `http://127.0.0.1:8080`. */
  url: string;
  /** API key or OpenID token, or a function that returns one for each request; absent if the service needs none. */
  key?: string | (() => string | Promise<string>) | undefined;
  /** Collection of all calls that name no other in `path`; `default` if absent. */
  collection?: string;
  /** Sends the requests; the `fetch` of Node and of browsers if absent. */
  fetch?: typeof globalThis.fetch;
}

/** A collection of a Waylore service. Each operation of the service is a method; errors are a `WayloreError`. */
export class Waylore extends Operations {
  constructor({ url, key, collection = "default", fetch = globalThis.fetch }: WayloreOptions) {
    const client = createClient({
      baseUrl: url,
      auth: key,
      throwOnError: true,
      fetch: (input, init) => send(new Request(input, init), fetch),
      requestValidator: async (request) => nameCollection(request as { path?: object }, collection),
    });
    super({ client });
  }

  /**
   * Follow job
   *
   * Follow a job until it ends. The stream has the job after each change. It continues after a lost connection.
   */
  override followJob<ThrowOnError extends boolean = true>(
    options: Options<FollowJobData, ThrowOnError, FollowJobResponse>,
  ) {
    return super.followJob({ onSseError: throwUnlessTemporary, ...options });
  }
}

/** Add the collection to the path of a request. The generated client calls this before it builds the address. */
function nameCollection(request: { path?: object }, collection: string): void {
  request.path = { collection, ...request.path };
}

function throwUnlessTemporary(error: unknown): void {
  const isRefused = error instanceof WayloreError && error.status !== 0 && error.retryAfter === undefined;
  const isAborted = error instanceof DOMException && error.name === "AbortError";
  if (isRefused || isAborted) throw error;
}
