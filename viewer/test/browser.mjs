// Opens the viewer in Chromium as a file of the disk, drops tapes on it, and uses it as a person would:
//
//     node viewer/test/browser.mjs MODULES CHROMIUM [SHOTS]
//
// MODULES is the directory that has playwright-core (scripts/setup.sh test). Each report's text in the page is that of the program; the
// page asks for nothing but itself and what it made (blob:), and has nothing to complain about. With SHOTS, a directory, pictures are made.

import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native, program, tapesDirectory, target } from './host.mjs';

const [modules, executablePath, shots] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)('playwright-core');
const url = `file://${join(target, 'viewer', 'systape.html')}`;
const faults = [];
const counts = { texts: 0, events: 0, requests: 0 };

function check(fits, what) {
  if (!fits) faults.push(what);
}

/// The reports of the page, as views.js has them.
const views = readFileSync(new URL('../page/views.js', import.meta.url), 'utf8');
const { REPORTS, ORDER, linkOf } = new Function(`${views}; return { REPORTS, ORDER, linkOf };`)();

async function open(browser, options = {}, address = url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  page.on('request', request => {
    counts.requests++;
    const allowed = [address, 'blob:', 'data:,'].some(begin => request.url().startsWith(begin));
    check(allowed, `asks for ${request.url().slice(0, 200)}`);
  });
  page.on('console', message => check(false, `console: ${message.text().slice(0, 300)}`));
  page.on('pageerror', error => check(false, `${error.stack ?? error}`.slice(0, 400)));
  page.on('dialog', dialog => check(false, `dialog ${dialog.message()}`));
  await page.goto(address);
  await page.waitForSelector('html[data-ready=yes]', { timeout: 60000 });
  return page;
}

async function drop(page, files) {
  await page.setInputFiles('#pick', files);
  await page.waitForSelector('#seen:not([hidden])', { timeout: 20000 });
}

/// Waits until `holds` does. (Playwright's own way needs eval, which the page forbids.)
async function until(page, holds, value) {
  for (let round = 0; round < 600; round++) {
    if (await page.evaluate(holds, value)) return;
    await page.waitForTimeout(50);
  }
  throw new Error(`it does not come to hold that ${holds}`);
}

/// Goes to a view and waits until it has answered.
async function go(page, view, options = '') {
  await page.evaluate(link => location.hash = link, linkOf(view, options));
  await until(page, name => document.querySelector('#body .view')?.classList.contains(name), view);
  const done = view === 'calls' ? '.virtual[data-done=yes]' : '.result[data-done=yes]';
  await page.waitForSelector(`#body ${done}`, { timeout: 60000, state: 'attached' });
}

/// The text that is seen is the program's.
async function isNative(page, place, words, tape, cwd = tapesDirectory) {
  const there = native([...words, tape], cwd);
  const here = await page.evaluate(selector => {
    const box = document.querySelector(selector);
    return { text: box?.querySelector('pre.answer')?.textContent ?? '', said: box?.querySelector('pre.said')?.textContent ?? '' };
  }, place);
  const line = `analyze ${[...words, tape].join(' ')}`;
  check(here.text === there.text.toString(), `${line}: the page has ${here.text.length} characters, not ${there.text.toString().length}`);
  check(here.said === there.said.trimEnd(), `${line}: the page says ${here.said}, not ${there.said}`);
  if (here.text) counts.texts++;
}

async function reports(page, tape) {
  for (const [view, { commands }] of Object.entries(REPORTS)) {
    for (const command of commands) {
      await go(page, view, command);
      await page.waitForSelector('#body .result[data-done=yes]:not([aria-busy])', { state: 'attached' });
      await isNative(page, '#body .result', command.split(' '), tape);
      const shown = await page.textContent('#command');
      check(shown === `analyze ${command} ${tape}`, `${view}: the command is ${shown}`);
    }
  }
  await go(page, 'overview');
  await page.click('#body .why summary');
  await page.waitForSelector('#body .why-text[data-done=yes]', { state: 'attached' });
  await isNative(page, '#body .info-text', ['info'], tape);
  await isNative(page, '#body .why-text', ['why'], tape);
  for (const words of [['--by', 'comm,syscall', '--metric', 'total', '--top', '20'], ['--by', 'dir', '--metric', 'calls', '--top', '10', '--hist']]) {
    await go(page, 'top', words.join(' '));
    await isNative(page, '#body .result', ['top', ...words], tape);
  }
  for (const text of ['top --by errno --format csv', "-e 'open*' --max-events 20", 'schema why', '--nonsense', 'why --floor 0', 'redact ./nothing']) {
    await go(page, 'console', text);
    const words = text.replaceAll("'", '').split(' ');
    if (text === 'schema why') check((await page.textContent('#body pre.answer')) === native(words, tapesDirectory).text.toString(), 'schema why differs');
    else await isNative(page, '#body .result', words, tape);
  }
}

/// Rows of the table of calls are those of the listing, and their number is exact.
async function calls(page, tape) {
  for (const filter of ['', '-e file', '--failure']) {
    const words = filter.split(' ').filter(Boolean);
    await go(page, 'calls', filter);
    const rows = native([...words, '--format', 'json', tape], tapesDirectory).text.toString().split('\n').filter(Boolean).map(line => JSON.parse(line));
    const told = await page.textContent('#body output');
    check(told === `${rows.length.toLocaleString('en-US')} rows`, `${tape} ${filter}: ${told}, not ${rows.length}`);
    if (rows.length === 0) continue;
    const see = () => page.$$eval('.virtual-rows .virtual-row', lines => lines.map(line => [Number(line.getAttribute('aria-rowindex')) - 2, ...[...line.children].map(cell => cell.textContent)]));
    for (const part of [0, 0.5, 1]) {
      await page.evaluate(to => {
        const box = document.querySelector('.virtual');
        box.scrollTop = to * box.scrollHeight;
      }, part);
      await page.waitForTimeout(60);
      await until(page, () => ![...document.querySelectorAll('.virtual-rows .virtual-row span:first-child')].some(cell => cell.textContent === '…'));
      for (const [number, start, , who, call] of await see()) {
        const row = rows[number];
        check(start === (Number(row.ts_ns) / 1e9).toFixed(6) && who.endsWith(String(row.tid ?? row.pid ?? '')) && call === (row.syscall ?? row.event ?? 'lost'), `${tape} ${filter}: row ${number} is ${start} ${who} ${call}`);
      }
    }
  }
}

/// The time line's sums of running time are those of `sched latency`.
async function timeLine(page, tape) {
  await go(page, 'time');
  await page.waitForSelector('.lane-name');
  const threads = native(['sched', 'timehist', '--format', 'json', tape], tapesDirectory).text.toString().split('\n').filter(Boolean).map(line => JSON.parse(line));
  if (threads.length === 0) return;
  await page.focus('.lanes canvas');
  await page.keyboard.press('Enter');
  await page.waitForSelector('#body .result h2');
  const [name, sums] = await page.evaluate(() => [document.querySelector('#body .result h2').textContent, document.querySelector('#body .result h2 + p').textContent]);
  const tid = Number(/ (\d+), /.exec(name)?.[1]);
  const ran = threads.filter(row => row.tid === tid).reduce((sum, row) => sum + row.run_ns, 0);
  const units = { ns: 1, ms: 1e6, s: 1e9 };
  const [, value, unit] = /on a CPU: ([0-9.]+) (ns|ms|s)/.exec(sums) ?? [null, 'nothing', 'ns'];
  check(Math.abs(Number(value) * units[unit] - ran) <= Math.max(1e4, ran * 0.001), `${tape}: ${name} ran ${value} ${unit}, not ${ran} ns`);
  const link = () => page.evaluate(() => location.hash);
  await page.evaluate(() => scrollTo(0, 0));
  const box = await (await page.$('.lanes canvas')).boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 28);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 28, { steps: 4 });
  await page.mouse.up();
  await until(page, () => location.hash.startsWith('#time/'));
  check(/^#time\/[0-9.]+%2C[0-9.]+$/.test(await link()), `a drag made the link ${await link()}`);
  await page.focus('.lanes canvas');
  for (const key of ['w', 'd', 'a', 's']) await page.keyboard.press(key);
  await page.keyboard.press('Escape');
  await until(page, () => location.hash === '#time');
}

async function flame(page, tape) {
  await go(page, 'flame');
  await page.waitForSelector('.flame canvas');
  await page.focus('.flame canvas');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  const picked = await page.textContent('.view.flame .panel output');
  const rows = native(['callgraph', '--format', 'json', tape], tapesDirectory).text.toString().split('\n').filter(Boolean).map(line => JSON.parse(line));
  const roots = rows.filter(row => row.parent === null).sort((a, b) => b.time_ns - a.time_ns);
  const next = rows.filter(row => row.parent === roots[0].id).sort((a, b) => b.time_ns - a.time_ns)[0];
  check(picked.startsWith(next.sym), `the flame graph is at ${picked}, not ${next.sym}`);
  await page.fill('.view.flame input[type=search]', 'main');
  check(/^[0-9.]+ % match$/.test(await page.textContent('.view.flame .panel .muted')), 'no share of a text');
  await page.fill('.view.flame input[type=search]', '');
}

/// Nothing is wider than a small screen.
async function narrow(page) {
  await page.setViewportSize({ width: 390, height: 800 });
  for (const view of ORDER) {
    await go(page, view, view === 'console' ? 'why' : '');
    await page.waitForTimeout(80);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(wide <= 390, `${view} is ${wide} pixels wide in 390`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

/// Texts stand out from what is behind them, in both themes.
async function contrast(page) {
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    const weak = await page.evaluate(() => {
      const style = getComputedStyle(document.documentElement);
      const parts = text => [1, 3, 5].map(at => parseInt(text.trim().slice(at, at + 2), 16) / 255).map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      const light = text => parts(text).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
      const of = name => light(style.getPropertyValue(`--${name}`));
      const ratio = (a, b) => (Math.max(of(a), of(b)) + 0.05) / (Math.min(of(a), of(b)) + 0.05);
      return [['fg', 'bg'], ['fg', 'card'], ['muted', 'bg'], ['muted', 'card'], ['accent', 'card'], ['bad', 'card'], ['card', 'accent']]
        .filter(([a, b]) => ratio(a, b) < 4.5).map(([a, b]) => `${a} on ${b}: ${ratio(a, b).toFixed(2)}`);
    });
    check(weak.length === 0, `${scheme}: ${weak}`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
}

/// Numbers of one seed, so that a fault can be seen again.
function random(seed) {
  let state = seed;
  return most => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * most);
  };
}

/// Clicks and keys at random.
async function monkey(page, count, seed) {
  const pick = random(seed);
  const keys = ['w', 'a', 's', 'd', 'Escape', 'Tab', 'Enter', 'ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'End', 'Home', 'PageDown', ' ', 'x', "'", '-'];
  for (let at = 0; at < count; at++) {
    if (pick(20) === 0) await page.evaluate(link => location.hash = link, linkOf(ORDER[pick(ORDER.length)], ['', '-e read', '0.1,0.2', "'", '--by comm'][pick(5)]));
    else if (pick(2)) await page.keyboard.press(keys[pick(keys.length)]);
    else {
      const [x, y] = [pick(1280), pick(900)];
      // not the button that opens a dialog of the system
      const opens = await page.evaluate(([left, top]) => Boolean(document.elementFromPoint(left, top)?.closest('#open, #first, a.download')), [x, y]);
      if (!opens) await page.mouse.click(x, y);
    }
    counts.events++;
  }
  await go(page, 'overview');
}

/// What is no tape, and what is long, is answered by a sentence.
async function oddFiles(browser, directory) {
  const page = await open(browser);
  const odd = join(directory, '-odd & name.tape');
  writeFileSync(odd, 'this is no tape');
  await drop(page, [odd]);
  await go(page, 'overview');
  const said = await page.textContent('#body');
  check(said.includes('not a tape'), `of a file that is no tape the page says ${said.slice(0, 200)}`);
  check((await page.textContent('#command')).includes("'./-odd & name.tape'"), 'a name is not quoted');
  // more than is read at once: a tape, and nothing behind it
  const long = join(directory, 'long.tape');
  copyFileSync(join(tapesDirectory, 'mix-1.5.tape'), long);
  truncateSync(long, 300 * 2 ** 20);
  await drop(page, [long]);
  for (const words of [['info'], ['-s']]) {
    await go(page, 'console', words.join(' '));
    await isNative(page, '#body .result', words, 'long.tape', directory);
  }
  await page.context().close();
}

/// The page that `analyze open` serves has its tape, and asks for these two alone.
async function served(browser) {
  const server = spawn(program, ['open', join(tapesDirectory, 'mix-1.5.tape')],
    { env: { ...process.env, SYSTAPE_VIEWER: join(target, 'viewer', 'systape.html') }, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const address = await new Promise((resolve, reject) => {
      server.stdout.on('data', text => resolve(`${text}`.trim()));
      server.on('exit', status => reject(new Error(`analyze open ends with ${status}`)));
    });
    const page = await open(browser, { offline: false }, address);
    await page.waitForSelector('#body .result[data-done=yes]', { state: 'attached', timeout: 60000 });
    await page.click('#body summary');
    await isNative(page, '#body .info-text', ['info'], 'mix-1.5.tape');
    await page.context().close();
  } finally {
    server.kill();
  }
}

/// What a report writes can be saved and asked.
async function written(page) {
  await go(page, 'console', 'cut -o half.tape --time 0,50% mix-1.5.tape');
  const names = await page.$$eval('#tape option', options => options.map(option => option.value));
  check(names.includes('half.tape'), `a cut is not among ${names}`);
  await go(page, 'console', 'check half.tape');
  check((await page.textContent('#body pre.answer')).includes('good'), 'a cut is not good');
}

/// A question is given up.
async function cancelled(page) {
  await page.evaluate(() => location.hash = '#console/-s');
  await page.evaluate(() => document.getElementById('cancel').click());
  await page.waitForSelector('#body .result[data-done=yes]');
  await go(page, 'kills');
  await go(page, 'console', '-s');
  check(await page.$('#body pre.answer') !== null, 'after a question was given up there is no answer');
}

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const directory = mkdtempSync(join(tmpdir(), 'systape-viewer-'));
try {
  const page = await open(browser);
  const ready = await page.evaluate(() => performance.getEntriesByName('ready')[0].startTime);
  for (const tape of ['mix-1.5.tape', 'stacks-1.2.tape', 'ledger-1.3.tape']) {
    await drop(page, [join(tapesDirectory, tape)]);
    await reports(page, tape);
    await calls(page, tape);
    await timeLine(page, tape);
    if (tape.startsWith('stacks')) await flame(page, tape);
    if (shots && tape.startsWith('mix')) {
      await go(page, 'overview');
      await page.screenshot({ path: join(shots, 'viewer-overview.png') });
      await go(page, 'time');
      await page.waitForSelector('.lane-name');
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(shots, 'viewer-time.png') });
    }
  }
  await drop(page, [join(tapesDirectory, 'mix-1.5.tape')]).catch(() => {});
  await page.selectOption('#tape', 'mix-1.5.tape');
  await contrast(page);
  await written(page);
  await cancelled(page);
  await narrow(page);
  await monkey(page, Number(process.env.EVENTS ?? 600), Number(process.env.SEED ?? 7));
  await oddFiles(browser, directory);
  await served(browser);
  console.log(`viewer: ready after ${Math.round(ready)} ms; ${counts.texts} texts are the program's; ${counts.events} clicks and keys; ${counts.requests} requests, all of the page itself`);
} finally {
  await browser.close();
  rmSync(directory, { recursive: true });
}
[...new Set(faults)].slice(0, 40).forEach(fault => console.error(fault));
console.log(`${faults.length} faults`);
process.exitCode = faults.length ? 1 : 0;
