// Sign in with an OpenID provider: the browser goes there and comes back to the same place, and nothing else is asked.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser } from "playwright-core";

import { checkAccessibility, openPage, readScene, startBrowser } from "./browser.js";

const scene = readScene<{ url: string; provider: string }>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

test("the provider sends the browser back with a code, which becomes the token of this tab", async () => {
  const { page } = await openPage(browser, scene.url, "");
  const origins = new Set<string>();
  page.on("request", (request) => origins.add(new URL(request.url()).origin));
  await page.goto(`${scene.url}/#/ask?q=soup`);
  const button = page.getByRole("button", { name: "Sign in with 127.0.0.1" });
  await button.waitFor();
  await checkAccessibility(page);
  await button.click();
  await page.getByRole("heading", { name: "Canteen" }).waitFor();
  assert.equal(page.url(), `${scene.url}/#/ask?q=soup`);
  assert.deepEqual([...origins].sort(), [scene.url, scene.provider].sort());
  await page.getByRole("button", { name: "Sign out" }).click();
  await button.waitFor();
  await page.context().close();
});

test("a code that was not asked for here is refused", async () => {
  const { page } = await openPage(browser, scene.url, "");
  await page.goto(scene.url);
  await page.evaluate(() => sessionStorage.setItem("waylore.login", JSON.stringify({ verifier: "a", state: "b", place: "" })));
  await page.goto(`${scene.url}/?code=stolen&state=c`);
  await page.getByText("this login was not begun here").waitFor();
  assert.ok(!page.url().includes("stolen"));
  await page.context().close();
});
