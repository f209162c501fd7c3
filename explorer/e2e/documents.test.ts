// The Documents view: list, filter, open, add and forget, and a limited key that may do none of the last.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { checkAppearance, openPage, readScene, startBrowser } from "./browser.js";

interface Scene {
  url: string;
  key: string;
  limited_key: string;
  visible: string[]; // addresses that the limited key may see
  all: string[];
}

const scene = readScene<Scene>();
let browser: Browser;
before(async () => void (browser = await startBrowser()));
after(() => browser.close());

const NOTE = `# Login

Login needs Sessions, and asks [[Sessions]] before it lets anyone in.

It was written by [Kofi Mensah](../people/kofi.md) and is run by the Storage team.

Nobody likes it.

| Step | Takes |
|---|---|
| ask | 2 ms |

\`\`\`sh
login --all

# not a heading
\`\`\`
`;
const DROPPED = "# Larder\n\nLarder is the key-value store of the team.\n";

async function show(page: Page, values: Record<string, string> = {}): Promise<void> {
  await page.goto(`${scene.url}/#/documents?${new URLSearchParams(values)}`);
  await page.waitForSelector(".list li");
}

async function listAddresses(page: Page): Promise<string[]> {
  const lines = await page.locator(".list li span").allInnerTexts();
  return lines.map((line) => line.split(" · ")[0]!);
}

async function forgetOpen(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Forget this document" }).click();
  await page.getByText(/This would remove 1 document, /).waitFor();
  await page.getByRole("button", { name: "Forget it" }).click();
  await page.getByText("Checked: nothing of it is left.").waitFor();
}

test("lists what the key may see, and filters by address", async () => {
  const full = await openPage(browser, scene.url, scene.key);
  await show(full.page);
  assert.deepEqual(await listAddresses(full.page), scene.all);
  await full.page.getByLabel("Addresses that begin with").fill("sys/q");
  await full.page.getByRole("button", { name: "Filter" }).click();
  await full.page.waitForFunction((count) => document.querySelectorAll(".list li").length < count, scene.all.length);
  assert.ok((await listAddresses(full.page)).every((uri) => uri.startsWith("sys/q")));
  await full.close();
  const limited = await openPage(browser, scene.url, scene.limited_key);
  await show(limited.page);
  assert.deepEqual(await listAddresses(limited.page), scene.visible);
  await limited.close();
});

test("adds a file, opens it with its statements marked, and forgets it with a receipt", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page);
  await page.setInputFiles("input[type=file]", { name: "refunds.md", mimeType: "text/markdown", buffer: Buffer.from(NOTE) });
  await page.getByText(/1 document, \d+ facts?/).waitFor();
  await page.locator(".list a", { hasText: "refunds.md" }).click();
  await page.waitForSelector(".open mark");
  const marked = (await page.locator(".open mark").allInnerTexts()).join(" ");
  assert.match(marked, /Login needs Sessions/);
  assert.match(marked, /It was written by \[Kofi Mensah\]/); // the statement has a name for "it", and no address
  assert.doesNotMatch(marked, /Nobody likes it/);
  assert.deepEqual(await page.locator(".open .table").locator("th, td").allInnerTexts(), ["Step", "Takes", "ask", "2 ms"]);
  assert.match(await page.locator(".open .code").innerText(), /login --all\n\n# not a heading/);
  assert.deepEqual(await page.locator(".open .link").allTextContents(), ["[[", "]]", "[", "](../people/kofi.md)"]);
  await forgetOpen(page);
  assert.match(await page.locator(".forget code").innerText(), /^[0-9a-f]{32}$/);
  await page.waitForFunction((count) => document.querySelectorAll(".list li").length === count, scene.all.length);
  assert.deepEqual(await listAddresses(page), scene.all);
  await close();
});

test("a dropped file is added, and one that cannot be read says why", async () => {
  const { page } = await openPage(browser, scene.url, scene.key);
  await show(page);
  const dropped = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "dropped.md"));
    data.items.add(new File(["?"], "program.exe"));
    return data;
  }, DROPPED);
  await page.dispatchEvent(".drop", "drop", { dataTransfer: dropped });
  await page.getByText(/1 document, \d+ facts?/).waitFor();
  await page.getByText("no reader for .exe files").waitFor();
  await page.locator(".list a", { hasText: "dropped.md" }).click();
  await forgetOpen(page);
  await page.context().close();
});

test("a key that may only read is told so", async () => {
  const { page } = await openPage(browser, scene.url, scene.limited_key);
  await show(page);
  await page.locator(".list a").first().click();
  await page.getByRole("button", { name: "Forget this document" }).click();
  await page.getByText("needs scope write").waitFor();
  await page.context().close();
});

test("is accessible in light and dark, 1440 and 390 pixels wide", async () => {
  const { page, close } = await openPage(browser, scene.url, scene.key);
  await show(page);
  await checkAppearance(page);
  await page.locator(".list a").first().click();
  await page.waitForSelector(".open");
  await checkAppearance(page);
  await close();
});
