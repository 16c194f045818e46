// Asks the module and the program the same of each tape of testdata: text, messages, exit status and written files are the same bytes.
//
//     node viewer/test/parity.mjs [WORDS...]     (only command lines that begin so)

import { copyFileSync, mkdtempSync, readFileSync, rmSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { asked, module, native, tapes, tapesDirectory } from './host.mjs';

/// What is in a file; of gzip what it packs, as packers differ.
const unpacked = bytes => (bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes);

/// TAPE is the tape, OUT a new file.
const COMMANDS = `
TAPE
-y TAPE
--sort end --clone-child TAPE
-e all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:* TAPE
-e all,sched:*,signal:*,block:* --call-graph TAPE
--format json TAPE
--format csv TAPE
-e file --failure --time 0.1,0.5 --clock wall TAPE
--max-events 7 --show-zeros --show-prefix TAPE
-S TAPE
-s --cpu --errno-summary --summary-mode process TAPE
-s --errno-summary --summary-mode cgroup --format json TAPE
-s --by comm,file,errno,cpu TAPE
top TAPE
top --by dir,ext,peer,port --metric calls --hist TAPE
top --by pid --metric p99 --format json TAPE
top --by second,file --top 3 TAPE
top -e sched:*,signal:*,block:*,process:* --by comm,cpu,second TAPE
top -e read,write --by args.fd,pid --value ret --hist TAPE
why TAPE
why --floor 0 --expand TAPE
why --format json TAPE
why --when TAPE
block TAPE
block --top --by comm,tid,uid,cause TAPE
block --hist --queued --by op,comm TAPE
block --sizes --by comm TAPE
files TAPE
files --sockets --top 0 --by errno,file,tid,comm,syscall TAPE
files --opens TAPE
files --slower 0ns --sockets TAPE
opensnoop TAPE
execsnoop --fails TAPE
biosnoop TAPE
biolatency TAPE
tcplife TAPE
syscount -P TAPE
filetop TAPE
killsnoop TAPE
offcputime TAPE
rate --by file,errno --slices 7 TAPE
locks --metric waits TAPE
probes TAPE
path TAPE
path --sums TAPE
path --without read,write TAPE
net TAPE
net --events TAPE
net --udp TAPE
net --by pid,port TAPE
kills --all TAPE
kills -v --format csv TAPE
exec TAPE
exec --tree --all TAPE
exec --exit !=0 TAPE
sched timehist TAPE
sched timehist --format csv TAPE
sched latency --by process TAPE
runqlat --by task TAPE
cpudist TAPE
offcpu --by file,task,comm,syscall,state TAPE
offcpu --wakers 100 TAPE
states TAPE
states --by cgroup,user,process --time 10%,60% TAPE
states --at 50% TAPE
fds --at 100% TAPE
env TAPE
callgraph TAPE
callgraph --of syscall --folded TAPE
callgraph --callee --format json TAPE
samples TAPE
diff TAPE TAPE
info TAPE
info --format json TAPE
list .
check TAPE
tables calls -i TAPE
schema why
help top
--nonsense TAPE
top --by nothing TAPE
-e opennat TAPE
missing.tape
report TAPE -o OUT
callgraph --svg OUT TAPE
export perfetto -o OUT TAPE
export strace TAPE
cut TAPE OUT --time 0,50%
repair TAPE OUT
redact TAPE OUT
export pprof -o OUT TAPE
why --time 20%,80% -p 148 TAPE
`.trim().split('\n');

const only = process.argv.slice(2).join(' ');
const made = module();
const directory = mkdtempSync(join(tmpdir(), 'systape-parity-'));
let [same, texts, files, slowest] = [0, 0, 0, 0];
const faults = [];
try {
  const all = {};
  for (const tape of tapes) {
    copyFileSync(join(tapesDirectory, tape), join(directory, tape));
    all[tape] = readFileSync(join(tapesDirectory, tape));
  }
  for (const tape of tapes) {
    for (const command of COMMANDS.filter(text => text.startsWith(only))) {
      const words = command.split(' ').map(word => word.replace(/^TAPE$/, tape).replace(/^OUT$/, 'out.file'));
      const here = asked(made, words, command === 'list .' ? all : { [tape]: all[tape] });
      const out = join(directory, 'out.file');
      rmSync(out, { force: true });
      const there = native(words, directory);
      const line = `analyze ${words.join(' ')}`;
      slowest = Math.max(slowest, here.ms);
      const wrong = [];
      if (here.fault) wrong.push(here.fault);
      if (here.status !== there.status) wrong.push(`exit status ${here.status}, not ${there.status}`);
      if (!Buffer.from(here.text).equals(there.text)) wrong.push(`${here.text.length} bytes of text, not the same ${there.text.length}`);
      if (here.said !== there.said) wrong.push(`says ${JSON.stringify(here.said)}, not ${JSON.stringify(there.said)}`);
      if (command.includes('OUT')) {
        const wrote = existsSync(out) ? readFileSync(out) : null;
        const mine = here.written['out.file'] ?? null;
        if ((wrote === null) !== (mine === null)) wrong.push(`a file is written: ${mine !== null}, not ${wrote !== null}`);
        // a copy of a tape has an id of its own, at random
        else if (wrote && (/^(cut|repair|redact)/.test(command) ? wrote.length !== mine.length : !unpacked(wrote).equals(unpacked(mine)))) wrong.push(`another file: ${mine.length} bytes, ${wrote.length}`);
        else if (wrote) files++;
      }
      if (wrong.length) faults.push(`${line}: ${wrong.join('; ')}`);
      else same++;
      if (there.text.length) texts++;
    }
  }
} finally {
  rmSync(directory, { recursive: true });
}
faults.slice(0, 40).forEach(fault => console.error(fault));
console.log(`${same} of ${same + faults.length} command lines are the same (${texts} with text, ${files} files); the slowest ${Math.round(slowest)} ms`);
process.exitCode = faults.length || same < 1 ? 1 : 0;
