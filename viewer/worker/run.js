// One question: a fresh instance of the module with the words of a command line.

import { Exit, imports } from './wasi.js';

/// The largest memory of an instance (scripts/viewer.sh), bytes.
const MOST_MEMORY = 2 ** 30;

const NARROWER = 'ask for less: a stretch of time (--time 0,10), a process (-p PID), some calls (-e openat), or keys with fewer values (--by comm)';

/// What analyze says where it would go on in a temporary file, which there is none of here.
const NO_FILE = /sums need more than --memory|they take more than the .* that it has of --memory/;

/// Why an instance stopped, in a sentence.
function sentence(error, size, said) {
  const text = `${error?.message ?? error}`;
  if (/memory allocation of|out of memory/i.test(`${said} ${text}`) || size > 0.9 * MOST_MEMORY) {
    return `the answer needs more than 1 GiB of memory, which is all that a page has: ${NARROWER}`;
  }
  if (error instanceof RangeError && !/stack/i.test(text)) return `the browser has no memory for this answer: ${NARROWER}`;
  if (/stack/i.test(text)) return 'the answer nests deeper than a page can follow: ask for less, or ask analyze itself';
  return `analyze stopped here with a fault (${text}). The page still works; please report the command and, if you may, the tape`;
}

/// Runs `analyze` with `words`; `out` takes its text and returns false when it wants no more. The answer: exit status, messages, and
/// why it stopped if it did not end by itself.
export function run(module, words, shelf, { out, read }) {
  let said = '';
  let instance = null;
  const decoder = new TextDecoder();
  const err = bytes => {
    // messages are few; a flood of them is cut off
    if (said.length < 1 << 20) said += decoder.decode(bytes, { stream: true });
    return true;
  };
  const memory = () => instance.exports.memory;
  try {
    const system = imports(['analyze', ...words], shelf, { out, err, read }, memory);
    instance = new WebAssembly.Instance(module, { wasi_snapshot_preview1: system });
    instance.exports._start();
    return { status: 0, said, fault: null, memory: memory().buffer.byteLength };
  } catch (error) {
    const size = instance ? memory().buffer.byteLength : 0;
    if (error instanceof Exit) {
      const full = error.status !== 0 && NO_FILE.test(said);
      return { status: error.status, said, fault: full ? `the answer needs more memory than a page gives it: ${NARROWER}` : null, memory: size };
    }
    return { status: null, said, fault: sentence(error, size, said), memory: size };
  }
}
