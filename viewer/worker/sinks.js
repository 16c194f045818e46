// Where the text of an answer goes: kept up to a limit, or as some of its lines with the number of all of them.

/// Most bytes of text that are kept.
export const MOST_TEXT = 32 * 1024 * 1024;
/// Time after which lines are no longer counted, ms.
const PATIENCE = 1500;

/// Keeps text.
export function textSink(most = MOST_TEXT) {
  const pieces = [];
  let size = 0;
  return {
    cut: false,
    take(bytes) {
      const room = most - size;
      pieces.push(bytes.slice(0, room));
      size += Math.min(bytes.length, room);
      this.cut = bytes.length > room;
      return !this.cut;
    },
    result() {
      const all = new Uint8Array(size);
      let at = 0;
      for (const piece of pieces) {
        all.set(piece, at);
        at += piece.length;
      }
      return { text: all, cut: this.cut };
    },
  };
}

/// Keeps the lines from number `from` on, `count` of them; the others are counted, for as long as `now` says that there is time.
export function linesSink(from, count, now = () => performance.now()) {
  const kept = textSink();
  const begun = now();
  let lines = 0;
  let stopped = false;
  const NEWLINE = 10;
  return {
    take(bytes) {
      let at = 0;
      while (at < bytes.length) {
        const next = bytes.indexOf(NEWLINE, at);
        const end = next < 0 ? bytes.length : next + 1;
        if (lines >= from && lines < from + count) kept.take(bytes.subarray(at, end));
        if (next >= 0) lines++;
        at = end;
      }
      stopped = lines >= from + count && now() - begun > PATIENCE;
      return !stopped;
    },
    result() {
      return { ...kept.result(), lines, more: stopped };
    },
  };
}
