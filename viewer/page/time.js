// The time line: a lane for each of the busiest threads, of each pixel the state that filled most of it. The data are sums by thread and
// stretch that the worker makes of `analyze sched timehist`, or of the calls where no scheduler events were recorded.

const STATES = ['on a CPU', 'waiting for a CPU', 'asleep', 'uninterruptible (D)', 'in a call'];
const COLORS = ['c2', 'c1', 'soft', 'c4', 'c0'];
const BUCKETS = 2048;
const LANES = 64;
const LANE = 16;
const AXIS = 22;

/// The seconds that a link names; null: all of the tape.
function timeOf(text) {
  const [from, to] = text.split(',').map(Number);
  return text && to > from && from >= 0 ? { from: from * 1e9, to: to * 1e9 } : null;
}

const seconds = ns => (ns / 1e9).toFixed(9).replace(/0+$/, '').replace(/\.$/, '');

async function timeView(place, { options, scope, go, leave }) {
  const tools = element('div', 'tools');
  const told = element('output', 'muted');
  const legend = element('span', 'legend');
  tools.append(legend, told);
  const box = element('div', 'lanes');
  const names = element('div', 'lane-names');
  const canvas = element('canvas');
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');
  canvas.setAttribute('aria-label', 'Time line: w and s zoom, a and d move, drag to choose a time, arrow keys choose a thread, Enter asks');
  box.append(names, canvas);
  const details = element('div', 'result');
  place.append(tools, box, element('p', 'hint', 'Drag to choose a time; wheel, or keys w s, to zoom; a d to move; Escape shows all. Click on a lane for what the thread did.'), details);
  try {
    const [info] = rowsOf(await ask(['info', '--format', 'json', tapeWord()], { scope }));
    if (!info) throw new Error('the file is no tape that can be drawn: see Overview');
    const all = { from: 0, to: Number(info.duration_ns) };
    if (!(all.to > 0)) throw new Error('the tape has no length');
    const of = info.families.includes('sched') ? 'runs' : 'calls';
    await drawLanes({ info, all, of, chosen: timeOf(options) ?? { ...all }, scope, go, leave, told, legend, names, canvas, details });
  } catch (error) {
    if (error.message !== CANCELLED) fault(details, error.message);
  }
  details.dataset.done = 'yes';
}

/// The question whose rows lanes are made of.
function laneWords(of, { from, to }, all) {
  const whole = from <= all.from && to >= all.to;
  const time = whole ? [] : ['--time', `${seconds(from)},${seconds(to)}`];
  return of === 'runs' ? ['sched', 'timehist', ...time] : time;
}

async function drawLanes(view) {
  const { info, all, of, scope, told, legend, names, canvas, details, chosen } = view;
  let [data, width, lanes, lane, drag] = [null, 0, [], -1, null];
  const range = { ...chosen };
  const load = async () => {
    // states before the range, and runs that end behind it, belong to it: of a long tape the former are given up
    const short = Number(info.events?.sched ?? 0) < 300000;
    const read = of === 'runs' ? { from: short ? all.from : range.from, to: all.to } : { from: all.from, to: range.to };
    const words = laneWords(of, read, all);
    showCommand([...laneWords(of, range, all), tapeWord()]);
    const answer = await ask([...words, '--format', 'csv', tapeWord()], { scope, sink: { kind: 'lanes', of, from: range.from, to: range.to, buckets: BUCKETS } });
    if (answer.fault || answer.said) {
      details.replaceChildren();
      messages(details, answer);
    }
    data = answer;
    lanes = data.lanes.slice(0, LANES);
    lane = Math.min(lane, lanes.length - 1);
    told.textContent = `${seconds(range.from)}–${seconds(range.to)} s (${span(range.to - range.from)}); ${lanes.length} of ${whole(data.lanes.length + data.dropped)} threads, the busiest first; ${whole(data.rows)} ${of === 'runs' ? 'runs' : 'calls'}`;
    names.replaceChildren(...lanes.map((made, at) => {
      const name = element('div', 'lane-name', `${made.comm} ${made.tid}`);
      name.title = `${made.comm}, process ${made.pid}, thread ${made.tid}`;
      name.addEventListener('click', () => chooseLane(at));
      return name;
    }));
    draw();
  };
  const shown = STATES.map((name, at) => at).filter(at => (of === 'runs' ? at < 4 : at === 4));
  legend.replaceChildren(...shown.map(at => {
    const key = element('span', 'key');
    const dot = element('i', `state-${at}`);
    key.append(dot, STATES[at]);
    return key;
  }));

  const draw = () => {
    if (!width || !data) return;
    const height = AXIS + Math.max(1, lanes.length) * LANE;
    const context = prepare(canvas, width, height);
    const ratio = devicePixelRatio || 1;
    const colors = COLORS.map(name => rgb(color(name)));
    const pixels = Math.max(1, Math.round(width * ratio));
    const row = context.createImageData(pixels, 1);
    const small = document.createElement('canvas');
    [small.width, small.height] = [pixels, 1];
    const pen = small.getContext('2d');
    context.imageSmoothingEnabled = false;
    lanes.forEach((made, at) => {
      for (let pixel = 0; pixel < pixels; pixel++) {
        const state = dominant(made, pixel / pixels * BUCKETS, (pixel + 1) / pixels * BUCKETS);
        const place = pixel * 4;
        if (state < 0) {
          row.data[place + 3] = 0;
          continue;
        }
        [row.data[place], row.data[place + 1], row.data[place + 2]] = colors[state];
        row.data[place + 3] = 255;
      }
      pen.putImageData(row, 0, 0);
      context.drawImage(small, 0, AXIS + at * LANE + 1, width, LANE - 2);
      if (at === lane) {
        context.strokeStyle = color('fg');
        context.strokeRect(0.5, AXIS + at * LANE + 0.5, width - 1, LANE - 1);
      }
    });
    axis(context, width, height);
    if (drag && Math.abs(drag.to - drag.from) > 2) {
      context.fillStyle = `rgba(${color('heat')}, .25)`;
      context.fillRect(Math.min(drag.from, drag.to), 0, Math.abs(drag.to - drag.from), height);
    }
  };

  const axis = (context, wide, high) => {
    const length = range.to - range.from;
    const raw = length / Math.max(2, Math.floor(wide / 110));
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map(times => times * power).find(times => times >= raw);
    context.fillStyle = color('muted');
    context.strokeStyle = color('line');
    context.font = '11px system-ui, sans-serif';
    for (let time = Math.ceil(range.from / step) * step; time <= range.to; time += step) {
      const x = (time - range.from) / length * wide;
      context.beginPath();
      context.moveTo(x, AXIS - 6);
      context.lineTo(x, high);
      context.stroke();
      context.fillText(`${+(time / 1e9).toFixed(9)} s`, Math.min(x + 3, wide - 60), 12);
    }
  };

  const timeAt = x => range.from + x / Math.max(1, width) * (range.to - range.from);
  let timer = null;
  const setRange = (from, to) => {
    const length = Math.min(all.to - all.from, Math.max(1000, to - from));
    range.from = Math.round(Math.min(Math.max(all.from, from), all.to - length));
    range.to = Math.round(range.from + length);
    // what is there already is drawn at once, and anew when it is known in detail
    stretch();
    clearTimeout(timer);
    timer = setTimeout(() => {
      const whole = range.from <= all.from && range.to >= all.to;
      view.go(whole ? '' : `${seconds(range.from)},${seconds(range.to)}`, false, true);
      load().catch(error => error.message === CANCELLED || fault(details, error.message));
    }, 200);
  };

  /// The lanes of the data that are there, as lanes of the range.
  const stretch = () => {
    if (!data) return;
    const from = (range.from - data.from) / (data.to - data.from) * BUCKETS;
    const to = (range.to - data.from) / (data.to - data.from) * BUCKETS;
    lanes = data.lanes.slice(0, LANES).map(made => ({ ...made, view: [from, to] }));
    draw();
  };

  const zoom = (factor, x) => {
    const at = timeAt(x);
    setRange(at - (at - range.from) * factor, at + (range.to - at) * factor);
  };
  const move = part => {
    const by = (range.to - range.from) * part;
    setRange(range.from + by, range.to + by);
  };

  const chooseLane = at => {
    lane = at;
    draw();
    const made = lanes[at];
    if (!made) return;
    details.replaceChildren(element('h2', '', `${made.comm} ${made.tid}, ${seconds(range.from)}–${seconds(range.to)} s`));
    const sums = element('p', 'muted', shown.filter(state => made.sums[state] > 0).map(state => `${STATES[state]}: ${span(made.sums[state])}`).join('; '));
    details.append(sums);
    const whole = range.from <= all.from && range.to >= all.to;
    const time = whole ? '' : `--time ${seconds(range.from)},${seconds(range.to)}`;
    const below = element('div');
    details.append(below);
    const command = of === 'runs' ? 'states' : '-s';
    answered(below, { command, options: `-t ${made.tid} ${time}`.trim(), scope, change: typed => view.leave('console', `${command} ${typed}`) });
    const link = element('a', '', 'Its calls in this time');
    link.href = linkOf('calls', `-t ${made.tid} ${time}`.trim());
    details.append(link);
  };

  canvas.addEventListener('wheel', event => {
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(Math.sign(event.deltaX || event.deltaY) * 0.1);
    else zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX);
  }, { passive: false });
  canvas.addEventListener('keydown', event => {
    const act = {
      w: () => zoom(0.7, width / 2), s: () => zoom(1 / 0.7, width / 2), a: () => move(-0.2), d: () => move(0.2),
      Escape: () => setRange(all.from, all.to),
      ArrowDown: () => { lane = Math.min(lanes.length - 1, lane + 1); draw(); },
      ArrowUp: () => { lane = Math.max(0, lane - 1); draw(); },
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
      Enter: () => chooseLane(Math.max(0, lane)),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    drag = { from: event.offsetX, to: event.offsetX, y: event.offsetY };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', event => {
    if (drag) {
      drag.to = event.offsetX;
      draw();
      return;
    }
    const made = lanes[Math.floor((event.offsetY - AXIS) / LANE)];
    if (!made || !data || event.offsetY < AXIS) return tip();
    const x = event.offsetX;
    const state = dominant(made, x / width * BUCKETS, (x + 1) / width * BUCKETS);
    tip([`${seconds(Math.round(timeAt(x)))} s`, `${made.comm} ${made.tid}: ${state < 0 ? 'not known' : STATES[state]}`], event);
  });
  canvas.addEventListener('pointerup', event => {
    if (!drag) return;
    const { from, to, y } = drag;
    drag = null;
    if (Math.abs(to - from) > 4) setRange(timeAt(Math.min(from, to)), timeAt(Math.max(from, to)));
    else if (y > AXIS) chooseLane(Math.floor((event.offsetY - AXIS) / LANE));
    draw();
  });
  canvas.addEventListener('pointercancel', () => drag = null);
  canvas.addEventListener('pointerleave', () => tip());
  canvas.addEventListener('dblclick', () => setRange(all.from, all.to));
  sized(canvas.parentElement, () => {
    const now = Math.max(60, canvas.parentElement.clientWidth - names.offsetWidth);
    if (now === width) return;
    width = now;
    draw();
  });
  redrawn(draw);
  await load();
}

/// The state that filled most of the buckets from `from` to `to`; -1: nothing is known of them. Buckets that are in part between count in part.
function dominant(made, from, to) {
  const [start, length] = made.view ? [made.view[0], made.view[1] - made.view[0]] : [0, BUCKETS];
  const first = start + from / BUCKETS * length;
  const end = start + to / BUCKETS * length;
  let [best, most] = [-1, 1e-9];
  for (let state = 0; state < STATES.length; state++) {
    const shares = made.shares[state];
    if (!shares) continue;
    let sum = 0;
    for (let at = Math.max(0, Math.floor(first)); at < Math.min(BUCKETS, Math.ceil(end)); at++) {
      sum += shares[at] * Math.max(0, Math.min(end, at + 1) - Math.max(first, at));
    }
    if (sum > most) [best, most] = [state, sum];
  }
  return best;
}

/// Red, green and blue of a colour of the style, `#rrggbb`.
function rgb(text) {
  return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
}
