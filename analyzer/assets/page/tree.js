// The tree of processes with their lives, and the critical path.

function drawTree() {
  const tree = data.processes;
  const place = byId('tree-view');
  if (tree.none) {
    place.append(element('p', 'note', tree.none));
    return;
  }
  const panel = element('div', 'panel');
  place.append(panel);
  const rows = tree.pid.map((_, at) => at);
  const end = at => tree.to[at] ?? data.to;
  const ending = at => {
    if (tree.signal[at] !== null) return `signal ${tree.signal[at]}`;
    if (tree.code[at] !== null) return `exit ${tree.code[at]}`;
    return tree.to[at] === null ? 'running' : 'ended';
  };
  const life = at => {
    const cell = element('td', 'life');
    const kind = tree.signal[at] !== null ? 'killed' : tree.code[at] ? 'failed' : '';
    const bar = element('div', kind);
    const part = time => Math.min(1, Math.max(0, (time - range.from) / (range.to - range.from)));
    const [from, to] = [part(tree.from[at] ?? data.from), part(end(at))];
    bar.style.marginLeft = `${from * 100}%`;
    bar.style.width = `${(to - from) * 100}%`;
    cell.append(bar);
    cell.title = `${tree.from[at] === null ? 'start not known' : clock(tree.from[at])} – ${tree.to[at] === null ? 'end of the tape' : clock(tree.to[at])}`;
    return cell;
  };
  const name = at => {
    const cell = element('td', 's');
    cell.style.paddingLeft = `${0.6 + Math.min(tree.depth[at], 24) * 0.9}rem`;
    cell.append(element('span', '', tree.texts[tree.comm[at]] || '?'));
    return cell;
  };
  const show = rowTable(panel, [
    { title: 'Process', value: at => tree.texts[tree.comm[at]], cell: name },
    { title: 'Pid', number: true, value: at => tree.pid[at] },
    { title: 'Life', value: at => tree.from[at] ?? data.from, text: () => '', cell: life },
    { title: 'Lasted', number: true, value: at => tree.ns[at],
      text: at => tree.ns[at] === null ? '–' : `${tree.least[at] ? '>=' : ''}${span(tree.ns[at])}` },
    { title: 'End', value: ending },
    { title: 'Command line', value: at => tree.texts[tree.line[at]] },
  ], () => rows.filter(at => isChosen(tree.from[at] ?? data.from, end(at))), 200);
  if (tree.more) panel.append(element('p', 'muted', `${whole(tree.more)} more processes are left out.`));
  notes(panel, tree.told, tree.command);
  following(show);
}

function drawPath() {
  const path = data.path;
  if (!path) return;
  const panel = element('div', 'panel');
  byId('path-view').append(panel);
  const mark = path.causes.some(cause => cause.short) ? '~' : '';
  const hue = at => `c${Math.min(8, at)}`;
  const legend = element('div', 'tools');
  path.causes.forEach((cause, at) => key(legend, hue(at), `${cause.name} ${mark}${span(cause.all)}`));
  const strip = element('canvas', 'strip');
  const box = element('div', 'heat');
  box.append(strip);
  panel.append(legend, box);
  const HIGH = 44;
  let width = 0;
  const x = time => (time - range.from) / (range.to - range.from) * width;
  const draw = () => {
    if (!width) return;
    const context = prepare(strip, width, HIGH);
    const below = new Float64Array(data.slices);
    path.causes.forEach((cause, number) => {
      context.fillStyle = color(hue(number));
      cause.at.forEach((slice, at) => {
        const from = data.from + slice * data.width;
        const [left, right] = [x(from), x(from + data.width)];
        const height = cause.ns[at] / data.width * HIGH;
        if (right >= 0 && left <= width) context.fillRect(left, HIGH - below[slice] - height, Math.max(0.6, right - left), height);
        below[slice] += height;
      });
    });
  };
  sized(box, now => {
    width = now;
    draw();
  });
  redraws.push(draw);
  brushable(box, at => range.from + at / Math.max(1, width) * (range.to - range.from));
  const rows = path.at.map((_, at) => at);
  const show = rowTable(panel, [
    { title: 'At', number: true, value: at => path.at[at], text: at => clock(path.at[at]) },
    { title: 'Time', number: true, value: at => path.ns[at], text: at => `${path.short[at] ? '~' : ''}${span(path.ns[at])}` },
    { title: 'Thread', value: at => path.texts[path.who[at]] },
    { title: 'Went to', value: at => path.texts[path.cause[at]] },
    { title: 'In', value: at => path.texts[path.what[at]] },
  ], () => rows.filter(at => isChosen(path.at[at], path.at[at] + path.ns[at])), 12);
  if (path.more) panel.append(element('p', 'muted', `${whole(path.more)} shorter parts are not in the table.`));
  notes(panel, path.told, path.command);
  following(() => {
    draw();
    show();
  });
}
