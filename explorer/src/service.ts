// The service that serves this page, through the client for TypeScript. Each call sends the key of the session.

import { Waylore, WayloreError } from "waylore";

import { getKey } from "./session";
import type { Job, Receipt } from "./types";

/** Send no cookies, which the service has none of. */
const sendPlainly: typeof fetch = (request, options) => fetch(request, { ...options, credentials: "omit" });

/** Return the folder of the page: a proxy may serve it below a prefix. */
function findFolder(): string {
  return location.origin + location.pathname.replace(/\/[^/]*$/, "");
}

export const service = new Waylore({ url: findFolder(), key: getKey, fetch: sendPlainly });

/** Return whether the service gave no answer at all. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof WayloreError && error.kind === "unreachable";
}

/** Say what went wrong, to somebody who looks at a page. */
export function explain(error: unknown): string {
  return isUnreachable(error) ? "The service does not answer. Check that it runs, then try again." : (error as Error).message;
}

/** Forget a document, or only say what would be removed. */
export function forget(collection: string, id: string, user: string, isTrial: boolean): Promise<Receipt> {
  return service.forgetDocuments({ path: { collection }, body: { documents: [id], user, dry_run: isTrial } });
}

/** Send a file to be added. Its address has no characters that a link treats specially. */
export function upload(collection: string, file: File): Promise<Job> {
  const uri = file.name.replace(/[#?\u0000-\u001f]/g, "_");
  return service.uploadFile({ path: { collection, uri }, body: file });
}

/** Follow a job by its events until it ends; `show` gets the job at each change. */
export async function followJob(collection: string, job: string, show: (job: Job) => void): Promise<void> {
  const { stream } = await service.followJob({ path: { collection, job } });
  for await (const now of stream) show(now);
}
