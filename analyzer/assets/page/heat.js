// Heat maps: time to the right, a latency by powers of two upwards; and time on CPUs by the place within a second.

/// Round numbers between two, about so many.
function ticks(from, to, count) {
  const raw = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find(part => part * power >= raw) * power;
  const all = [];
  for (let at = Math.ceil(from / step); at * step <= to; at++) all.push(at * step);
  return all;
}

/// A length of time for an axis.
function shortSpan(ns) {
  const [value, unit] = ns < 1e3 ? [ns, 'ns'] : ns < 1e6 ? [ns / 1e3, 'µs'] : ns < 1e9 ? [ns / 1e6, 'ms'] : [ns / 1e9, 's'];
  return `${+value.toPrecision(2)} ${unit}`;
}

/// Draws cells ({left, right: time in ns, bottom, top: rows, n}) of a map with `rows` rows. `label` is of a row's lower edge, `say` of a cell.
function heatMap(title, note, cells, { rows, first, height, hue, labels, say }) {
  const { plot: place } = figure(title, note);
  const box = element('div', 'heat');
  const canvas = element('canvas');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', title);
  box.append(canvas);
  place.append(box);
  let width = 0;
  const inner = () => Math.max(1, width - LEFT - RIGHT);
  const timeAt = x => range.from + (x - LEFT) / inner() * (range.to - range.from);
  const x = time => LEFT + (time - range.from) / (range.to - range.from) * inner();
  const y = row => height - (row - first) / rows * height;
  const draw = () => {
    if (!width) return;
    const context = prepare(canvas, width, height + 24);
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = color('muted');
    context.strokeStyle = color('grid');
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    labels.forEach(([row, text]) => {
      context.fillText(text, LEFT - 8, Math.min(height - 6, Math.max(6, y(row))));
      context.beginPath();
      context.moveTo(LEFT, y(row));
      context.lineTo(width - RIGHT, y(row));
      context.stroke();
    });
    const seen = cells.filter(cell => cell.right > range.from && cell.left < range.to);
    const most = seen.reduce((most, cell) => Math.max(most, cell.n), 1);
    const base = color(hue);
    seen.forEach(cell => {
      const part = most > 1 ? Math.log(1 + cell.n) / Math.log(1 + most) : 1;
      context.fillStyle = `rgba(${base}, ${0.16 + 0.84 * part})`;
      const left = Math.max(LEFT, x(cell.left));
      const right = Math.min(width - RIGHT, x(cell.right));
      context.fillRect(left, y(cell.top), Math.max(1.2, right - left), y(cell.bottom) - y(cell.top));
    });
    context.fillStyle = color('muted');
    ticks(range.from / 1e9, range.to / 1e9, Math.max(2, Math.floor(inner() / 90))).forEach(time => {
      const at = x(time * 1e9);
      context.textAlign = at > width - RIGHT - 20 ? 'right' : at < LEFT + 10 ? 'left' : 'center';
      context.fillText(`${+time.toFixed(6)} s`, at, height + 13);
    });
  };
  sized(place, now => {
    width = now;
    draw();
  });
  redraws.push(draw);
  following(draw);
  brushable(box, timeAt);
  box.addEventListener('pointermove', event => {
    const edge = box.getBoundingClientRect();
    const [time, row] = [timeAt(event.clientX - edge.left), first + (height - (event.clientY - edge.top)) / height * rows];
    const under = cells.find(cell => time >= cell.left && time < cell.right && row >= cell.bottom && row < cell.top);
    tip(under ? say(under) : undefined, event);
  });
  box.addEventListener('pointerleave', () => tip());
}

function latencyMap(title, note, heat, hue, what) {
  if (!heat.at.length) return;
  const least = Math.min(...heat.power);
  const most = heat.power.reduce((most, power) => Math.max(most, power), 0) + 1;
  const cells = heat.at.map((slice, at) => ({
    left: data.from + slice * data.width,
    right: data.from + (slice + 1) * data.width,
    bottom: heat.power[at],
    top: heat.power[at] + 1,
    n: heat.n[at],
  }));
  const labels = [];
  for (let power = least; power <= most; power++) if (power % 5 === 0) labels.push([power, shortSpan(2 ** power)]);
  const say = cell => [clock(cell.left), `${span(2 ** cell.bottom)} to ${span(2 ** cell.top)}: ${whole(cell.n)} ${what}`];
  heatMap(title, note, cells, { rows: most - least, first: least, height: Math.max(110, (most - least) * 8), hue, labels, say });
}

function drawHeats() {
  if (data.calls) {
    latencyMap('Duration of calls', data.calls.heat_exact ? '' : 'at least', data.calls.heat, 'heat', 'calls');
  }
  if (data.disks) {
    const untimed = data.disks.untimed ? `${whole(data.disks.untimed)} I/Os of unknown latency are not shown` : '';
    const note = [data.disks.exact ? '' : 'at least', untimed].filter(Boolean).join('; ');
    latencyMap('Latency of block I/O', note, data.disks.heat, 'heat2', 'I/Os');
  }
  const seconds = data.threads && data.threads.seconds;
  if (!seconds) return;
  const cells = [];
  const each = seconds.each * 1e9;
  seconds.ns.forEach((ns, at) => {
    if (ns === 0) return;
    const [column, part] = [Math.floor(at / seconds.parts), at % seconds.parts];
    const left = data.from + column * each;
    cells.push({ left, right: Math.min(data.to, left + each), bottom: part, top: part + 1, n: ns });
  });
  const part = 1000 / seconds.parts;
  heatMap('CPU time within each second', 'upwards: from the beginning to the end of the second', cells, {
    rows: seconds.parts, first: 0, height: 150, hue: 'heat',
    labels: [[0, '0 ms'], [seconds.parts / 2, '500 ms'], [seconds.parts, '1 s']],
    say: cell => [clock(cell.left), `${cell.bottom * part} to ${cell.top * part} ms of the second: ${span(cell.n)} on CPUs`],
  });
}
