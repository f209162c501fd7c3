// Tests against a running service: its address is WAYLORE_URL, its administrator's key WAYLORE_KEY.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { Waylore, WayloreError, type Fact, type JobResponse, type SearchResult } from "waylore";

const url = process.env["WAYLORE_URL"]!;
const notes = new Waylore({ url, key: process.env["WAYLORE_KEY"]!, collection: "notes" });

async function catchError(call: Promise<unknown>): Promise<WayloreError> {
  const error = await call.then(
    () => assert.fail("the call succeeded"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof WayloreError, String(error));
  return error;
}

async function createKey(rights: { scope: "read" | "write"; labels?: string[] }): Promise<string> {
  const body = { name: "a test", collections: ["notes"], ...rights };
  return (await notes.createKey({ body })).token;
}

async function follow(job: string): Promise<JobResponse[]> {
  const { stream } = await notes.followJob({ path: { job } });
  const jobs: JobResponse[] = [];
  for await (const each of stream) jobs.push(each);
  return jobs;
}

before(async () => {
  await notes.putCollection({ body: { description: "Notes of a team" } });
  await notes.addDocument({
    body: {
      text: "The login needs the session service.",
      uri: "docs/login.md",
      facts: [{ subject: "login", predicate: "needs", object: "session service" }],
    },
  });
  await notes.addDocument({ body: { text: "Mara looks after the session service.", uri: "people/mara.md" } });
});

test("search finds what was added, with its path", async () => {
  const found: SearchResult = await notes.searchCollection({ body: { query: "Who can help with the login?" } });
  assert.deepEqual(new Set(found.hits.map((hit) => hit.document.uri)), new Set(["docs/login.md", "people/mara.md"]));
  const context = await notes.renderContext({ body: { query: "login", max_tokens: 200 } });
  assert.match(context.text, /session service/);
});

test("facts of an entity are listed", async () => {
  const { facts } = await notes.listFacts({ query: { entity: "login" } });
  const [first]: Fact[] = facts;
  assert.deepEqual([first?.subject, first?.predicate, first?.object], ["login", "needs", "session service"]);
  const { total } = await notes.listEntities({ query: { name: "login" } });
  assert.equal(total, 1);
});

test("forgetting shows a receipt before and after", async () => {
  const { id } = await notes.addDocument({ body: { text: "The canteen serves soup.", uri: "menu.md" } });
  const body = { documents: [id] };
  const planned = await notes.forgetDocuments({ body: { ...body, dry_run: true } });
  assert.equal((await notes.getDocument({ path: { document: id } })).document.uri, "menu.md");
  const receipt = await notes.forgetDocuments({ body });
  assert.deepEqual([planned.documents, receipt.documents], [[id], [id]]);
  assert.deepEqual((await notes.getReceipt({ path: { receipt: receipt.id } })).documents, [id]);
  assert.deepEqual((await notes.verifyReceipt({ body: { documents: receipt.documents } })).left, []);
  const error = await catchError(notes.getDocument({ path: { document: id } }));
  assert.deepEqual([error.status, error.kind], [404, "not-found"]);
});

test("messages are remembered for a user", async () => {
  const messages = [{ role: "user" as const, content: "I moved to Oslo.", at: "2026-01-01T12:00:00Z" }];
  await notes.rememberMessages({ body: { messages, user: "mara" } });
  const profile = await notes.getProfile({ query: { user: "mara" } });
  assert.match(JSON.stringify(profile), /Oslo/);
});

test("a file is uploaded, and its job is followed to its end", async () => {
  const file = new Blob(["# Larder\n\nLarder is the key-value store.\n"]);
  const { id } = await notes.uploadFile({ path: { uri: "docs/larder.md" }, query: { labels: ["ops"] }, body: file });
  const jobs = await follow(id);
  assert.equal(jobs.at(-1)?.state, "done");
  const { documents } = await notes.listDocuments({ query: { under: "docs/larder" } });
  assert.deepEqual(documents.map((document) => [document.uri, document.labels]), [["docs/larder.md", ["ops"]]]);
});

test("a job that does not exist is not followed", async () => {
  const error = await catchError(follow("0".repeat(32)));
  assert.equal(error.status, 404);
});

test("an export is a file of lines", async () => {
  const lines = (await (await notes.exportCollection()).text()).trim().split("\n");
  assert.ok(lines.length > 2);
  assert.ok("waylore" in JSON.parse(lines[0]!));
});

test("another collection is named in the path", async () => {
  const name = "other";
  await notes.putCollection({ path: { collection: name }, body: {} });
  assert.equal((await notes.getStats({ path: { collection: name } })).documents, 0);
  await notes.deleteCollection({ path: { collection: name } });
  const { collections } = await notes.listCollections();
  assert.ok(!collections.some((collection) => collection.name === name));
});

test("a wrong key is refused", async () => {
  for (const key of ["secret", undefined]) {
    const error = await catchError(new Waylore({ url, ...(key ? { key } : {}) }).listDocuments());
    assert.deepEqual([error.status, error.kind, error.title], [401, "unauthenticated", "Missing or invalid credentials"]);
    assert.equal(error.message, `${error.title}: ${error.detail}`);
    assert.notEqual(error.requestId, "");
  }
});

test("a key that reads cannot write", async () => {
  const key = await createKey({ scope: "read" });
  const reader = new Waylore({ url, key: async () => key, collection: "notes" });
  assert.ok((await reader.listDocuments()).documents.length >= 2);
  const error = await catchError(reader.addDocument({ body: { text: "Mine now." } }));
  assert.deepEqual([error.status, error.kind], [403, "forbidden"]);
});

test("a key with a label sees what it may", async () => {
  await notes.addDocument({ body: { text: "The vault opens at nine.", uri: "vault.md", labels: ["staff"] } });
  const count = async (labels: string[]) => {
    const guest = new Waylore({ url, key: await createKey({ scope: "read", labels }), collection: "notes" });
    return (await guest.listDocuments({ query: { under: "vault" } })).documents.length;
  };
  assert.deepEqual([await count(["staff"]), await count(["guests"])], [1, 0]);
});

test("an invalid request names the field", async () => {
  const error = await catchError(notes.searchCollection({ body: { query: "login", top_k: 0 } }));
  assert.equal(error.status, 422);
  assert.deepEqual(error.errors.map((each) => each.field), ["body.top_k"]);
  assert.match(error.detail, /top_k/);
});

test("a service that does not answer is named", async () => {
  const error = await catchError(new Waylore({ url: "http://127.0.0.1:9" }).checkLiveness());
  assert.deepEqual([error.status, error.kind], [0, "unreachable"]);
  assert.match(error.detail, /no answer from http:\/\/127\.0\.0\.1:9 .*check the address/);
});

test("an answer that is no problem of the service is shown", async () => {
  const fetch = async () => new Response("<h1>Bad gateway</h1>", { status: 502, headers: { "Retry-After": "7" } });
  const error = await catchError(new Waylore({ url, fetch }).checkLiveness());
  assert.deepEqual([error.status, error.kind, error.detail], [502, "other", "<h1>Bad gateway</h1>"]);
  assert.equal(error.retryAfter, 7);
});

test("an aborted request throws its reason", async () => {
  await assert.rejects(notes.getStats({ signal: AbortSignal.abort() }), { name: "AbortError" });
});
