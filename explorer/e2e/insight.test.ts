// The Insight view shows the figures of the service as plots, and a limited key counts of what it may see only.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAppearance, openPage, readScene, startBrowser } from "./browser.js";

interface Scene {
  url: string;
  key: string;
  limited_key: string;
  statistics: { documents: number; passages: number; entities: number; facts: number };
  growth: Array<{ day: string; documents: number }>;
  visible: number; // documents that the limited key may see
  gate: Record<string, number>;
  report: string; // a file that `waylore eval --json` wrote
  methods: string[]; // of the report
}

const scene = readScene<Scene>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

async function show(page: Page): Promise<void> {
  await page.goto(`${scene.url}/#/insight`);
  await page.waitForSelector(".sizes dd");
}

async function listSizes(page: Page): Promise<Record<string, number>> {
  const names = await page.locator(".sizes dt").allInnerTexts();
  const numbers = await page.locator(".sizes b").allInnerTexts();
  return Object.fromEntries(names.map((name, index) => [name, Number(numbers[index]!.replaceAll(",", ""))]));
}

test("draws size, growth, decisions and times for an administrator", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page);
  const { documents, passages, entities, facts } = scene.statistics;
  assert.deepEqual(await listSizes(page), { documents, passages, names: entities, facts });
  const drawn = await page.locator(".growth title").allTextContents();
  assert.equal(drawn.reduce((sum, title) => sum + Number(/: ([\d,]+) document/.exec(title)![1]!.replaceAll(",", "")), 0), documents);
  assert.equal(await page.locator(".growth polyline").count(), scene.growth.length > 1 ? 1 : 0);
  const parts = await page.locator(".stack i").evaluateAll((all) => all.map((each) => each.getAttribute("data-outcome")));
  assert.deepEqual(parts.sort(), Object.keys(scene.gate).sort());
  assert.ok((await page.locator(".latencies .row svg").count()) >= 2);
  assert.match(await page.locator(".latencies").innerText(), /keyword[\s\S]* ms/);
  await close();
});

test("a limited key sees counts of what it may see, and no decisions and times", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.limited_key);
  await show(page);
  const sizes = await listSizes(page);
  assert.deepEqual(Object.keys(sizes), ["documents", "passages"]);
  assert.equal(sizes["documents"], scene.visible);
  assert.ok(scene.visible < scene.statistics.documents);
  assert.equal(await page.locator(".stack, .latencies").count(), 0);
  await close();
});

test("draws a report of the evaluation that is chosen, and says what is wrong with another file", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page);
  const choose = (text: string) =>
    page.setInputFiles("input[type=file]", { name: "report.json", mimeType: "application/json", buffer: Buffer.from(text) });
  await choose(scene.report);
  await page.waitForSelector(".scores .row");
  assert.deepEqual(await page.locator(".scores section").first().locator(".row > span:first-child").allInnerTexts(), scene.methods);
  await choose('{"rows": []}');
  await page.getByText("this file has no figures by method").waitFor();
  await close();
});

test("is accessible in light and dark, 1440 and 390 pixels wide", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page);
  await page.setInputFiles("input[type=file]", { name: "report.json", mimeType: "application/json", buffer: Buffer.from(scene.report) });
  await page.waitForSelector(".scores .row");
  await checkAppearance(page);
  await close();
});
