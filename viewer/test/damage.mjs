// Damaged tapes: bytes changed, pieces cut out, doubled or cut off. Each is answered, or refused in a sentence, in a moment; and the same
// way as the program does.
//
//     node viewer/test/damage.mjs [NUMBER]

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asked, module, native, tapes, tapesDirectory } from './host.mjs';

const count = Number(process.argv[2] ?? 240);
/// Every so many is asked of the program too.
const BESIDE = 8;
const MOST_MS = 10000;
const REPORTS = ['info', 'why', '-s', 'states', 'check', 'callgraph', 'sched timehist', '--format json'];

let state = 20;
const pick = most => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 2 ** 32 * most);
};

function damaged(bytes) {
  const [at, length] = [pick(bytes.length), 1 + pick(200)];
  switch (pick(5)) {
    case 0: return bytes.subarray(0, at);
    case 1: return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)]);
    case 2: return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    case 3: {
      const made = Buffer.from(bytes);
      for (let number = 0; number < 1 + pick(8); number++) made[pick(made.length)] = pick(256);
      return made;
    }
    default: {
      const made = Buffer.from(bytes);
      made.fill(pick(2) * 255, at, Math.min(made.length, at + length));
      return made;
    }
  }
}

const made = module();
const directory = mkdtempSync(join(tmpdir(), 'systape-damage-'));
const faults = [];
let [answers, refusals, beside, slowest] = [0, 0, 0, 0];
try {
  for (let number = 0; number < count; number++) {
    const tape = tapes[number % tapes.length];
    const bytes = damaged(readFileSync(join(tapesDirectory, tape)));
    const words = [...REPORTS[pick(REPORTS.length)].split(' '), 't.tape'];
    const here = asked(made, words, { 't.tape': bytes });
    const line = `${number}: ${tape}: analyze ${words.join(' ')}`;
    slowest = Math.max(slowest, here.ms);
    if (here.fault) faults.push(`${line}: ${here.fault}`);
    if (here.ms > MOST_MS) faults.push(`${line}: ${Math.round(here.ms)} ms`);
    if (here.status !== 0 && !/^analyze: .+/m.test(here.said) && here.text.length === 0) faults.push(`${line}: fails without a word`);
    if (here.status === 0) answers++;
    else refusals++;
    if (number % BESIDE === 0) {
      writeFileSync(join(directory, 't.tape'), bytes);
      const there = native(words, directory);
      beside++;
      if (there.status !== here.status || there.said !== here.said || !there.text.equals(Buffer.from(here.text))) faults.push(`${line}: the program says something else`);
    }
  }
} finally {
  rmSync(directory, { recursive: true });
}
faults.slice(0, 40).forEach(fault => console.error(fault));
console.log(`${count} damaged tapes: ${answers} answered, ${refusals} refused, ${beside} compared; the slowest ${Math.round(slowest)} ms; ${faults.length} faults`);
process.exitCode = faults.length ? 1 : 0;
