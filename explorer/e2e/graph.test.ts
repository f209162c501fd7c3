// The Graph view shows what `waylore related` and `waylore connect` print, drawn and as a list, and what held when.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAppearance, openPage, readScene, startBrowser } from "./browser.js";

interface Fact {
  subject: string;
  object: string;
  branches: Fact[];
}

interface Scene {
  url: string;
  key: string;
  limited_key: string;
  related: { facts: Fact[]; total: number };
  connection: { paths: Array<{ text: string }> };
  merged: string[]; // two names that count as one
  hidden: string; // a name that the limited key may not see, beside `quayside`
}

const scene = readScene<Scene>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

async function show(page: Page, values: Record<string, string>): Promise<void> {
  await page.goto(`${scene.url}/#/graph?${new URLSearchParams(values)}`);
  await page.waitForSelector(".told h2");
}

function listFacts(facts: Fact[]): Fact[] {
  return facts.flatMap((fact) => [fact, ...listFacts(fact.branches)]);
}

test("shows the facts of the command line, and says that these are all", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "lanternfish", hops: "2" });
  const facts = listFacts(scene.related.facts);
  const shown = await page.locator(".tree li").evaluateAll((items) =>
    items.map((item) => [...item.children].find((child) => child.matches("a, b"))?.textContent ?? ""),
  );
  assert.equal(shown.length, facts.length);
  for (const [index, name] of shown.entries()) assert.ok([facts[index]!.subject, facts[index]!.object].includes(name), name);
  assert.match(await page.locator(".told").innerText(), new RegExp(`All ${scene.related.total} facts around lanternfish`));
  await close();
});

test("shows the way between two names", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "quayside", to: "Hanne Vik" });
  const ways = await page.locator(".told .way").allInnerTexts();
  assert.deepEqual(ways, scene.connection.paths.map(({ text }) => text));
  assert.match(await page.locator(".told").innerText(), /everything within reach was looked at/);
  await close();
});

test("a limited key sees no hidden name", async () => {
  for (const [key, isVisible] of [[scene.key, true], [scene.limited_key, false]] as const) {
    const { page, close } = await openPage(browser, scene.url, key);
    await show(page, { entity: "quayside", hops: "2" });
    assert.equal((await page.content()).includes(scene.hidden), isVisible);
    await close();
  }
});

test("the slider shows what held when", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "lanternfish" });
  const listPast = () => page.locator(".tree li.past").allInnerTexts();
  assert.deepEqual(await listPast(), []);
  await page.locator(".time input").focus();
  await page.keyboard.press("Home"); // the day before the first of them began
  for (let day = 0; day < 2; day++) await page.keyboard.press("ArrowRight");
  await page.getByText("What held on 2 Jan 2021").waitFor();
  const past = (await listPast()).join(" ");
  assert.match(past, /Keel Team/);
  assert.doesNotMatch(past, /Anchor Team/);
  const shared = page.url();
  assert.equal(new URLSearchParams(shared.split("?")[1]).get("day"), "2021-01-02");
  await page.getByRole("button", { name: "All times" }).click();
  assert.deepEqual(await listPast(), []);
  assert.ok(!page.url().includes("day="));
  await close();
  const colleague = await openPage(browser, scene.url, scene.key);
  await colleague.page.goto(shared);
  await colleague.page.getByText("What held on 2 Jan 2021").waitFor();
  assert.match((await colleague.page.locator(".tree li.past").allInnerTexts()).join(" "), /Keel Team/);
  await colleague.close();
});

test("merged names are shown with the evidence, separated by a button, and merged again", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: scene.merged[0]! });
  const other = page.locator(".merged li", { hasText: scene.merged[1]! });
  await other.getByRole("button", { name: "Separate" }).click();
  await page.getByText("are separate now").waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".merged li").length === 0);
  assert.ok(!(await page.locator(".told").innerText()).includes(`also called ${scene.merged[1]}`));
  await page.getByRole("button", { name: "Undo" }).click();
  await other.waitFor();
  await close();
  const limited = await openPage(browser, scene.url, scene.limited_key);
  await show(limited.page, { entity: scene.merged[0]! });
  await limited.page.getByRole("button", { name: "Separate" }).click();
  await limited.page.getByText("needs scope write").waitFor();
  await limited.page.context().close();
});

test("a click on a drawn name opens its facts, and the address keeps it", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "lanternfish" });
  await page.waitForFunction(() => document.querySelector(".canvas[data-settled]"));
  for (const [x, y] of await findLabels(page)) {
    await page.mouse.click(x, y);
    if (page.url().includes("more=")) break;
  }
  assert.match(page.url(), /more=/);
  await page.waitForFunction(() => document.querySelectorAll(".told h2").length === 2);
  await close();
});

/** Return points just left of the labels, where the names are drawn. */
async function findLabels(page: Page): Promise<Array<[number, number]>> {
  return page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>("canvas.sigma-labels")!;
    const { left, top, width } = canvas.getBoundingClientRect();
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    const scale = canvas.width / width;
    const isInk = (x: number, y: number) => data[4 * (y * canvas.width + x) + 3]! > 100 && data[4 * (y * canvas.width + x)]! < 100;
    const isColumn = (x: number, y: number) => Array.from({ length: 14 }, (_, row) => y + row).some((row) => isInk(x, row));
    const found: Array<[number, number]> = [];
    for (let y = 0; y < canvas.height; y++)
      for (let x = 0; x < canvas.width; x++) {
        if (!isInk(x, y) || found.some(([a, b]) => Math.abs(b - y) < 16 && x > a - 20 && x < a + 200)) continue;
        let first = x; // the first letter: go left while there are letters within a few pixels
        for (let gap = 0; gap < 6 && first - gap > 0; gap++) if (isColumn(first - gap, y)) [first, gap] = [first - gap, 0];
        found.push([first, y]);
      }
    return found.map(([x, y]): [number, number] => [left + x / scale - 10, top + y / scale + 6]);
  });
}

test("the drawing follows the mouse with its lines and labels, and a drag chooses no name", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "lanternfish" });
  await page.waitForFunction(() => document.querySelector(".canvas[data-settled]"));
  const before = await findLabels(page);
  const [x, y] = before[0]!;
  await page.mouse.move(x, y); // on a name
  await page.mouse.down();
  await page.mouse.move(x + 60, y + 30, { steps: 5 });
  assert.ok((await countInk(page, ".picture")) > 500);
  await page.mouse.up();
  assert.equal(await page.locator(".picture").count(), 0);
  assert.ok(!page.url().includes("more="));
  const after = await findLabels(page);
  assert.ok(after.some(([a, b]) => Math.abs(a - x - 60) < 3 && Math.abs(b - y - 30) < 3), `${before} ${after}`);
  await close();
});

/** Return how many pixels of a canvas differ from its corner. */
function countInk(page: Page, selector: string): Promise<number> {
  return page.locator(selector).evaluate((canvas: HTMLCanvasElement) => {
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(data.buffer);
    return pixels.filter((pixel) => pixel !== pixels[0]).length;
  });
}

test("on a phone no name ends outside of the drawing", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key, { viewport: { width: 390, height: 844 } });
  await show(page, { entity: "lanternfish" });
  await page.waitForFunction(() => document.querySelector(".canvas[data-settled]"));
  const edges = await page.locator(".sigma-labels").evaluate((canvas: HTMLCanvasElement) => {
    const isEmpty = (x: number, width: number) =>
      canvas.getContext("2d")!.getImageData(x, 0, width, canvas.height).data.every((part) => part === 0);
    return [isEmpty(0, 2), isEmpty(canvas.width - 2, 2), !isEmpty(0, canvas.width)];
  });
  assert.deepEqual(edges, [true, true, true]);
  await close();
});

for (const width of [1440, 390])
  test(`no word of the drawing covers another, ${width} pixels wide`, async () => {
    const { page, close } = await openPage(browser, scene.url, scene.key, { viewport: { width, height: 900 } });
    await page.addInitScript(recordWords);
    await show(page, { entity: "lanternfish", hops: "2" });
    await page.waitForFunction(() => document.querySelector(".canvas[data-settled]"));
    const words = await page.evaluate(() => (window as unknown as { written: Written[] }).written);
    assert.ok(words.length > 5, `${words.length} words`);
    for (const [index, one] of words.entries())
      for (const other of words.slice(index + 1)) {
        const isApart = Math.abs(one.x - other.x) >= (one.width + other.width) / 2 || Math.abs(one.y - other.y) >= 11;
        assert.ok(isApart, `${JSON.stringify(one)} covers ${JSON.stringify(other)}`);
      }
    await close();
  });

interface Written {
  text: string;
  x: number; // the middle
  y: number;
  width: number;
}

/** Keep what is written on the drawing since it was cleared. */
function recordWords(): void {
  const written: Written[] = [];
  Object.assign(window, { written });
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    written.push({ text, x, y, width: this.measureText(text).width });
    fillText.call(this, text, x, y);
  };
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    if (this.canvas.classList.contains("sigma-labels")) written.length = 0;
    clearRect.apply(this, box);
  };
}

test("is drawn without WebGL too: dragged, zoomed and clicked", async () => {
  const plain = await startBrowser("none");
  const { page, close } = await openPage(plain, scene.url, scene.key);
  await show(page, { entity: "lanternfish" });
  await page.waitForFunction(() => document.querySelector(".canvas[data-settled]"));
  assert.equal(await page.locator(".sigma-nodes").count(), 0);
  const [x, y] = (await findDots(page))[0]!;
  const empty = (await page.locator(".canvas").boundingBox())!;
  await page.mouse.move(empty.x + 5, empty.y + 5);
  await page.mouse.down();
  await page.mouse.move(empty.x + 45, empty.y + 25, { steps: 4 });
  await page.mouse.up();
  const moved = await findDots(page);
  assert.ok(moved.some(([a, b]) => Math.abs(a - x - 40) < 3 && Math.abs(b - y - 20) < 3), `${x} ${y}: ${moved}`);
  const spread = (dots: Array<[number, number]>) => Math.max(...dots.map(([a]) => a)) - Math.min(...dots.map(([a]) => a));
  await page.mouse.move(empty.x + empty.width / 2, empty.y + empty.height / 2);
  await page.mouse.wheel(0, 100);
  assert.ok(spread(await findDots(page)) < 0.9 * spread(moved));
  for (const [a, b] of await findDots(page)) {
    await page.mouse.click(a, b);
    if (page.url().includes("more=")) break;
  }
  assert.match(page.url(), /more=/);
  await page.waitForFunction(() => document.querySelectorAll(".told h2").length === 2);
  await close();
  await plain.close();
});

/** Return the middles of drawn names: squares of the colour of ink that are wider than a letter. */
async function findDots(page: Page): Promise<Array<[number, number]>> {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.evaluate(() => {
    const canvas = document.querySelector<HTMLCanvasElement>(".canvas canvas")!;
    const { left, top } = canvas.getBoundingClientRect();
    const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
    const ink = getComputedStyle(document.body).color.match(/\d+/g)!.map(Number);
    const isInk = (x: number, y: number) => [0, 1, 2].every((part) => data[4 * (y * canvas.width + x) + part] === ink[part]);
    const square = Array.from({ length: 81 }, (_, index) => [(index % 9) - 4, Math.floor(index / 9) - 4] as const);
    const found: Array<[number, number]> = [];
    for (let y = 5; y < canvas.height - 5; y++)
      for (let x = 5; x < canvas.width - 5; x++) {
        if (!isInk(x, y) || found.some(([a, b]) => Math.hypot(a - x, b - y) < 16)) continue;
        if (square.every(([a, b]) => isInk(x + a, y + b))) found.push([x, y]);
      }
    return found.map(([x, y]): [number, number] => [left + x, top + y]);
  });
}

test("names lead on by keyboard, and an unknown name is answered", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await page.goto(`${scene.url}/#/graph`);
  await page.locator(".start a", { hasText: "lanternfish" }).press("Enter");
  await page.getByRole("heading", { name: "lanternfish" }).waitFor();
  await page.getByLabel("Name", { exact: true }).fill("lantern");
  await page.keyboard.press("Enter");
  await page.getByText("No name lantern").waitFor();
  await close();
});

test("is accessible in light and dark, 1440 and 390 pixels wide", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page, { entity: "lanternfish", hops: "2" });
  await checkAppearance(page);
  await close();
});
