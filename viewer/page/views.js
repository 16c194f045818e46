// What there is to see. A view of reports has commands to choose from; the others draw.

const REPORTS = {
  processes: {
    title: 'Processes',
    commands: ['exec --tree', 'exec', '-s', '-s --by comm,syscall', 'states', 'sched latency', 'runqlat', 'env'],
  },
  waits: {
    title: 'Waits',
    commands: ['path --sums', 'path', 'offcpu', 'offcpu --wakers 20', 'locks', 'states --by state,syscall', 'why --when', 'probes'],
  },
  files: {
    title: 'Files',
    commands: ['files', 'files --by comm,file', 'files --opens', 'files --slower 1ms', 'filetop', 'statsnoop'],
  },
  network: {
    title: 'Network',
    commands: ['net', 'net --by comm,peer', 'net --udp', 'net --events', 'gethostlatency'],
  },
  disks: {
    title: 'Disks',
    commands: ['block --top', 'block --hist', 'block', 'block --sizes', 'block --top --by comm,op'],
  },
  kills: {
    title: 'Kills',
    commands: ['kills', 'kills -v', 'kills --all'],
  },
};

/// Views in the order of the bar.
const ORDER = ['overview', 'time', 'calls', 'processes', 'waits', 'files', 'network', 'disks', 'kills', 'flame', 'top', 'console'];
const TITLES = {
  overview: 'Overview', time: 'Time line', calls: 'Calls', flame: 'Flame graph', top: 'Top', console: 'Console',
  ...Object.fromEntries(Object.entries(REPORTS).map(([name, { title }]) => [name, title])),
};

/// Keys and metrics of `analyze top` that are offered.
const KEYS = ['comm', 'syscall', 'pid', 'tid', 'file', 'dir', 'ext', 'errno', 'peer', 'port', 'cpu', 'second', 'uid', 'cgroup', 'container', 'unit', 'ret'];
const METRICS = ['total', 'calls', 'errors', 'avg', 'max', 'p50', 'p99'];

/// The part of a link that restores a view: its name, and what was chosen.
function linkOf(view, options) {
  return `#${view}${options ? `/${encodeURIComponent(options)}` : ''}`;
}

/// The view and options that a link names; a link that names none is the overview.
function linked(hash) {
  const [view, ...rest] = hash.replace(/^#/, '').split('/');
  let options = '';
  try {
    options = decodeURIComponent(rest.join('/'));
  } catch {
    // a link that was cut off
  }
  return ORDER.includes(view) ? { view, options } : { view: 'overview', options: '' };
}
