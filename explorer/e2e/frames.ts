// Measure frames per second of the Graph view while it is dragged with the mouse, beside the same drawing without names.
// Prints JSON. `python -m benchmarks.frames` starts a service, writes the scene and runs this.

import type { Page } from "playwright-core";

import { openPage, readScene, startBrowser } from "./browser.js";

interface Scene {
  url: string;
  sizes: number[]; // numbers of drawn names
  rounds: number;
  seconds: number; // of each measurement
  width: number;
  bare: boolean; // whether a canvas that nothing is drawn on is measured too
}

interface Round {
  nodes: number;
  drawn: number; // frames per second
  empty: number; // of the same drawing with two names
  bare: number; // of a canvas that nothing is drawn on
}

const scene = readScene<Scene>();

/** Return an answer of the service with a name in the middle and names around it, three facts for each. */
function makeRelated(size: number): object {
  const makeEntity = (number: number) => ({ id: String(number).padStart(32, "0"), name: `Name ${number}`, aliases: [] });
  const makeFact = (number: number, branches: object[] = []) => ({
    subject: "Name 0",
    predicate: "knows",
    object: `Name ${number}`,
    kind: "typed",
    is_forward: true,
    entity: makeEntity(number),
    quote: "",
    since: null,
    until: null,
    fact: `${number}`,
    document: { title: "A page", uri: "", source: "file" },
    end: null,
    branches,
  });
  const numbers = Array.from({ length: size - 1 }, (_, index) => index + 1);
  const others = (number: number) => [number * 7, number * 13].map((each) => makeFact((each % (size - 1)) + 1));
  const facts = numbers.map((number) => makeFact(number, others(number)));
  const counts = { shown: facts.length, total: facts.length, complete: true, is_exact: true };
  return { name: "Name 0", entities: [makeEntity(0)], candidates: [], similar: [], facts, ...counts };
}

/** Drag the canvas in circles for a while, and return the frames per second. */
async function drag(page: Page): Promise<number> {
  const box = (await page.locator(".canvas").boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x + 60, y);
  await page.mouse.down();
  const count = page.evaluate(
    (milliseconds) =>
      new Promise<number>((done) => {
        const began = performance.now();
        let frames = 0;
        const next = () => {
          frames += 1;
          const passed = performance.now() - began;
          if (passed < milliseconds) requestAnimationFrame(next);
          else done((1000 * frames) / passed);
        };
        requestAnimationFrame(next);
      }),
    1000 * scene.seconds,
  );
  let [isOver, angle] = [false, 0];
  void count.then(() => (isOver = true));
  while (!isOver) {
    angle += 0.15;
    await page.mouse.move(x + 60 * Math.cos(angle), y + 60 * Math.sin(angle));
  }
  await page.mouse.up();
  return count;
}

/** Put an empty canvas in the place of the drawing. */
function clear(page: Page): Promise<void> {
  return page.evaluate(() => {
    const place = document.querySelector(".canvas")!;
    const empty = document.createElement("canvas");
    [empty.width, empty.height] = [place.clientWidth, place.clientHeight];
    place.replaceChildren(empty);
  });
}

async function measure(nodes: number): Promise<Round> {
  const [drawn, bare] = await measureDrawing(nodes);
  const [empty] = await measureDrawing(2);
  return { nodes, drawn, empty, bare };
}

/** Return the frames per second of a drawing, and of an empty canvas in its place. */
async function measureDrawing(size: number): Promise<[number, number]> {
  const viewport = { width: scene.width, height: 900 };
  const { page } = await openPage(browser, scene.url, "", { viewport });
  await page.route("**/related?*", (route) => route.fulfill({ json: makeRelated(size) }));
  await page.goto(`${scene.url}/#/graph?entity=Name+0&nodes=${size}`);
  await page.waitForSelector(".canvas[data-settled]", { timeout: 600_000 }); // thousands of names take minutes
  await page.evaluate(() => document.querySelector(".told .tree")?.remove()); // the list is not measured
  const drawn = await drag(page);
  if (scene.bare) await clear(page);
  const bare = scene.bare ? await drag(page) : 0;
  await page.context().close();
  return [drawn, bare];
}

async function readRenderer(): Promise<string> {
  const page = await browser.newPage();
  const name = await page.evaluate(() => {
    const context = document.createElement("canvas").getContext("webgl");
    const info = context?.getExtension("WEBGL_debug_renderer_info");
    return info ? String(context?.getParameter(info.UNMASKED_RENDERER_WEBGL)) : "unknown";
  });
  await page.close();
  return name;
}

const browser = await startBrowser();
const rounds: Round[] = [];
for (let round = 0; round < scene.rounds; round++) for (const size of scene.sizes) rounds.push(await measure(size));
console.log(JSON.stringify({ renderer: await readRenderer(), rounds }));
await browser.close();
