// Opens pages of `analyze report` in Chromium and uses them as a person would; report_browser.rs makes the pages and runs this:
//
//     node check.mjs MODULES CHROMIUM PAGES.json
//
// MODULES is the directory that has node_modules; PAGES.json is [{name, file, calls}], `calls` the rows of `analyze top --by syscall`.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [modules, executablePath, list] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)('playwright-core');
const pages = JSON.parse(readFileSync(list, 'utf8'));
const faults = [];

function check(fits, name, what) {
  if (!fits) faults.push(`${name}: ${what}`);
}

const number = text => Number(text.replace(/[^0-9.]/g, ''));

/// Opens a page, and notes all that it asks for or complains about.
async function open(browser, { name, file }, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const url = `file://${file}`;
  page.on('request', request => check(request.url() === url, name, `asks for ${request.url().slice(0, 200)}`));
  page.on('console', message => check(message.type() !== 'error', name, `console: ${message.text().slice(0, 300)}`));
  page.on('pageerror', error => check(false, name, `${error}`.slice(0, 300)));
  page.on('dialog', dialog => check(false, name, `dialog ${dialog.message()}`));
  await page.goto(url);
  if (options.javaScriptEnabled !== false) await page.waitForSelector('html[data-ready=yes]', { timeout: 30000 });
  return page;
}

async function timing(page, name) {
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null);
  const ready = await page.evaluate(() => performance.getEntriesByName('ready')[0].startTime);
  console.log(`${name}: first paint ${paint === null ? 'not yet' : `${Math.round(paint)} ms`}, usable ${Math.round(ready)} ms`);
}

async function fits(page, name, width) {
  await page.setViewportSize({ width, height: 900 });
  await page.waitForTimeout(150);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= width, name, `is ${wide} pixels wide in ${width}`);
}

/// The figures of the table of calls are those of the report.
async function figures(page, { name, calls }) {
  const rows = await page.$$eval('#by-syscall tbody tr', lines => lines.map(line =>
    [line.cells[0].textContent, ...[1, 2, 3].map(cell => line.cells[cell].dataset.v ?? null)]));
  const expected = calls.map(row => [row.syscall, ...[row.calls, row.errors, row.total_ns].map(value => value === null ? null : String(value))]);
  check(JSON.stringify(rows) === JSON.stringify(expected.slice(0, 300)), name, `calls are ${JSON.stringify(rows.slice(0, 3))}`);
}

/// Sums of calls in a stretch of time, made here from the data of the page.
function sums(data, from, to) {
  const first = Math.floor((from - data.from) / data.width + 1e-9);
  const end = Math.ceil((to - data.from) / data.width - 1e-9);
  const all = data.calls.names.map(({ name, at, n }) => [name, at.reduce((sum, slice, i) => sum + (slice >= first && slice < end ? n[i] : 0), 0)]);
  return new Map(all.filter(([, calls]) => calls > 0));
}

const table = page => page.$$eval('#charts .panel tbody tr', lines => lines.map(line => [line.cells[0].textContent, line.cells[1].textContent]));

async function drag(page, place, from, to) {
  await place.scrollIntoViewIfNeeded();
  const box = await place.boundingBox();
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * from, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * (from + to) / 2, y, { steps: 3 });
  await page.mouse.move(box.x + box.width * to, y, { steps: 3 });
  await page.mouse.up();
  await page.waitForTimeout(100);
}

async function brush(page, name) {
  const data = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent));
  if (!data.calls) return;
  const whole = await table(page);
  const places = [await page.$('.u-over'), await page.$('.heat')].filter(Boolean);
  for (const place of places) {
    await drag(page, place, 0.3, 0.6);
    check(await page.isVisible('#range'), name, 'a drag chooses no time');
    const command = await page.textContent('#charts .panel .foot code');
    const [from, to] = /--time ([0-9.]+),([0-9.]+)/.exec(command)?.slice(1).map(seconds => Number(seconds) * 1e9) ?? [0, 0];
    const length = data.to - data.from;
    check(to > from && to - from > 0.15 * length && to - from < 0.5 * length, name, `chose ${command}`);
    const expected = sums(data, from, to);
    const shown = await table(page);
    check(shown.length === Math.min(15, expected.size), name, `${shown.length} names of ${expected.size} in the chosen time`);
    for (const [call, count] of shown) check(number(count) === expected.get(call), name, `${count} ${call} in the chosen time, not ${expected.get(call)}`);
    await page.keyboard.press('Escape');
    check(!await page.isVisible('#range') && JSON.stringify(await table(page)) === JSON.stringify(whole), name, 'Escape does not show all');
  }
  const button = await page.$('.findings button.when');
  if (button) {
    await button.click();
    check(await page.isVisible('#range'), name, "a finding's time is not chosen");
    await page.click('#range-all');
    check(!await page.isVisible('#range'), name, 'Show all does not');
  }
}

async function sortAndFilter(page, name) {
  const values = () => page.$$eval('#by-syscall tbody tr:not([hidden]) td:nth-child(2)', cells => cells.map(cell => Number(cell.dataset.v)));
  const head = page.locator('#by-syscall th:nth-child(2) button');
  if (await head.count() === 0) return;
  const sorted = (list, order) => list.every((value, at) => at === 0 || order * (list[at - 1] - value) <= 0);
  await head.click();
  check(sorted(await values(), -1), name, 'the most calls are not first');
  await head.click();
  check(sorted(await values(), 1), name, 'the fewest calls are not first');
  for (const box of await page.$$('input[type=search]')) {
    await box.fill('no such text');
    await box.fill('');
  }
  const panel = page.locator('#calls .panel').first();
  if (await panel.locator('tbody tr').count() === 0) return;
  const call = await panel.locator('tbody tr td:nth-child(4)').first().textContent();
  await panel.locator('input').fill(call);
  const left = await panel.locator('tbody tr').allTextContents();
  check(left.length > 0 && left.every(row => row.includes(call)), name, `the filter ${call} leaves others`);
  await panel.locator('input').fill('');
}

async function flames(page, name) {
  for (const panel of await page.$$('#flames .panel')) {
    const canvas = await panel.$('canvas');
    await canvas.scrollIntoViewIfNeeded();
    const pixels = () => canvas.evaluate(made => made.toDataURL());
    const before = await pixels();
    // scrolled to its foot, where the widest frames are
    const box = await (await panel.$('.flame')).boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 26);
    check(await page.isVisible('#tip'), name, 'a function shows nothing beside the pointer');
    await page.mouse.click(box.x + box.width / 2, box.y + box.height - 26);
    const back = await panel.$('button');
    check(await back.isVisible(), name, 'a function does not become the whole width');
    await back.click();
    check(await pixels() === before, name, 'the whole graph does not come back');
    await (await panel.$('input')).fill('a');
    check(/^[0-9.]+ % match$/.test(await (await panel.$('.tools .muted')).textContent()), name, 'no share of a text');
    check(await pixels() !== before, name, 'functions with a text have no colour');
    await (await panel.$('input')).fill('');
  }
}

/// The heading of a flame graph names the time that it is of.
async function flamesOfTime(page, name) {
  if (await page.locator('#flames .panel').count() === 0) return;
  await drag(page, await page.$('.u-over'), 0.3, 0.6);
  const headings = await page.$$eval('#flames .panel h3', heads => heads.map(head => head.textContent));
  const fits = heading => heading.startsWith('Off') ? heading.endsWith(', of all of the time') : /, from [0-9.]+ s to [0-9.]+ s$/.test(heading);
  check(headings.length > 0 && headings.every(fits), name, `flame graphs of a chosen time are ${headings}`);
  await page.keyboard.press('Escape');
}

async function themes(page, name) {
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await background();
  check(light !== dark, name, 'dark is as light');
  await page.click('#theme');
  check(await background() === light, name, 'the switch does not make it light');
  await page.click('#theme');
  check(await background() === dark, name, 'the switch does not make it dark');
  await page.emulateMedia({ colorScheme: 'light' });
}

/// What the policy forbids does not happen.
async function guarded(page, name) {
  const canary = () => page.evaluate(() => window.canary);
  check(await canary() === undefined, name, 'something of the tape ran');
  const forbidden = await page.evaluate(async () => {
    const say = [];
    const script = document.createElement('script');
    try {
      script.textContent = 'window.canary = 1';
      document.body.append(script);
    } catch { say.push('script'); }
    try {
      document.body.innerHTML += '<b>x</b>';
    } catch { say.push('markup'); }
    const button = document.createElement('button');
    try {
      button.setAttribute('onclick', 'window.canary = 1');
    } catch { say.push('handler'); }
    document.body.append(button);
    button.click();
    return say;
  });
  check(await canary() === undefined, name, 'a script that is none of ours runs');
  check(forbidden.includes('script') && forbidden.includes('markup'), name, `forbidden is only ${forbidden}`);
}

async function withoutScripts(browser, made) {
  const page = await open(browser, made, { javaScriptEnabled: false });
  for (const part of ['#top h1', '#losses', '#findings', '#kills', '#tables']) {
    check(await page.isVisible(part), made.name, `${part} is not seen without scripts`);
  }
  check(!await page.isVisible('#time'), made.name, 'an empty time line is seen without scripts');
  const pdf = await page.pdf({ format: 'A4' });
  check(pdf.length > 10000, made.name, 'nothing is printed');
  await page.context().close();
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  for (const made of pages) {
    const page = await open(browser, made);
    await timing(page, made.name);
    await figures(page, made);
    await brush(page, made.name);
    await sortAndFilter(page, made.name);
    await flames(page, made.name);
    await flamesOfTime(page, made.name);
    await themes(page, made.name);
    await fits(page, made.name, 1280);
    await fits(page, made.name, 390);
    const policed = page.context();
    page.removeAllListeners('console');
    await guarded(page, made.name);
    await policed.close();
    await withoutScripts(browser, made);
  }
} finally {
  await browser.close();
}
faults.forEach(fault => console.error(fault));
console.log(`${pages.length} pages, ${faults.length} faults`);
process.exitCode = faults.length ? 1 : 0;
