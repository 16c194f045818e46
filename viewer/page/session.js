// The worker of the page: the dropped files, questions one after the other, progress, cancel.

const session = {
  module: null,
  worker: null,
  /// What was dropped or made: {name, file, made}.
  files: [],
  tape: null,
  /// Questions that wait for an answer, the first of them is being answered.
  asked: [],
  number: 0,
  progress: () => {},
  opened: () => {},
};

const CANCELLED = 'cancelled';

/// The module, from the page.
async function loadModule() {
  const text = byId('module').textContent.trim();
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  session.module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
}

let workerUrl = null;

function startWorker() {
  if (!workerUrl) {
    const source = byId('worker').textContent;
    const url = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }));
    workerUrl = globalThis.trustedTypes
      ? trustedTypes.createPolicy('systape', { createScriptURL: made => (made === url ? made : '') }).createScriptURL(url)
      : url;
  }
  const worker = new Worker(workerUrl);
  worker.onmessage = ({ data }) => heard(data);
  worker.onerror = event => {
    event.preventDefault();
    failAll(`the worker failed: ${event.message}`);
  };
  worker.postMessage({ kind: 'module', module: session.module });
  if (session.files.length) worker.postMessage({ kind: 'files', files: session.files.map(({ name, file }) => ({ name, file })) });
  session.worker = worker;
}

function heard(message) {
  const first = session.asked[0];
  switch (message.kind) {
    case 'progress':
      session.progress(message.done / Math.max(1, message.all), message.text);
      break;
    case 'opened':
      session.opened();
      break;
    case 'answer':
      session.asked.shift();
      session.progress(null);
      message.made.forEach(({ name, bytes }) => session.files.push({ name, file: new Blob([bytes]), made: true }));
      first.resolve(message);
      next();
      break;
    case 'failed':
      failAll(/memory|allocation/i.test(message.why)
        ? `the browser has no memory for this file (${message.why}): cut a part of it with 'analyze cut', or close other pages`
        : `the file cannot be read: ${message.why}`);
      break;
  }
}

function failAll(why) {
  stopWorker();
  const all = session.asked.splice(0);
  all.forEach(question => question.reject(new Error(why)));
}

function stopWorker() {
  session.worker?.terminate();
  session.worker = null;
  session.progress(null);
}

function next() {
  const question = session.asked[0];
  if (!question || question.sent) return;
  if (!session.worker) startWorker();
  question.sent = true;
  session.progress(0, 'reads');
  session.worker.postMessage({ kind: 'ask', id: question.id, words: question.words, sink: question.sink, keep: question.keep });
}

/// Asks `analyze` with `words`, for `scope`, the view that wants the answer.
function ask(words, { scope = null, sink = null, keep = false } = {}) {
  return new Promise((resolve, reject) => {
    session.asked.push({ id: ++session.number, words, sink, keep, scope, resolve, reject, sent: false });
    next();
  });
}

/// Gives up all questions of `scope`, or all there are.
function cancel(scope = null) {
  const gone = session.asked.filter(question => scope === null || question.scope === scope);
  if (gone.length === 0) return;
  // what runs cannot be told to stop: the worker goes with it
  if (gone.some(question => question.sent)) stopWorker();
  session.asked = session.asked.filter(question => !gone.includes(question));
  gone.forEach(question => question.reject(new Error(CANCELLED)));
  next();
}

/// Adds files; a name that is there already gets a number.
function addFiles(list) {
  const added = [];
  for (const file of list) {
    const name = file.name.replaceAll('/', '_') || 'tape';
    let free = name;
    for (let number = 2; session.files.some(other => other.name === free); number++) free = `${number}-${name}`;
    session.files.push({ name: free, file, made: false });
    added.push(free);
  }
  session.tape = added[0] ?? session.tape;
  stopWorker();
  startWorker();
  return added;
}

/// The tape as a word of a command line: a name that would be an option is one in this directory.
function tapeWord() {
  return session.tape.startsWith('-') ? `./${session.tape}` : session.tape;
}

const decoder = new TextDecoder();
const textOf = answer => decoder.decode(answer.text);

/// Rows of JSON, one a line.
function rowsOf(answer) {
  return textOf(answer).split('\n').filter(Boolean).map(line => JSON.parse(line));
}
