// Take pictures of the page. `python -m tools.screenshots` starts a service, writes the scene and runs this.

import { openPage, readScene, startBrowser } from "./browser.js";

interface Picture {
  file: string;
  address: string; // after the `#`
  ready: string; // what is waited for
  width: number;
  height: number;
  theme: "light" | "dark";
  report: string; // file with a report of the evaluation, for the Insight view; empty for none
}

const scene = readScene<{ url: string; pictures: Picture[] }>();
const browser = await startBrowser();
for (const { file, address, ready, width, height, theme, report } of scene.pictures) {
  const appearance = { viewport: { width, height }, colorScheme: theme } as const;
  const { page, close } = await openPage(browser, scene.url, "", appearance);
  await page.goto(`${scene.url}/#${address}`);
  await page.waitForSelector(ready);
  if (report) await page.setInputFiles("input[type=file]", report);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.screenshot({ path: file, fullPage: height === 0 || width < 500 });
  await close();
}
await browser.close();
