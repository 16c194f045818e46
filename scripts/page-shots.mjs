// The pictures of docs/reading/page.md, by Chromium: node page-shots.mjs MODULES CHROMIUM PAGE.html DIR. `make pictures` runs this.
// MODULES is the directory that has node_modules, PAGE.html what `analyze report` wrote.

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';

const [modules, executablePath, file, dir] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)('playwright-core');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

// A picture of what is at a place of the page, after something was done there.
async function shot(name, options, at, act = async () => {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  await page.goto(`file://${resolve(file)}`);
  await page.waitForSelector('html[data-ready=yes]', { timeout: 30000 });
  if (at) await page.evaluate(id => document.getElementById(id).scrollIntoView(), at);
  await act(page);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(dir, name) });
  await context.close();
}

// Four tenths of the first chart, by a drag.
async function choose(page) {
  const chart = await page.locator('canvas').first().boundingBox();
  await page.mouse.move(chart.x + chart.width * 0.3, chart.y + chart.height / 2);
  await page.mouse.down();
  await page.mouse.move(chart.x + chart.width * 0.7, chart.y + chart.height / 2, { steps: 8 });
  await page.mouse.up();
}

await shot('report-light.png', { colorScheme: 'light' }, 'time');
await shot('report-dark.png', { colorScheme: 'dark' }, 'flames');
await shot('report-chosen.png', { colorScheme: 'light' }, 'time', choose);
await shot('report-phone.png', { colorScheme: 'light', viewport: { width: 390, height: 844 } }, 'flames');
await browser.close();
