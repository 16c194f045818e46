// Flame graphs, drawn on a canvas: callers below, a width for the time. A click makes a function the whole width.

/// Times of the frames in the parts of the tape that the chosen time touches, and which those are.
function chosenParts(graph) {
  if (!range.chosen) return { times: graph.ns, text: '', option: '' };
  if (!graph.parts) return { times: graph.ns, text: ', of all of the time', option: '' };
  const count = graph.parts.length;
  const edge = part => Math.floor(data.slices * part / count);
  const [first, end] = chosenSlices();
  const inside = graph.parts.map((_, part) => part).filter(part => edge(part) < end && edge(part + 1) > first);
  const times = new Array(graph.ns.length).fill(0);
  inside.forEach(part => graph.parts[part].at.forEach((frame, at) => times[frame] += graph.parts[part].ns[at]));
  const time = part => data.from + edge(part) * data.width;
  const [from, to] = [time(inside[0]), Math.min(data.to, time(inside.at(-1) + 1))];
  return { times, text: `, from ${clock(from)} to ${clock(to)}`, option: timeOption(from, to) };
}

function flame(graph) {
  const place = element('div', 'panel');
  const tools = element('div', 'tools');
  const found = element('span', 'muted');
  const box = element('div', 'flame');
  const canvas = element('canvas');
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', `Flame graph: ${graph.title}`);
  let [times, tree] = [graph.ns, layOut(graph, graph.ns)];
  const height = (tree.deepest + 1) * FRAME;
  let [width, words, focus] = [0, '', -1];
  const back = element('button', '', 'Whole graph');
  back.type = 'button';
  back.hidden = true;
  const view = () => focus < 0 || !times[focus] ? [0, tree.total || 1] : [tree.left[focus], times[focus]];
  const rect = at => {
    const [start, length] = view();
    const left = (tree.left[at] - start) / length * width;
    return [Math.max(0, left), Math.min(width, left + times[at] / length * width)];
  };
  const matches = at => words && tree.name(at).toLowerCase().includes(words);
  const waits = graph.title === 'Off the CPU';
  const draw = () => {
    if (!width) return;
    const context = prepare(canvas, width, height);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    for (let at = 0; at < graph.parent.length; at++) {
      const [left, right] = rect(at);
      if (right - left < 0.4) continue;
      const top = height - (tree.depth[at] + 1) * FRAME;
      context.fillStyle = matches(at) ? color('c4') : flameColor(graph, at, waits);
      context.fillRect(left, top, Math.max(0.4, right - left - 0.6), FRAME - 1);
      if (right - left < 28) continue;
      context.save();
      context.beginPath();
      context.rect(left, top, right - left - 3, FRAME);
      context.clip();
      context.fillStyle = '#16181c';
      context.fillText(tree.name(at), left + 4, top + FRAME / 2);
      context.restore();
    }
  };
  const under = event => {
    const edge = canvas.getBoundingClientRect();
    const level = Math.floor((height - (event.clientY - edge.top)) / FRAME);
    const x = event.clientX - edge.left;
    for (let at = 0; at < graph.parent.length; at++) {
      if (tree.depth[at] !== level) continue;
      const [left, right] = rect(at);
      if (x >= left && x < right) return at;
    }
    return -1;
  };
  const share = ns => `${(ns / (tree.total || 1) * 100).toFixed(2)} %`;
  const zoom = at => {
    focus = at;
    back.hidden = at < 0;
    draw();
  };
  canvas.addEventListener('pointermove', event => {
    const at = under(event);
    const least = graph.short ? '>=' : '';
    tip(at < 0 ? undefined : [tree.name(at), `${least}${span(times[at])}, ${share(times[at])}`], event);
  });
  canvas.addEventListener('pointerleave', () => tip());
  canvas.addEventListener('click', event => zoom(under(event)));
  back.addEventListener('click', () => zoom(-1));
  const heading = element('h3');
  // a match within a match is part of it
  const sum = list => list.reduce((all, at) => all + (matches(at) ? times[at] : sum(tree.children[at])), 0);
  const tell = () => found.textContent = words ? `${share(sum(tree.roots))} match` : '';
  tools.append(heading, filterBox(text => {
    words = text;
    tell();
    draw();
  }), found, back);
  box.append(canvas);
  place.append(tools, box);
  if (graph.left_out) place.append(element('p', 'muted', `${whole(graph.left_out)} of the lightest rows are left out.`));
  notes(place, graph.told);
  const foot = element('p', 'foot');
  const command = element('code');
  foot.append(command);
  place.append(foot);
  following(() => {
    const part = chosenParts(graph);
    [times, tree] = [part.times, layOut(graph, part.times)];
    heading.textContent = `${graph.title}: ${graph.short ? '>=' : ''}${span(tree.total)}${part.text}`;
    command.textContent = `analyze ${graph.command}${part.option}`;
    tell();
    draw();
  });
  byId('flame-view').append(place);
  sized(box, now => {
    width = now;
    draw();
    box.scrollTop = box.scrollHeight;
  });
  redraws.push(draw);
}

function drawFlames() {
  data.graphs.forEach(flame);
}
