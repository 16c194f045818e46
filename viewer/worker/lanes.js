// The time line's data: how much of each stretch of time each thread spent in each state, added up from the rows of a report while it
// writes them. Memory grows with threads and stretches, not with rows.

/// States of a lane, in the order of their colours.
export const STATES = ['on a CPU', 'waiting for a CPU', 'asleep', 'uninterruptible (D)', 'in a call'];
export const [RUN, QUEUE, SLEEP, DISK, CALL] = STATES.keys();
/// Most threads of which there is a lane; of others only their number is kept.
const MOST_THREADS = 4096;

/// The fields of a line of CSV.
export function fields(line) {
  if (!line.includes('"')) return line.split(',');
  const all = [];
  let [field, quoted] = ['', false];
  for (let at = 0; at < line.length; at++) {
    const letter = line[at];
    if (quoted && letter === '"' && line[at + 1] === '"') {
      field += '"';
      at++;
    } else if (letter === '"') {
      quoted = !quoted;
    } else if (letter === ',' && !quoted) {
      all.push(field);
      field = '';
    } else {
      field += letter;
    }
  }
  return [...all, field];
}

/// The state of a thread that left its CPU in the kernel's state `letter`; null: it is gone.
function awayOf(letter) {
  if (/^R/.test(letter)) return QUEUE;
  if (/^D/.test(letter)) return DISK;
  return /^[XZ]/.test(letter) ? null : SLEEP;
}

/// A lane of `buckets` stretches.
class Lane {
  constructor(row, buckets) {
    Object.assign(this, row);
    this.buckets = buckets;
    this.shares = STATES.map(() => null);
    this.sums = STATES.map(() => 0);
    this.rows = 0;
  }

  /// Adds the time from `from` to `to`, in buckets.
  add(state, from, to, width) {
    if (state === null || !(to > from)) return;
    this.sums[state] += (to - from) * width;
    const shares = this.shares[state] ??= new Float32Array(this.buckets);
    const first = Math.floor(from);
    const last = Math.min(this.buckets - 1, Math.floor(to));
    for (let at = first; at <= last; at++) shares[at] += Math.min(to, at + 1) - Math.max(from, at);
  }
}

/// Adds up rows of `analyze sched timehist --format csv`, or of the listing of calls, between `from` and `to`, ns.
export function lanesSink(kind, from, to, buckets) {
  const decoder = new TextDecoder();
  const lanes = new Map();
  const width = (to - from) / buckets;
  let [rest, names, dropped, rows] = ['', null, 0, 0];
  const place = time => Math.min(buckets, Math.max(0, (time - from) / width));

  const laneOf = row => {
    let lane = lanes.get(row.utid);
    if (!lane) {
      if (lanes.size >= MOST_THREADS) {
        dropped++;
        return null;
      }
      lane = new Lane({ tid: row.tid, pid: row.pid, utid: row.utid, comm: row.comm, before: null }, buckets);
      lanes.set(row.utid, lane);
    }
    lane.rows++;
    return lane;
  };

  /// Each run: off the CPU, of that waiting for one, then on it until `ts_ns`.
  const run = row => {
    const lane = laneOf(row);
    if (!lane) return;
    const [end, ran, waited] = [Number(row.ts_ns), Number(row.run_ns), Number(row.wait_ns)];
    const delay = Math.min(waited, Number(row.delay_ns));
    const begun = end - ran;
    lane.add(RUN, place(begun), place(end), width);
    lane.add(QUEUE, place(begun - delay), place(begun), width);
    // how it left the CPU says how it was away; before the first run that is not known
    if (lane.before !== null) lane.add(awayOf(lane.before), place(begun - waited), place(begun - delay), width);
    lane.before = row.state;
    lane.since = end;
  };

  const call = row => {
    const lane = laneOf(row);
    if (!lane || row.dur_ns === '') return;
    const begun = Number(row.ts_ns);
    lane.add(CALL, place(begun), place(begun + Number(row.dur_ns)), width);
  };

  const line = text => {
    const parts = fields(text);
    if (!names) {
      names = parts;
      return;
    }
    const row = {};
    for (let at = 0; at < names.length; at++) row[names[at]] = parts[at];
    rows++;
    (kind === 'runs' ? run : call)(row);
  };

  return {
    take(bytes) {
      const text = rest + decoder.decode(bytes, { stream: true });
      const lines = text.split('\n');
      rest = lines.pop();
      lines.forEach(line);
      return true;
    },
    result() {
      // until the end a thread is as it left the CPU
      for (const lane of lanes.values()) {
        if (kind !== 'runs' || lane.before === null) continue;
        lane.add(awayOf(lane.before), place(lane.since), buckets, width);
      }
      const busy = lane => lane.sums[RUN] + lane.sums[QUEUE] + lane.sums[DISK] + lane.sums[CALL];
      const all = [...lanes.values()].sort((a, b) => busy(b) - busy(a));
      return { lanes: all.map(lane => ({ ...lane })), dropped, rows, from, to, buckets };
    },
  };
}
