// The Memory view shows what `waylore profile` and `waylore changes` print, and nothing of other users.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAppearance, openPage, readScene, startBrowser } from "./browser.js";

interface Assertion {
  fact: { predicate: string; object: string };
}

interface Scene {
  url: string;
  key: string;
  other_key: string; // of another user
  profile: { lines: Array<{ assertions: Assertion[] }> };
  changes: { changes: Array<{ kind: string; before: Assertion | null; after: Assertion | null }> };
}

const scene = readScene<Scene>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

async function show(page: Page, user: string): Promise<void> {
  await page.goto(`${scene.url}/#/memory?${new URLSearchParams({ user })}`);
  await page.waitForSelector(".memory h2, .memory .problem:not(:empty)");
}

test("shows what holds, and what superseded what", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, "mara");
  const objects = scene.profile.lines.flatMap(({ assertions }) => assertions.map(({ fact }) => fact.object));
  assert.deepEqual(await page.locator("dd b").allInnerTexts(), objects);
  assert.ok(objects.includes("Aarhus") && !objects.includes("Turku"));
  const changes = scene.changes.changes.toReversed();
  assert.deepEqual(await page.locator(".changes .tag").allInnerTexts(), changes.map(({ kind }) => kind));
  const before = changes.flatMap((change) => change.before?.fact.object ?? []);
  assert.deepEqual(await page.locator(".changes s").allInnerTexts(), before);
  assert.match(await page.locator(".changes").innerText(), /I moved to Aarhus/);
  await close();
});

test("a key of another user sees nothing of it", async () => {
  const { page } = await openPage(browser, scene.url, scene.other_key);
  await show(page, "mara");
  assert.doesNotMatch(await page.content(), /Aarhus|Turku/);
  await show(page, "jo");
  await page.getByText("Porto").first().waitFor();
  await page.context().close();
});

test("is accessible in light and dark, 1440 and 390 pixels wide", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, "mara");
  await page.waitForSelector(".changes li");
  await checkAppearance(page);
  await close();
});
