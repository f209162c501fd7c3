// Calls of the service. Each sends the key of the session; an error has the message of the service, which names the
// remedy. A generated client will take the place of this module.

import { getKey } from "./session";
import type {
  ChangeList,
  Collection,
  Connection,
  DocumentPage,
  EntityList,
  IndexedDocument,
  Job,
  Profile,
  Receipt,
  Related,
  SearchResult,
  Statistics,
} from "./types";

export class ServiceError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export interface Question {
  query: string;
  method?: string;
  top_k?: number;
  labels?: string[];
  user?: string;
  as_of?: string;
  since?: string;
  until?: string;
}

export async function call<T>(path: string, options: RequestInit = {}): Promise<T> {
  const response = await send(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function send(path: string, options: RequestInit): Promise<Response> {
  const headers = new Headers(options.headers);
  if (getKey()) headers.set("Authorization", `Bearer ${getKey()}`);
  const response = await fetch(path, { ...options, headers, credentials: "omit" }).catch((error: unknown) => {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ServiceError(0, "the service does not answer; is it still running?");
  });
  if (!response.ok) throw new ServiceError(response.status, await readProblem(response));
  return response;
}

export function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return call<T>(path, { method: "POST", headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) });
}

async function readProblem(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as { detail?: string };
    return problem.detail || response.statusText;
  } catch {
    return response.statusText || `status ${response.status}`;
  }
}

export function toPath(collection: string, rest: string): string {
  return `v1/collections/${encodeURIComponent(collection)}/${rest}`;
}

function toQuery(values: Record<string, string>): URLSearchParams {
  return new URLSearchParams(Object.entries(values).filter(([, value]) => value));
}

export async function listCollections(): Promise<Collection[]> {
  return (await call<{ collections: Collection[] }>("v1/collections?limit=100")).collections;
}

export function getStatistics(collection: string): Promise<Statistics> {
  return call(toPath(collection, "stats"));
}

export function search(collection: string, question: Question, signal?: AbortSignal): Promise<SearchResult> {
  return post(toPath(collection, "search"), { ...question, explain: true }, signal);
}

export function listDocuments(collection: string, values: Record<string, string>): Promise<DocumentPage> {
  return call(toPath(collection, `documents?${toQuery(values)}`));
}

export function getDocument(collection: string, id: string, user: string): Promise<IndexedDocument> {
  return call(toPath(collection, `documents/${id}?${toQuery({ user })}`));
}

/** Forget a document, or only say what would be removed. */
export function forget(collection: string, id: string, user: string, isTrial: boolean): Promise<Receipt> {
  return post(toPath(collection, "documents/forget"), { documents: [id], user, dry_run: isTrial });
}

/** Return what is left of a receipt's items: nothing, if all are gone. */
export async function verify(collection: string, receipt: Receipt): Promise<string[]> {
  return (await post<{ left: string[] }>(toPath(collection, "receipts/verify"), receipt)).left;
}

export function upload(collection: string, file: File): Promise<Job> {
  const headers = { "Content-Type": "application/octet-stream" };
  const name = file.name.replace(/[#?\u0000-\u001f]/g, "_");
  return call(toPath(collection, `uploads/${encodeURIComponent(name)}`), { method: "PUT", headers, body: file });
}

/** Follow a job by its events until it ends; `show` gets the job at each change. */
export async function followJob(collection: string, id: string, show: (job: Job) => void): Promise<void> {
  const response = await send(toPath(collection, `jobs/${id}/events`), {});
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) {
    const events = (rest + read.value).split(/\r?\n\r?\n/);
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data) show(JSON.parse(data) as Job);
    }
  }
}

export function getRelated(collection: string, values: Record<string, string>): Promise<Related> {
  return call(toPath(collection, `related?${toQuery(values)}`));
}

export function connect(collection: string, values: Record<string, string>): Promise<Connection> {
  return call(toPath(collection, `connection?${toQuery(values)}`));
}

export function listEntities(collection: string, values: Record<string, string>): Promise<EntityList> {
  return call(toPath(collection, `entities?${toQuery(values)}`));
}

export function getProfile(collection: string, user: string): Promise<Profile> {
  return call(toPath(collection, `profile?${toQuery({ user, budget: "2000" })}`));
}

export function listChanges(collection: string, user: string): Promise<ChangeList> {
  return call(toPath(collection, `changes?${toQuery({ user, limit: "200" })}`));
}
