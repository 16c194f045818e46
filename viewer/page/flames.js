// The flame graph: what `analyze callgraph` adds up, drawn.

const OF = ['', 'cpu', 'syscall', 'offcpu', 'block', 'signal', 'wakeup'];

/// What a link chose.
function flameOf(text) {
  const chosen = { of: '', metric: '', callee: false, heavy: false, rest: [] };
  let words = [];
  try {
    words = wordsOf(text);
  } catch {
    chosen.rest.push(text);
  }
  for (let at = 0; at < words.length; at++) {
    if (words[at] === '--of' && words[at + 1]) chosen.of = words[++at];
    else if (words[at] === '--metric' && words[at + 1]) chosen.metric = words[++at];
    else if (words[at] === '--callee') chosen.callee = true;
    else if (words[at] === '#heavy') chosen.heavy = true;
    else chosen.rest.push(quoted(words[at]));
  }
  return { ...chosen, rest: chosen.rest.join(' ') };
}

function flameText({ of, metric, callee, heavy, rest }) {
  return [of && `--of ${of}`, metric && `--metric ${metric}`, callee && '--callee', heavy && "'#heavy'", rest].filter(Boolean).join(' ');
}

function flameView(place, { options: text, scope, go }) {
  const chosen = flameOf(text);
  const now = change => go(flameText({ ...chosen, ...change }));
  const menu = element('div', 'tools menus');
  menu.append(chooser('stacks of', OF, chosen.of, of => now({ of })));
  menu.append(chooser('by', ['', 'count', 'time', 'bytes'], chosen.metric, metric => now({ metric })));
  const check = (name, key) => {
    const label = element('label', 'choice');
    const box = element('input');
    box.type = 'checkbox';
    box.checked = chosen[key];
    box.addEventListener('change', () => now({ [key]: box.checked }));
    label.append(box, element('span', '', name));
    menu.append(label);
  };
  check('inverted', 'callee');
  check('heaviest first', 'heavy');
  place.append(menu);
  const drawn = element('div', 'result');
  place.append(drawn);
  const command = `callgraph ${flameText({ ...chosen, heavy: false, rest: '' })}`.trim();
  drawFlame(drawn, command, chosen, scope);
  const told = element('div');
  place.append(told);
  answered(told, { command, options: chosen.rest, scope, change: rest => now({ rest }) });
}

async function drawFlame(place, command, chosen, scope) {
  try {
    const words = wordsFor(command, chosen.rest);
    const answer = await ask([...words.slice(0, -1), '--format', 'json', words.at(-1)], { scope });
    // what cannot be answered says so below
    if (answer.status !== 0 || answer.fault) return;
    const rows = rowsOf(answer);
    if (rows.length) flameGraph(place, rows, chosen);
  } catch (error) {
    if (error.message !== CANCELLED) fault(place, error.message);
  }
  place.dataset.done = 'yes';
}

/// The rows as the graph that the page of `analyze report` draws too.
function graphOf(rows) {
  const metric = rows[0].metric;
  const labels = [];
  const numbers = new Map();
  const graph = { parent: [], label: [], kind: [], ns: [], short: false, labels, metric, of: rows[0].of };
  const byId = new Map();
  rows.forEach((row, at) => {
    byId.set(row.id, at);
    const name = `${argumentText(row.sym ?? '?')}${row.kernel ? ' [k]' : ''}`;
    if (!numbers.has(name)) {
      numbers.set(name, labels.length);
      labels.push(name);
    }
    graph.parent.push(row.parent === null ? -1 : byId.get(row.parent));
    graph.label.push(numbers.get(name));
    graph.kind.push(!row.named ? 4 : row.kernel ? 3 : row.inlined ? 2 : 0);
    const value = { count: row.count, time: row.time_ns, bytes: row.bytes }[metric] ?? row.count;
    graph.ns.push(Number(value ?? 0));
    graph.short ||= Boolean(row.time_ns_at_least || row.count_at_least);
  });
  return graph;
}

function flameGraph(place, rows, chosen) {
  const graph = graphOf(rows);
  const amount = value => (graph.metric === 'time' ? span(value) : whole(value));
  const tree = layOut(graph, graph.ns, chosen.heavy);
  const height = (tree.deepest + 1) * FRAME;
  const panel = element('div', 'panel');
  const tools = element('div', 'tools');
  const found = element('span', 'muted');
  const picked = element('output', 'muted');
  const box = element('div', 'flame');
  const canvas = element('canvas');
  canvas.tabIndex = 0;
  canvas.setAttribute('role', 'application');
  canvas.setAttribute('aria-label', 'Flame graph: arrow keys go to callers, called and beside, Enter zooms, Escape shows all');
  let [width, words, focus, at] = [0, '', -1, -1];
  const back = button('Whole graph', () => zoom(-1));
  back.hidden = true;
  const matches = frame => words && tree.name(frame).toLowerCase().includes(words);
  const view = () => (focus < 0 || !graph.ns[focus] ? [0, tree.total || 1] : [tree.left[focus], graph.ns[focus]]);
  const rect = frame => {
    const [start, length] = view();
    const left = (tree.left[frame] - start) / length * width;
    return [Math.max(0, left), Math.min(width, left + graph.ns[frame] / length * width)];
  };
  // inverted graphs hang, others stand
  const topOf = frame => (chosen.callee ? tree.depth[frame] * FRAME : height - (tree.depth[frame] + 1) * FRAME);
  const draw = () => {
    if (!width) return;
    const context = prepare(canvas, width, height);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (let frame = 0; frame < graph.parent.length; frame++) {
      const [left, right] = rect(frame);
      if (right - left < 0.4) continue;
      const top = topOf(frame);
      context.fillStyle = matches(frame) ? color('c4') : flameColor(graph, frame, graph.of === 'offcpu');
      context.fillRect(left, top, Math.max(0.4, right - left - 0.6), FRAME - 1);
      if (frame === at) {
        context.strokeStyle = color('fg');
        context.lineWidth = 2;
        context.strokeRect(left + 1, top + 1, Math.max(1, right - left - 2.6), FRAME - 3);
      }
      if (right - left < 28) continue;
      context.save();
      context.beginPath();
      context.rect(left, top, right - left - 3, FRAME);
      context.clip();
      context.fillStyle = '#16181c';
      context.fillText(tree.name(frame), left + 4, top + FRAME / 2);
      context.restore();
    }
  };
  const share = value => `${(value / (tree.total || 1) * 100).toFixed(2)} %`;
  const describe = frame => `${tree.name(frame)}: ${graph.short ? '>=' : ''}${amount(graph.ns[frame])}, ${share(graph.ns[frame])}`;
  const pick = frame => {
    at = frame;
    picked.textContent = frame < 0 ? '' : describe(frame);
    draw();
  };
  const zoom = frame => {
    focus = frame;
    back.hidden = frame < 0;
    pick(frame);
  };
  const under = event => {
    const edge = canvas.getBoundingClientRect();
    const y = event.clientY - edge.top;
    const level = chosen.callee ? Math.floor(y / FRAME) : Math.floor((height - y) / FRAME);
    const x = event.clientX - edge.left;
    for (let frame = 0; frame < graph.parent.length; frame++) {
      if (tree.depth[frame] !== level) continue;
      const [left, right] = rect(frame);
      if (x >= left && x < right) return frame;
    }
    return -1;
  };
  const beside = (frame, step) => {
    const list = [...(graph.parent[frame] < 0 ? tree.roots : tree.children[graph.parent[frame]])].sort((a, b) => tree.left[a] - tree.left[b]);
    return list[list.indexOf(frame) + step] ?? frame;
  };
  const heaviest = list => [...list].sort((a, b) => graph.ns[b] - graph.ns[a])[0];
  canvas.addEventListener('keydown', event => {
    const deeper = chosen.callee ? 'ArrowDown' : 'ArrowUp';
    const shallower = chosen.callee ? 'ArrowUp' : 'ArrowDown';
    const from = at < 0 ? heaviest(tree.roots) : at;
    const to = {
      [deeper]: () => (at < 0 ? from : heaviest(tree.children[from]) ?? from),
      [shallower]: () => (graph.parent[from] < 0 ? from : graph.parent[from]),
      ArrowLeft: () => beside(from, -1),
      ArrowRight: () => beside(from, 1),
    }[event.key];
    if (to) pick(to());
    else if (event.key === 'Enter' && at >= 0) zoom(at);
    else if (event.key === 'Escape') zoom(-1);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener('pointermove', event => {
    const frame = under(event);
    tip(frame < 0 ? undefined : [describe(frame)], event);
  });
  canvas.addEventListener('pointerleave', () => tip());
  canvas.addEventListener('click', event => zoom(under(event)));
  const sum = list => list.reduce((all, frame) => all + (matches(frame) ? graph.ns[frame] : sum(tree.children[frame])), 0);
  const search = filterBox(text => {
    words = text;
    found.textContent = words ? `${share(sum(tree.roots))} match` : '';
    draw();
  });
  search.placeholder = 'Search functions';
  search.setAttribute('aria-label', 'Search functions');
  tools.append(element('strong', '', `${graph.of}: ${graph.short ? '>=' : ''}${amount(tree.total)}`), search, found, back, picked);
  box.append(canvas);
  panel.append(tools, box);
  place.append(panel);
  sized(box, now => {
    width = now;
    draw();
    if (!chosen.callee) box.scrollTop = box.scrollHeight;
  });
  redrawn(draw);
}
