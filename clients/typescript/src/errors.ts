import type { FieldError, Problem } from "./generated/types.gen.js";

const PREFIX = "urn:waylore:problem:";
const MAX_TEXT = 500; // characters of an answer that is no problem, such as the page of a proxy

/** An error of the service (RFC 9457), or no answer at all. */
export class WayloreError extends Error {
  override readonly name = "WayloreError";
  /** Status code of the answer; 0 if there was none. */
  readonly status: number;
  /** Kind of the error, such as `not-found` or `unreachable`; it does not change with the wording. */
  readonly kind: string;
  readonly title: string;
  /** What is wrong, and what to do next. */
  readonly detail: string;
  /** Id of the request in the log of the service. */
  readonly requestId: string;
  /** Errors in single fields of the request. */
  readonly errors: FieldError[];
  /** Seconds to wait before the same request may succeed; undefined if it will not. */
  readonly retryAfter: number | undefined;

  constructor(problem: Problem, options: { retryAfter?: number; cause?: unknown } = {}) {
    super(`${problem.title}: ${problem.detail}`, { cause: options.cause });
    this.status = problem.status;
    this.kind = problem.type.replace(PREFIX, "");
    this.title = problem.title;
    this.detail = problem.detail;
    this.requestId = problem.request_id;
    this.errors = problem.errors;
    this.retryAfter = options.retryAfter;
  }
}

/** Send a request, and throw a `WayloreError` unless it succeeds. A request that you abort throws its reason. */
export async function send(request: Request, fetch: typeof globalThis.fetch): Promise<Response> {
  const response = await fetch(request).catch((cause: unknown) => {
    throw request.signal.aborted ? cause : createUnreachableError(request.url, cause);
  });
  if (response.ok) return response;
  throw await readError(response);
}

function createUnreachableError(url: string, cause: unknown): WayloreError {
  const { origin } = new URL(url);
  const reason = cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause);
  const remedy = "check the address, and for a page in a browser http.cors_origins of the service";
  const detail = `no answer from ${origin} (${reason}); ${remedy}`;
  return new WayloreError(createProblem(0, "unreachable", "No answer", detail), { cause });
}

async function readError(response: Response): Promise<WayloreError> {
  const text = await response.text();
  const seconds = response.headers.get("Retry-After");
  const retryAfter = seconds === null ? {} : { retryAfter: Number(seconds) };
  const isProblem = response.headers.get("Content-Type")?.startsWith("application/problem+json");
  const title = response.statusText || `Status ${response.status}`;
  const problem = isProblem ? JSON.parse(text) : createProblem(response.status, "other", title, text.slice(0, MAX_TEXT));
  return new WayloreError(problem, retryAfter);
}

function createProblem(status: number, kind: string, title: string, detail: string): Problem {
  return { type: PREFIX + kind, title, status, detail, request_id: "", errors: [] };
}
