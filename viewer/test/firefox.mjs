// The viewer in Firefox, if there is one: from the disk, over WebDriver BiDi. Some reports' text is the program's, each view comes, and
// the console stays empty.
//
//     node viewer/test/firefox.mjs MODULES

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native, tapesDirectory, target } from './host.mjs';

const program = ['firefox', 'firefox-esr'].find(name => spawnSync(name, ['--version']).status === 0);
if (!program) {
  console.log('firefox: SKIPPED: there is none');
  process.exit(0);
}
const WebSocket = globalThis.WebSocket ?? createRequire(`${process.argv[2]}/`)('playwright-core/lib/utilsBundle').ws;
const views = readFileSync(new URL('../page/views.js', import.meta.url), 'utf8');
const { ORDER, linkOf } = new Function(`${views}; return { ORDER, linkOf };`)();
const profile = mkdtempSync(join(tmpdir(), 'systape-firefox-'));
const faults = [];

const child = spawn(program, ['--headless', '--remote-debugging-port=0', '--profile', profile, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
const address = await new Promise((resolve, reject) => {
  let said = '';
  child.stderr.on('data', text => {
    said += text;
    const found = /WebDriver BiDi listening on (ws:\S+)/.exec(said);
    if (found) resolve(found[1]);
  });
  child.on('exit', status => reject(new Error(`${program} ends with ${status}: ${said.slice(0, 300)}`)));
  setTimeout(() => reject(new Error(`${program} does not listen: ${said.slice(0, 300)}`)), 60000);
});

const socket = new WebSocket(`${address}/session`);
await new Promise((resolve, reject) => {
  socket.onopen = resolve;
  socket.onerror = () => reject(new Error('no connection to the browser'));
});
const waiting = new Map();
let number = 0;
socket.onmessage = ({ data }) => {
  const message = JSON.parse(data);
  if (message.method === 'log.entryAdded') faults.push(`console: ${message.params.text}`);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
};

async function send(method, params) {
  const id = ++number;
  const answer = new Promise(resolve => waiting.set(id, resolve));
  socket.send(JSON.stringify({ id, method, params }));
  const message = await answer;
  if (message.type === 'error') throw new Error(`${method}: ${message.error}: ${message.message}`);
  return message.result;
}

async function main() {
  await send('session.new', { capabilities: {} });
  await send('session.subscribe', { events: ['log.entryAdded'] });
  const { context } = await send('browsingContext.create', { type: 'tab' });
  const run = async expression => {
    const made = await send('script.evaluate', { expression, target: { context }, awaitPromise: true });
    if (made.type === 'exception') throw new Error(`${expression.slice(0, 80)}: ${made.exceptionDetails.text}`);
    return made.result;
  };
  const until = async expression => {
    for (let round = 0; round < 1200; round++) {
      if ((await run(expression)).value) return;
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    throw new Error(`it does not come to hold that ${expression}`);
  };
  await send('browsingContext.navigate', { context, url: `file://${join(target, 'viewer', 'systape.html')}`, wait: 'complete' });
  await until("document.documentElement.dataset.ready === 'yes'");
  const element = await run("document.getElementById('pick')");
  await send('input.setFiles', { context, element: { sharedId: element.sharedId }, files: [join(tapesDirectory, 'stacks-1.2.tape')] });
  await until("!document.getElementById('seen').hidden");
  const go = async (view, options) => {
    await run(`location.hash = ${JSON.stringify(linkOf(view, options))}`);
    const done = view === 'calls' ? '.virtual[data-done=yes]' : '.result[data-done=yes]';
    await until(`document.querySelector('#body .view.${view}') !== null && document.querySelector('#body ${done}') !== null`);
  };
  for (const view of ORDER) await go(view, view === 'console' ? 'why' : '');
  let texts = 0;
  for (const words of ['why', 'info', '-s', 'callgraph', 'states', '--max-events 200', 'top --by comm,syscall --hist', 'sched latency', '--nothing']) {
    await go('console', words);
    const [text, said] = await Promise.all(['answer', 'said'].map(async name => (await run(`document.querySelector('#body pre.${name}')?.textContent ?? ''`)).value));
    const there = native([...words.split(' '), 'stacks-1.2.tape'], tapesDirectory);
    if (text !== there.text.toString() || said !== there.said.trimEnd()) faults.push(`analyze ${words}: the page says something else`);
    texts++;
  }
  console.log(`firefox: ${ORDER.length} views, ${texts} texts, ${faults.length} faults`);
}

try {
  await main();
} finally {
  child.removeAllListeners('exit');
  child.kill();
  await new Promise(resolve => child.on('exit', resolve));
  rmSync(profile, { recursive: true, force: true });
}
faults.slice(0, 20).forEach(fault => console.error(fault));
process.exit(faults.length ? 1 : 0);
