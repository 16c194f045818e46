// What tests of the viewer have in common: the module, the commands that are asked, the native program.

import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MemoryFile, Shelf } from '../worker/files.js';
import { run } from '../worker/run.js';
import { textSink } from '../worker/sinks.js';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
export const tapesDirectory = join(root, 'testdata', 'tapes');
export const tapes = readdirSync(tapesDirectory).filter(name => name.endsWith('.tape')).sort();
export const program = join(process.env.SYSTAPE_BIN_DIR ?? join(target, 'release'), 'analyze');

export const module = () => new WebAssembly.Module(readFileSync(join(target, 'viewer', 'analyze.wasm')));

/// The answer of the module to `words`, of files {name: bytes}.
export function asked(made, words, files) {
  const shelf = new Shelf();
  for (const [name, bytes] of Object.entries(files)) shelf.add(name, new MemoryFile(bytes));
  const sink = textSink();
  const begun = performance.now();
  const ended = run(made, words, shelf, { out: bytes => sink.take(bytes) });
  const written = Object.fromEntries([...shelf.written].map(name => [name, Buffer.from(shelf.files.get(name).contents())]));
  return { ...ended, ...sink.result(), written, ms: performance.now() - begun };
}

/// The answer of the program itself, in a directory with the same files.
export function native(words, cwd) {
  const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', NO_COLOR: '1', RAYON_NUM_THREADS: '1' };
  const made = spawnSync(program, words, { cwd, env, maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'pipe'] });
  if (made.error) throw made.error;
  return { status: made.status, text: made.stdout, said: made.stderr.toString() };
}
