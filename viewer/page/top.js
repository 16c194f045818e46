// `analyze top` by menus.

function topView(place, { options: text, scope, go }) {
  const chosen = topOf(text);
  const menu = element('div', 'tools menus');
  const now = change => go(topText({ ...chosen, ...change }));
  [0, 1, 2].forEach(at => menu.append(chooser(at === 0 ? 'by' : 'and by', at === 0 ? KEYS : ['', ...KEYS], chosen.keys[at] ?? '', key => {
    const keys = [...chosen.keys];
    keys[at] = key;
    now({ keys: [...new Set(keys.filter(Boolean))] });
  })));
  menu.append(chooser('ranked by', METRICS, chosen.metric, metric => now({ metric })));
  menu.append(chooser('rows', ['10', '20', '50', '200', '0'], chosen.top, top => now({ top })));
  const hist = element('label', 'choice');
  const box = element('input');
  box.type = 'checkbox';
  box.checked = chosen.hist;
  box.addEventListener('change', () => now({ hist: box.checked }));
  hist.append(box, element('span', '', 'histograms'));
  menu.append(hist);
  place.append(menu);
  const command = `top ${topText({ ...chosen, rest: '' })}`.trim();
  answered(place, { command, options: chosen.rest, scope, change: rest => now({ rest }) });
}

/// What a link chose: keys, metric, rows, histograms, and other options as they are.
function topOf(text) {
  const chosen = { keys: ['comm', 'syscall'], metric: 'total', top: '20', hist: false, rest: [] };
  let words = [];
  try {
    words = wordsOf(text);
  } catch {
    chosen.rest.push(text);
  }
  for (let at = 0; at < words.length; at++) {
    if (words[at] === '--by' && words[at + 1]) chosen.keys = words[++at].split(',').slice(0, 3);
    else if (words[at] === '--metric' && METRICS.includes(words[at + 1])) chosen.metric = words[++at];
    else if (words[at] === '--top' && words[at + 1]) chosen.top = words[++at];
    else if (words[at] === '--hist') chosen.hist = true;
    else chosen.rest.push(quoted(words[at]));
  }
  return { ...chosen, rest: chosen.rest.join(' ') };
}

function topText({ keys, metric, top, hist, rest }) {
  return [`--by ${keys.join(',')}`, `--metric ${metric}`, `--top ${top}`, hist ? '--hist' : '', rest].filter(Boolean).join(' ');
}
