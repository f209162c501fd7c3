// The Ask view shows what `waylore search --json` prints, to whom may see it, in every width and theme.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAccessibility, checkAppearance, openPage, readScene, startBrowser } from "./browser.js";

interface Hit {
  score: number;
  passage: { id: string; text: string };
  document: { uri: string };
  path: { text: string; start: string } | null;
  placements: Array<{ search: string; share: number }>;
  superseded_by: { text: string } | null;
}

interface Scene {
  url: string;
  key: string;
  limited_key: string;
  questions: Array<{ values: Record<string, string>; expected: { hits: Hit[]; skip_reason: string } }>;
  hidden: { question: string; uri: string; words: string };
}

const scene = readScene<Scene>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

function toAddress(values: Record<string, string>): string {
  return `${scene.url}/#/ask?${new URLSearchParams(values)}`;
}

async function ask(page: Page, values: Record<string, string>): Promise<void> {
  await page.goto(toAddress(values));
  await page.waitForSelector(".gate");
}

interface Shown {
  passage: string;
  score: number;
  text: string;
  thread: string;
  shares: string[];
}

function readCards(page: Page): Promise<Shown[]> {
  return page.locator("article.card").evaluateAll((cards) =>
    cards.map((card) => ({
      passage: card.getAttribute("data-passage") ?? "",
      score: Number(card.getAttribute("data-score")),
      text: card.querySelector(".text")?.textContent ?? "",
      thread: card.querySelector(".thread")?.textContent ?? "",
      shares: [...card.querySelectorAll(".shares li i")].map((each) => each.getAttribute("data-search") ?? ""),
    })),
  );
}

function listWords(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Return the names of a path as one line has them, without arrows and relations. */
function listNames(path: string): string[] {
  return path.replace(" → this passage", "").split(/\s*(?:—[^→]*→|←[^—]*—)\s*/);
}

for (const { values, expected } of scene.questions) {
  test(`shows the hits of the command line: ${JSON.stringify(values)}`, async () => {
    const { page, close } = await openPage(browser, scene.url, scene.key);
    await ask(page, values);
    const cards = await readCards(page);
    assert.deepEqual(
      cards.map(({ passage, score }) => [passage, score]),
      expected.hits.map(({ passage, score }) => [passage.id, score]),
    );
    for (const [index, hit] of expected.hits.entries()) {
      const card = cards[index]!;
      assert.deepEqual(listWords(card.text), listWords(hit.passage.text));
      assert.deepEqual(card.shares, hit.placements.map(({ search }) => search));
      for (const name of hit.path ? listNames(hit.path.text) : []) assert.ok(card.thread.includes(name), card.thread);
      if (!hit.path) assert.match(card.thread, /^Your questionfound by /);
    }
    const gate = await page.locator(".gate").innerText();
    assert.ok(gate.includes(expected.skip_reason), gate);
    await close();
  });
}

test("a limited key sees what it may, and nothing of the rest", async () => {
  const { question, uri, words } = scene.hidden;
  const all = await openPage(browser, scene.url, scene.key);
  await ask(all.page, { q: question });
  assert.ok((await all.page.content()).includes(words));
  await all.close();
  const limited = await openPage(browser, scene.url, scene.limited_key);
  await ask(limited.page, { q: question });
  assert.ok((await readCards(limited.page)).length > 0);
  const shown = await limited.page.content();
  assert.ok(!shown.includes(words) && !shown.includes(uri));
  await limited.close();
});

test("labels limit what a full key sees", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await ask(page, { q: scene.hidden.question, labels: "nobody" });
  assert.ok(!(await page.content()).includes(scene.hidden.words));
  await close();
});

test("asks by keyboard, keeps the question in the address, and goes back", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await page.goto(scene.url);
  await page.waitForSelector(".welcome");
  await page.keyboard.press("/");
  await page.keyboard.type("Which team is lanternfish owned by?");
  await page.keyboard.press("Enter");
  await page.waitForSelector("article.card");
  const first = await readCards(page);
  const shared = page.url();
  assert.equal(new URLSearchParams(shared.split("?")[1]).get("q"), "Which team is lanternfish owned by?");
  await page.locator("#q").fill("What soup is there on Wednesdays?");
  await page.keyboard.press("Enter");
  await page.waitForFunction((url) => location.href !== url, shared);
  await page.waitForFunction((id) => document.querySelector("article")?.dataset["passage"] !== id, first[0]!.passage);
  assert.notDeepEqual(await readCards(page), first);
  await page.goBack();
  await page.waitForFunction((id) => document.querySelector("article")?.dataset["passage"] === id, first[0]!.passage);
  assert.equal(await page.locator("#q").inputValue(), "Which team is lanternfish owned by?");
  await close();
  const colleague = await openPage(browser, scene.url, scene.key);
  await colleague.page.goto(shared);
  await colleague.page.waitForSelector("article.card");
  assert.deepEqual(await readCards(colleague.page), first);
  await colleague.close();
});

test("controls go into the address, and from there into the controls", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await page.goto(toAddress({ q: "Which team is lanternfish owned by?" }));
  await page.waitForSelector("article.card");
  await page.locator(".controls summary").click();
  await page.getByLabel("Method").selectOption("hybrid");
  await page.getByLabel("As of").fill("2023-01-01");
  await page.getByLabel("Hits").fill("3");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll("article.card").length === 3);
  const values = Object.fromEntries(new URLSearchParams(page.url().split("?")[1]));
  assert.equal(values["method"], "hybrid");
  assert.equal(values["as_of"], "2023-01-01");
  assert.equal(await page.getByLabel("Method").inputValue(), "hybrid");
  assert.equal(await page.getByLabel("As of").inputValue(), "2023-01-01");
  await close();
});

test("an error of the service is shown in its words", async () => {
  const { page } = await openPage(browser, scene.url, scene.key);
  await page.goto(toAddress({ q: "lanternfish", method: "best" }));
  assert.match(await page.getByRole("alert").innerText(), /method/);
  await page.context().close();
});

test("an unknown collection is named, and those that may be seen", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await page.goto(toAddress({ q: "lanternfish", collection: "typo" }));
  await page.getByText("There is no collection typo that you may see.").waitFor();
  await checkAccessibility(page);
  await page.locator("main").getByRole("link", { name: "default" }).click();
  await page.waitForSelector(".welcome");
  await close();
});

test("a service that does not answer is said, and asked again", async () => {
  const { page } = await openPage(browser, scene.url, scene.key);
  await page.goto(scene.url);
  await page.waitForSelector(".welcome");
  await page.route("**/v1/**", (route) => route.abort());
  await page.goto(toAddress({ q: "lanternfish" }));
  await page.getByText("The service does not answer.").waitFor();
  await page.reload();
  await page.getByText("The service does not answer.").waitFor();
  await page.unroute("**/v1/**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.waitForSelector("article.card");
  await page.context().close();
});

test("a key is asked for, and a wrong one refused", async () => {
  const { page } = await openPage(browser, scene.url, "");
  await page.goto(toAddress({ q: "lanternfish" }));
  await page.getByLabel(/API key/).fill("waylore_0000_wrong");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByText("unknown, expired or revoked").waitFor();
  await checkAccessibility(page);
  await page.getByLabel(/API key/).fill(scene.key);
  await page.getByRole("button", { name: "Open" }).click();
  await page.waitForSelector("article.card");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel(/API key/).waitFor();
  await page.context().close();
});

test("is accessible in light and dark, 1440 and 390 pixels wide", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await page.goto(scene.url);
  await page.waitForSelector(".welcome");
  await checkAppearance(page);
  await ask(page, { q: "Which team is lanternfish owned by?", as_of: "2023-01-01" });
  await page.locator("article.card summary").first().click();
  await checkAppearance(page);
  await close();
});

test("the theme is chosen by a button and stays", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key, { colorScheme: "light" });
  await page.goto(scene.url);
  const readColour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.waitForSelector(".welcome");
  const light = await readColour();
  await page.getByRole("button", { name: "Dark" }).click();
  const dark = await readColour();
  assert.notEqual(light, dark);
  await page.reload();
  await page.waitForSelector(".welcome");
  assert.equal(await readColour(), dark);
  await close();
});
