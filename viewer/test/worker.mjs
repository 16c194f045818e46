// The parts of the worker by themselves: files in pages, lines of an answer, lanes, words of a command line.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { MemoryFile, PagedFile, Shelf } from '../worker/files.js';
import { RUN, QUEUE, SLEEP, DISK, CALL, fields, lanesSink } from '../worker/lanes.js';
import { linesSink, textSink } from '../worker/sinks.js';

const bytes = text => new TextEncoder().encode(text);
const text = made => new TextDecoder().decode(made);

// pages: any read is the file's bytes, and pages one behind the other are read several at a time
{
  const all = Uint8Array.from({ length: 20 * 2 ** 20 + 12345 }, (_, at) => (at * 7 + (at >> 13)) & 255);
  let loads = 0;
  const file = new PagedFile(all.length, (from, to) => {
    loads++;
    return all.slice(from, to);
  });
  const whole = new Uint8Array(all.length + 100);
  for (let at = 0; at < all.length; at += 65536) file.read(at, whole.subarray(at, at + 65536));
  assert.deepEqual(whole.subarray(0, all.length), all);
  assert.ok(loads <= 5, `${loads} loads of 21 pages`);
  for (const [at, length] of [[0, 1], [2 ** 20 - 3, 7], [all.length - 5, 100], [all.length, 4], [3 * 2 ** 20, 3 * 2 ** 20]]) {
    const to = new Uint8Array(length);
    const got = file.read(at, to);
    assert.equal(got, Math.max(0, Math.min(length, all.length - at)));
    assert.deepEqual(to.subarray(0, got), all.slice(at, at + got));
  }
}

// files that are written
{
  const file = new MemoryFile();
  file.write(3, bytes('abc'));
  file.write(1, bytes('x'));
  file.resize(5);
  assert.deepEqual([...file.contents()], [0, 120, 0, 97, 98]);
  file.resize(8);
  assert.deepEqual([...file.contents()], [0, 120, 0, 97, 98, 0, 0, 0]);
  const shelf = new Shelf();
  shelf.create('a').write(0, bytes('12345'));
  shelf.add('t.tape', new MemoryFile(bytes('no')));
  assert.equal(shelf.bytesWritten(), 5);
  assert.ok(shelf.remove('a') && shelf.bytesWritten() === 0);
}

// text up to a limit; lines in any pieces
{
  const sink = textSink(5);
  assert.ok(sink.take(bytes('abc')));
  assert.ok(!sink.take(bytes('defg')));
  assert.deepEqual([text(sink.result().text), sink.result().cut], ['abcde', true]);
  const long = Array.from({ length: 1000 }, (_, at) => `line ${at}\n`).join('');
  for (const piece of [1, 7, 100, 100000]) {
    const lines = linesSink(10, 3);
    for (let at = 0; at < long.length; at += piece) assert.ok(lines.take(bytes(long.slice(at, at + piece))));
    const result = lines.result();
    assert.deepEqual([text(result.text), result.lines, result.more], ['line 10\nline 11\nline 12\n', 1000, false]);
  }
  let now = 0;
  const slow = linesSink(0, 2, () => now += 2000);
  assert.ok(slow.take(bytes('a\n')));
  assert.ok(!slow.take(bytes('b\nc\n')));
  assert.deepEqual([text(slow.result().text), slow.result().lines, slow.result().more], ['a\nb\n', 3, true]);
}

// lanes: shares of buckets and sums
{
  assert.deepEqual(fields('1,"a,""b""",,x'), ['1', 'a,"b"', '', 'x']);
  const head = 'ts_ns,cpu,pid,tid,upid,utid,comm,wait_ns,wait_ns_at_least,delay_ns,delay_ns_at_least,run_ns,run_ns_at_least,state\n';
  const sink = lanesSink('runs', 0, 1000, 10);
  // ran 100..200, slept (D) until 500, waited for a CPU until 600, ran until 650, and sleeps
  sink.take(bytes(`${head}200,0,1,1,1,1,app,100,true,50,false,100,false,D\n650,0,1,1,1,1,"a`));
  sink.take(bytes('pp",400,false,100,false,50,false,S\n'));
  const [lane] = sink.result().lanes;
  assert.deepEqual([RUN, QUEUE, SLEEP, DISK, CALL].map(state => lane.sums[state]), [150, 150, 350, 300, 0]);
  assert.deepEqual([...lane.shares[RUN]], [0, 1, 0, 0, 0, 0, 0.5, 0, 0, 0]);
  assert.deepEqual([...lane.shares[DISK]], [0, 0, 1, 1, 1, 0, 0, 0, 0, 0]);
  // what the kernel's state was before the first run is not known: 0..50 has no colour
  assert.deepEqual([...lane.shares[QUEUE]], [0.5, 0, 0, 0, 0, 1, 0, 0, 0, 0]);
  // a part of the time
  const part = lanesSink('runs', 150, 550, 4);
  part.take(bytes(`${head}200,0,1,1,1,1,app,100,true,50,false,100,false,D\n650,0,1,1,1,1,app,400,false,100,false,50,false,S\n`));
  const { sums } = part.result().lanes[0];
  assert.deepEqual([RUN, QUEUE, SLEEP, DISK].map(state => sums[state]), [50, 50, 0, 300]);
}

// command lines, as a shell reads them
{
  const source = readFileSync(new URL('../page/words.js', import.meta.url), 'utf8');
  const { wordsOf, quoted, lineOf } = new Function(`${source}; return { wordsOf, quoted, lineOf };`)();
  assert.deepEqual(wordsOf(` -e  '!futex' --comm="a b" c\\ d "\\"x\\"" ''`), ['-e', '!futex', '--comm=a b', 'c d', '"x"', '']);
  assert.throws(() => wordsOf("why 'x"), /is not closed/);
  for (const word of ['plain', "it's", 'a b', '', '$HOME', '!x', '-', 'ü']) assert.deepEqual(wordsOf(quoted(word)), [word]);
  assert.equal(lineOf(['-e', '!futex', 't.tape']), "analyze -e '!futex' t.tape");
  const views = readFileSync(new URL('../page/views.js', import.meta.url), 'utf8');
  const { linkOf, linked, ORDER } = new Function(`${views}; return { linkOf, linked, ORDER };`)();
  for (const view of ORDER) assert.deepEqual(linked(linkOf(view, "-e 'a/b#c%'")), { view, options: "-e 'a/b#c%'" });
  assert.deepEqual(linked('#nothing'), { view: 'overview', options: '' });
  assert.deepEqual(linked('#calls/%E0%A4%A'), { view: 'calls', options: '' });
}

console.log('worker: files, lines, lanes and words are as they should be');
