// The worker: holds the module and the dropped files, and answers one question after the other. To cancel one the page ends the worker
// and begins another: nothing here can be told to stop while the module runs.

import { KEPT, MemoryFile, PagedFile, Shelf } from './files.js';
import { lanesSink } from './lanes.js';
import { run } from './run.js';
import { linesSink, textSink } from './sinks.js';

/// Bytes of a file that are read between two messages.
const PIECE = 8 * 1024 * 1024;
/// Time between two messages about progress, ms.
const TICK = 100;

const shelf = new Shelf();
let module = null;
let told = 0;

function progress(text, done, all) {
  const now = performance.now();
  if (now - told < TICK) return;
  told = now;
  postMessage({ kind: 'progress', text, done, all });
}

/// The bytes of a file on the disk, once and whole, or page by page.
function open(name, file) {
  const reader = new FileReaderSync();
  const load = (from, to) => new Uint8Array(reader.readAsArrayBuffer(file.slice(from, to)));
  if (file.size > KEPT) return new PagedFile(file.size, load);
  const bytes = new Uint8Array(file.size);
  for (let at = 0; at < file.size; at += PIECE) {
    bytes.set(load(at, Math.min(file.size, at + PIECE)), at);
    progress(`reads ${name}`, at, file.size);
  }
  return new MemoryFile(bytes);
}

function sinkOf(how) {
  switch (how?.kind) {
    case 'lines': return linesSink(how.from, how.count);
    case 'lanes': return lanesSink(how.of, how.from, how.to, how.buckets);
    default: return textSink();
  }
}

function answer({ id, words, sink: how, keep }) {
  const begun = performance.now();
  const before = new Set(shelf.written);
  const sink = sinkOf(how);
  const ended = run(module, words, shelf, {
    out: bytes => sink.take(bytes),
    read: (at, file) => progress('reads', at, file.size),
  });
  const made = [...shelf.written].filter(name => !before.has(name))
    .map(name => ({ name, bytes: shelf.files.get(name).contents().slice() }));
  // a report that failed, or whose files nobody wants, leaves none
  if (ended.fault || !keep) made.forEach(({ name }) => shelf.remove(name));
  postMessage({ kind: 'answer', id, ...ended, ...sink.result(), made, ms: performance.now() - begun });
}

onmessage = ({ data }) => {
  try {
    switch (data.kind) {
      case 'module':
        module = data.module;
        break;
      case 'files':
        for (const { name, file } of data.files) shelf.add(name, open(name, file));
        postMessage({ kind: 'opened', names: data.files.map(({ name }) => name) });
        break;
      case 'ask':
        answer(data);
        break;
    }
  } catch (error) {
    postMessage({ kind: 'failed', id: data.id ?? null, why: `${error?.message ?? error}` });
  }
};
