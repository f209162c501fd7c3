// A real Chromium for the tests, which reaches this machine only. `tests/surfaces/explorer` starts a service, writes
// the scene, and runs the tests of one file with it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { type Browser, type BrowserContextOptions, type Page, chromium } from "playwright-core";

const OPTIONS =
  "--no-sandbox --disable-background-networking --disable-component-update --disable-sync --no-first-run --disable-quic --no-proxy-server";
const GRAPHICS = {
  gpu: "--use-angle=swiftshader --enable-unsafe-swiftshader --ignore-gpu-blocklist", // everything on a graphics card, which SwiftShader plays
  software: "--enable-unsafe-swiftshader", // what Chromium chooses without a graphics card, and WebGL
  none: "--disable-3d-apis", // no WebGL, as Chromium's default is without a graphics card
};
export type Graphics = keyof typeof GRAPHICS;
const OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1";
const WAIT = 120_000; // for a browser on a busy machine

export function readScene<T>(): T {
  return JSON.parse(readFileSync(process.env["WAYLORE_SCENE"] ?? "", "utf-8")) as T;
}

export function startBrowser(graphics: Graphics = "gpu"): Promise<Browser> {
  const executablePath = process.env["WAYLORE_CHROMIUM"] ?? "/usr/bin/chromium";
  const args = [...`${OPTIONS} ${GRAPHICS[graphics]}`.split(" "), OFFLINE];
  return chromium.launch({ executablePath, args, timeout: WAIT });
}

export interface Opened {
  page: Page;
  /** Check that no request left the machine and that the page reported no error, and close it. */
  close(): Promise<void>;
}

/** Open a page of the service with a key, and record what it asks for and complains about. */
export async function openPage(
  browser: Browser,
  url: string,
  key: string,
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  if (key) await context.addInitScript((token) => sessionStorage.setItem("waylore.key", token), key);
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  const [left, complaints]: [string[], string[]] = [[], []];
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && origin !== new URL(url).origin) left.push(request.url());
  });
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  const close = async () => {
    assert.deepEqual(left, []);
    assert.deepEqual(complaints, []);
    await context.close();
  };
  return { page, close };
}

/** Check the page with axe-core: no serious fault. */
export async function checkAccessibility(page: Page): Promise<void> {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf-8");
  await page.evaluate(axe); // not as a script of the page, which its policy forbids
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
    interface Violation {
      id: string;
      impact: string;
      nodes: Array<{ html: string; failureSummary: string }>;
    }
    const { violations } = await axe.run();
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return serious.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => [id, html, failureSummary]));
  });
  assert.deepEqual(found, []);
}

/** Check what the page shows in light and dark, wide and narrow: accessible, and nothing wider than the page. */
export async function checkAppearance(page: Page): Promise<void> {
  for (const width of [1440, 390])
    for (const colorScheme of ["light", "dark"] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await checkAccessibility(page);
      await checkWidth(page);
    }
}

export async function checkWidth(page: Page): Promise<void> {
  const [content, shown] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content! <= shown!, `the page is ${content} pixels wide, the window ${shown}`);
}
