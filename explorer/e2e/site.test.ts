// The built site of the docs: accessible, light and dark, wide and narrow, and nothing is requested from elsewhere.

import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAccessibility, checkWidth, openPage, readScene, startBrowser } from "./browser.js";

const scene = readScene<{ url: string; pages: string[] }>();
const APPEARANCES = [
  { viewport: { width: 1440, height: 1000 }, colorScheme: "light" },
  { viewport: { width: 390, height: 900 }, colorScheme: "dark" },
] as const;
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

for (const address of scene.pages)
  for (const appearance of APPEARANCES)
    test(`${address}, ${appearance.colorScheme}`, async () => {
      const { page, close } = await openPage(browser, scene.url, "", appearance);
      await page.goto(address, { waitUntil: "networkidle" });
      await settle(page);
      await checkAccessibility(page);
      await checkWidth(page);
      await close();
    });

/** End transitions of colours, and wait until what depends on sizes was computed. */
async function settle(page: Page): Promise<void> {
  await page.addStyleTag({ content: "* { transition: none !important; animation: none !important }" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
