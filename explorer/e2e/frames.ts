// Measure frames per second of the Graph view while it is dragged with the mouse, beside an empty canvas.
// Prints JSON. `python -m benchmarks.frames` starts a service, writes the scene and runs this.

import type { Page } from "playwright-core";

import { type Graphics, openPage, readScene, startBrowser } from "./browser.js";

interface Scene {
  url: string;
  sizes: number[]; // numbers of drawn names
  rounds: number;
  seconds: number; // of each measurement
  width: number;
  reach: number; // of a circle of the mouse, as a share of half the drawing
  graphics: Graphics;
}

interface Round {
  nodes: number;
  drawn: number; // frames per second
  moved: number; // of an empty canvas that the browser moves with the mouse
  empty: number; // of an empty canvas that stays
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
    source: "file",
    confidence: 1,
    status: "confirmed",
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

/** Drag the drawing in circles for a while, and return the frames per second. */
async function drag(page: Page): Promise<number> {
  const box = (await page.locator(".canvas").boundingBox())!;
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const [across, down] = [(scene.reach * box.width) / 2, (scene.reach * box.height) / 2];
  await page.mouse.move(x + across, y);
  await page.mouse.down();
  const count = page.evaluate(countFrames, 1000 * scene.seconds);
  let [isOver, angle] = [false, 0];
  void count.then(() => (isOver = true));
  while (!isOver) {
    angle += 0.15;
    await page.mouse.move(x + across * Math.cos(angle), y + down * Math.sin(angle));
  }
  await page.mouse.up();
  return count;
}

function countFrames(milliseconds: number): Promise<number> {
  return new Promise((done) => {
    const began = performance.now();
    let frames = 0;
    const next = () => {
      frames += 1;
      const passed = performance.now() - began;
      if (passed < milliseconds) requestAnimationFrame(next);
      else done((1000 * frames) / passed);
    };
    requestAnimationFrame(next);
  });
}

/** Put an empty canvas in the place of the drawing, which moves with the mouse or stays. */
function clear(page: Page, isMoved: boolean): Promise<void> {
  return page.evaluate((isMoved) => {
    const place = document.querySelector<HTMLElement>(".canvas")!.cloneNode() as HTMLElement; // nobody listens to it
    document.querySelector(".canvas")!.replaceWith(place);
    const empty = document.createElement("canvas");
    [empty.width, empty.height] = [place.clientWidth, place.clientHeight];
    empty.style.willChange = "transform";
    if (isMoved)
      onmousemove = ({ clientX, clientY }) => (empty.style.transform = `translate(${clientX - 500}px, ${clientY - 500}px)`);
    place.replaceChildren(empty);
  }, isMoved);
}

async function measure(nodes: number): Promise<Round> {
  const viewport = { width: scene.width, height: 900 };
  const { page } = await openPage(browser, scene.url, "", { viewport });
  await page.route("**/related?*", (route) => route.fulfill({ json: makeRelated(nodes) }));
  await page.goto(`${scene.url}/#/graph?entity=Name+0&nodes=${nodes}`);
  await page.waitForSelector(".canvas[data-settled]", { timeout: 600_000 }); // thousands of names take minutes
  await page.evaluate(() => document.querySelector(".told .tree")?.remove()); // the list is not measured
  await page.waitForTimeout(2_000); // until what was queued is drawn
  const drawn = await drag(page);
  await clear(page, false);
  const empty = await drag(page);
  await clear(page, true);
  const moved = await drag(page);
  await page.context().close();
  return { nodes, drawn, moved, empty };
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

const browser = await startBrowser(scene.graphics);
const rounds: Round[] = [];
for (let round = 0; round < scene.rounds; round++) for (const size of scene.sizes) rounds.push(await measure(size));
console.log(JSON.stringify({ renderer: await readRenderer(), rounds }));
await browser.close();
