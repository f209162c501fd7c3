// The address of `waylore explore` opens the page once, and leaves no ticket behind.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser } from "playwright-core";

import { openPage, readScene, startBrowser } from "./browser.js";

const scene = readScene<{ url: string; address: string }>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

test("the ticket opens the page and disappears; a second page needs a key", async () => {
  const { page, close } = await openPage(browser, scene.url, "");
  await page.goto(scene.address);
  await page.waitForSelector(".welcome");
  assert.ok(!page.url().includes("ticket"));
  await page.locator("#q").fill("soup");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Canteen" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Canteen" }).waitFor();
  await close();
  const other = await openPage(browser, scene.url, "");
  await other.page.goto(scene.address);
  await other.page.getByText("opened before").waitFor();
  await other.page.context().close();
});
