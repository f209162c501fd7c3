// Every view, on whatever store the scene has: a full key in a wide light page, a limited key in a narrow dark one.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser } from "playwright-core";

import { checkAccessibility, checkWidth, openPage, readScene, startBrowser } from "./browser.js";

interface Scene {
  url: string;
  key: string;
  limited_key: string;
  views: Array<{ name: string; values: Record<string, string>; ready: string; secret: string }>;
}

const scene = readScene<Scene>();
const WIDE = { viewport: { width: 1440, height: 1000 }, colorScheme: "light" } as const;
const NARROW = { viewport: { width: 390, height: 844 }, colorScheme: "dark" } as const;
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

for (const { name, values, ready, secret } of scene.views)
  for (const [key, appearance, isLimited] of [[scene.key, WIDE, false], [scene.limited_key, NARROW, true]] as const)
    test(`${name}, ${isLimited ? "limited key" : "full key"}`, async () => {
      const { page, close } = await openPage(browser, scene.url, key, appearance);
      await page.goto(`${scene.url}/#/${name}?${new URLSearchParams(values)}`);
      const isRefused = isLimited && name === "memory"; // of another user
      await page.waitForSelector(isRefused ? ".problem:not(:empty)" : ready);
      assert.equal((await page.content()).includes(secret), !isLimited);
      await checkAccessibility(page);
      await checkWidth(page);
      if (isRefused) await page.context().close(); // the browser reports the refusal as an error
      else await close();
    });
