// Stacked areas over time, drawn by uPlot: what threads did, calls a second.

/// Pixels left and right of what charts draw, the same for all, so that times stand below each other.
const LEFT = 64;
const RIGHT = 14;
const HEIGHT = 190;

/// The middle of each slice, s.
const middles = Array.from({ length: data.slices }, (_, at) => (data.from + (at + 0.5) * data.width) / 1e9);

function figure(title, note) {
  const made = element('figure', 'chart');
  const caption = element('figcaption');
  caption.append(element('strong', '', title));
  if (note) caption.append(element('span', 'muted', note));
  const plot = element('div', 'plot');
  made.append(caption, plot);
  byId('charts').append(made);
  return { caption, plot };
}

function key(caption, name, text) {
  const made = element('span', 'key');
  const box = element('i');
  themed(() => box.style.background = color(name));
  made.append(box, text);
  caption.append(made);
}

/// Where events are missing, and who was killed, over a chart.
function drawMarks(plot) {
  const { ctx, bbox } = plot;
  const place = ns => plot.valToPos(ns / 1e9, 'x', true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.globalAlpha = 0.22;
  ctx.fillStyle = color('c3');
  data.marks.losses.forEach(loss => {
    const left = place(loss.from);
    ctx.fillRect(left, bbox.top, Math.max(2, place(loss.to) - left), bbox.height);
  });
  const wide = 4 * (devicePixelRatio || 1);
  data.marks.kills.forEach(kill => {
    const at = place(kill.at);
    ctx.globalAlpha = 0.28;
    ctx.fillRect(at - wide / 8, bbox.top, wide / 4, bbox.height);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.moveTo(at - wide, bbox.top);
    ctx.lineTo(at + wide, bbox.top);
    ctx.lineTo(at, bbox.top + 1.6 * wide);
    ctx.fill();
  });
  ctx.restore();
}

/// Marks near a time, for the note beside the pointer.
function marksNear(time, near) {
  const kills = data.marks.kills.filter(kill => Math.abs(kill.at - time) <= near).map(kill => kill.text);
  const losses = data.marks.losses.filter(loss => time >= loss.from - near && time <= loss.to + near).map(loss => loss.text);
  return [...kills, ...losses].slice(0, 5);
}

/// A chart of `layers` ({name, color, values by slice}), one above the other; `unit` is put behind values.
function stacked(title, note, layers, unit) {
  const { caption, plot: place } = figure(title, note);
  layers.forEach(layer => key(caption, layer.color, layer.name));
  const sums = [];
  layers.forEach((layer, at) => {
    sums.push(layer.values.map((value, slice) => value + (at > 0 ? sums[at - 1][slice] : 0)));
  });
  // the highest first, so that lower ones are drawn over it
  const order = layers.map((_, at) => layers.length - 1 - at);
  let plot = null;
  const make = width => {
    if (plot) {
      plot.setSize({ width, height: HEIGHT });
      return;
    }
    const axis = size => ({
      stroke: () => color('muted'),
      grid: { stroke: () => color('grid'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui, sans-serif',
      ...size,
    });
    plot = new uPlot({
      width,
      height: HEIGHT,
      padding: [8, RIGHT, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        sync: { key: 'time' },
        bind: { dblclick: () => () => chooseAll() },
      },
      scales: {
        x: { time: false, range: () => [range.from / 1e9, range.to / 1e9] },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
      },
      axes: [
        axis({ size: 28, values: (_, values) => values.map(value => `${+value.toFixed(6)} s`) }),
        axis({ size: LEFT, values: (_, values) => values.map(short) }),
      ],
      series: [{}, ...order.map(at => ({
        stroke: () => color(layers[at].color),
        fill: () => color(layers[at].color),
        width: 0.5,
        points: { show: false },
        paths: uPlot.paths.stepped({ align: 0 }),
      }))],
      hooks: {
        draw: [drawMarks],
        setSelect: [made => {
          if (made.select.width < 4) return;
          const from = made.posToVal(made.select.left, 'x') * 1e9;
          const to = made.posToVal(made.select.left + made.select.width, 'x') * 1e9;
          made.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          choose(from, to);
        }],
      },
    }, [middles, ...order.map(at => sums[at])], place);
    plot.over.addEventListener('mousemove', event => {
      const slice = plot.cursor.idx;
      if (slice === null || slice === undefined) return tip();
      const near = (range.to - range.from) / Math.max(1, plot.over.clientWidth) * 3;
      const values = layers.map(layer => `${layer.name}: ${short(layer.values[slice])}${unit}`);
      tip([clock(data.from + slice * data.width), ...values.filter((_, at) => layers[at].values[slice] > 0),
        ...marksNear(plot.posToVal(plot.cursor.left, 'x') * 1e9, near)], event);
    });
    plot.over.addEventListener('mouseleave', () => tip());
    redraws.push(() => plot.redraw());
    following(() => plot.setData(plot.data, true));
  };
  sized(place, make);
}

function drawThreads() {
  const threads = data.threads;
  if (!threads) return;
  const on = values => values.map(ns => ns / data.width);
  const all = [
    { name: 'on a CPU', color: 'c2', values: on(threads.run) },
    { name: 'waiting for a CPU', color: 'c1', values: on(threads.wait) },
    { name: 'throttled by a CPU quota', color: 'c3', values: on(threads.throttled) },
    { name: 'in uninterruptible sleep (D)', color: 'c4', values: on(threads.disk) },
    { name: 'state not known', color: 'c8', values: on(threads.unknown) },
  ];
  const layers = all.filter((layer, at) => at < 2 || layer.values.some(value => value > 0));
  stacked('Threads', `${data.cpus} CPUs${threads.exact ? '' : '; at least'}`, layers, '');
}

function dense(name) {
  const values = new Array(data.slices).fill(0);
  name.at.forEach((slice, at) => values[slice] = name.n[at]);
  return values;
}

function drawCalls() {
  if (!data.calls) return;
  const SHOWN = 8;
  const perSecond = values => values.map(calls => calls * 1e9 / data.width);
  const layers = data.calls.names.slice(0, SHOWN).map((name, at) => ({
    name: name.name, color: `c${at}`, values: perSecond(dense(name)),
  }));
  const rest = data.calls.names.slice(SHOWN);
  if (rest.length) {
    const sum = new Array(data.slices).fill(0);
    rest.forEach(name => name.at.forEach((slice, at) => sum[slice] += name.n[at]));
    layers.push({ name: 'others', color: 'c8', values: perSecond(sum) });
  }
  const untimed = data.calls.names.reduce((sum, name) => sum + name.untimed.n, 0);
  const note = [data.calls.exact ? '' : 'at least', untimed ? `${whole(untimed)} calls of unknown start are not shown` : ''];
  stacked('Calls a second', note.filter(Boolean).join('; '), layers, '/s');
}

/// Calls by name in the chosen time: sums of slices.
function callSums() {
  if (!data.calls) return;
  const place = element('div', 'panel');
  place.append(element('h3', '', 'Calls by name, in the chosen time'));
  byId('charts').append(place);
  let rows = [];
  const sum = () => {
    const [first, end] = chosenSlices();
    rows = data.calls.names.map(name => {
      const row = { name: name.name, calls: 0, errors: 0, ns: 0, max: 0, open: 0, openMax: 0, short: false };
      const add = (calls, errors, ns, max, open, openMax) => {
        row.calls += calls;
        row.errors += errors;
        row.ns += ns;
        row.open += open;
        if (max > row.max) [row.max, row.openMax] = [max, openMax];
      };
      name.at.forEach((slice, at) => {
        if (slice < first || slice >= end) return;
        add(name.n[at], name.err[at], name.ns[at], name.max[at], name.open[at], name.open_max[at]);
      });
      const { n, err, ns, max, open, open_max: openMax } = name.untimed;
      // of a part nobody knows whether these began in it
      if (range.chosen) row.short = n > 0;
      else add(n, err, ns, max, open, openMax);
      return row;
    }).filter(row => row.calls > 0).sort((a, b) => b.calls - a.calls);
  };
  const mark = (row, open) => data.calls.exact && !row.short && !open ? '' : '>=';
  const show = rowTable(place, [
    { title: 'Call', value: row => row.name },
    { title: 'Calls', number: true, value: row => row.calls, text: row => mark(row) + whole(row.calls) },
    { title: 'Errors', number: true, value: row => row.errors, text: row => mark(row) + whole(row.errors) },
    { title: 'Time', number: true, value: row => row.ns, text: row => mark(row, row.open) + span(row.ns) },
    { title: 'Longest', number: true, value: row => row.max, text: row => mark(row, row.openMax) + span(row.max) },
  ], () => rows, 15);
  const foot = element('p', 'foot');
  const command = element('code');
  foot.append(command);
  place.append(foot);
  following(() => {
    sum();
    show();
    command.textContent = `analyze top --by syscall --metric calls${timeOption()}`;
  });
}
