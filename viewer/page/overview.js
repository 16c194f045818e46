// The first view: what was recorded, what is missing, and what `why` finds.

function tile(list, name, value) {
  if (value === null || value === undefined || value === '') return;
  const box = element('div');
  box.append(element('dt', '', name), element('dd', '', value));
  list.append(box);
}

function lossesOf(info) {
  const lost = Object.entries(info.lost ?? {}).map(([name, count]) => `${name}: ${typeof count === 'object' ? JSON.stringify(count) : whole(Number(count))} lost`);
  const findings = (info.findings ?? []).map(finding => (typeof finding === 'string' ? finding : finding.text ?? JSON.stringify(finding)));
  return [...lost, ...findings];
}

async function overviewView(place, { scope }) {
  const top = element('div');
  const found = element('div', 'result');
  place.append(top, found);
  try {
    showCommand(['why', tapeWord()]);
    const [info] = rowsOf(await ask(['info', '--format', 'json', tapeWord()], { scope }));
    if (info) overviewHead(top, info);
    const text = await ask(['info', tapeWord()], { scope });
    const about = element('details', 'tab');
    about.append(element('summary', '', 'Tape, machine and losses (analyze info)'));
    const inside = element('div', 'info-text');
    answerText(inside, text);
    about.append(inside);
    // a file that is no tape says so here
    about.open = !info;
    place.append(about);
    if (!info) return;
    found.setAttribute('aria-busy', 'true');
    const why = await ask(['why', '--format', 'json', tapeWord()], { scope });
    if (!why.fault && why.status === 0) overviewFindings(found, rowsOf(why));
    messages(found, why);
    whyText(found, scope);
  } catch (error) {
    if (error.message !== CANCELLED) fault(found, error.message);
    else found.append(element('p', 'note', 'Cancelled.'));
  } finally {
    found.removeAttribute('aria-busy');
    found.dataset.done = 'yes';
  }
}

/// The findings as text, which is asked for when it is opened.
function whyText(place, scope) {
  const told = element('details', 'tab why');
  told.append(element('summary', '', 'The same as text (analyze why)'));
  const inside = element('div', 'why-text');
  told.append(inside);
  place.append(told);
  told.addEventListener('toggle', async () => {
    try {
      answerText(inside, await ask(['why', tapeWord()], { scope }));
    } catch (error) {
      if (error.message !== CANCELLED) fault(inside, error.message);
    }
    inside.dataset.done = 'yes';
  }, { once: true });
}

function overviewHead(place, info) {
  place.append(element('p', 'kicker', `${session.tape}, written by record ${info.recorder}`));
  place.append(element('h2', 'target', info.target || 'a recording'));
  const tiles = element('dl', 'tiles');
  const events = Object.values(info.events ?? {}).reduce((sum, count) => sum + Number(count), 0);
  tile(tiles, 'Length', span(Number(info.duration_ns)));
  tile(tiles, 'Events', whole(events));
  tile(tiles, 'Began', info.start_time?.replace('T', ' ').replace(/\.\d+Z$/, ' UTC'));
  tile(tiles, 'Machine', `${info.hostname || '?'}, ${info.cpus} CPUs, ${info.machine}`);
  tile(tiles, 'Kernel', info.kernel);
  tile(tiles, 'State', info.clean_end ? 'complete' : 'not ended');
  place.append(tiles);
  const losses = lossesOf(info);
  if (info.complete && losses.length === 0) {
    place.append(element('p', 'good', 'Nothing was lost.'));
  } else {
    const box = element('div', 'bad');
    box.append(element('p', '', 'Something is missing: counts and times may be lower bounds.'));
    const list = element('ul');
    losses.slice(0, 12).forEach(text => list.append(element('li', '', text)));
    box.append(list);
    place.append(box);
  }
}

function overviewFindings(place, rows) {
  const budget = rows.filter(row => row.kind === 'budget' && row.level === 1);
  const findings = rows.filter(row => row.kind !== 'budget' && row.text);
  if (budget.length) {
    const all = budget.reduce((sum, row) => sum + Number(row.cost_ns ?? 0), 0);
    place.append(element('h2', '', 'Where the time went'));
    const table = element('table', 'data budget');
    for (const row of budget.slice(0, 12)) {
      const line = table.insertRow();
      line.append(element('td', 'n', span(Number(row.cost_ns))));
      const bar = element('td', 'life');
      const fill = element('div');
      fill.style.width = `${Number(row.cost_ns) / all * 100}%`;
      bar.append(fill);
      line.append(bar, element('td', '', row.text));
    }
    const box = element('div', 'wide panel');
    box.append(table);
    place.append(box);
  }
  if (findings.length === 0) return;
  place.append(element('h2', '', 'What was slow, and what broke'));
  const list = element('ol', 'findings');
  for (const row of findings) {
    const item = element('li', row.class === 'broken' || row.kind === 'broken' ? 'broken' : row.cost_ns === null ? 'notice' : '');
    item.append(element('p', 'cost', row.cost_ns === null ? '' : `${row.cost_ns_of_known ? '~' : ''}${span(Number(row.cost_ns))}`));
    const body = element('div');
    body.append(element('p', '', row.text));
    if (row.command) {
      const typed = `${row.command.replace(/^analyze /, '')}`;
      const link = element('a', 'command', `analyze ${typed}`);
      link.href = linkOf('console', typed);
      body.append(link);
    }
    item.append(body);
    list.append(item);
  }
  place.append(list);
}
