// The listing as a table of any length: rows are fetched page by page as they come into sight.

const ROW = 22;
/// Rows of a page, and pages that are kept.
const BATCH = 500;
const KEPT_PAGES = 40;
/// Most pixels of a table: browsers lose their way in higher ones.
const HIGHEST = 8e6;

/// An argument as the listing prints it.
function argumentText(value) {
  if (value === null) return '?';
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(argumentText).join(', ')}]`;
  if ('fd' in value) return value.path === null || value.path === undefined ? String(value.fd) : `${value.fd}<${argumentText(value.path)}>`;
  if ('text' in value) return String(value.text);
  return `{${Object.entries(value).map(([name, part]) => `${name}: ${argumentText(part)}`).join(', ')}}`;
}

/// Cells of a row: start, length, thread, call, arguments, result.
function callCells(row) {
  const start = (Number(row.ts_ns ?? 0) / 1e9).toFixed(6);
  const who = `${argumentText(row.comm ?? '')} ${row.tid ?? row.pid ?? ''}`.trim();
  if (!('syscall' in row)) {
    const { ts_ns: _, time: __, ...rest } = row;
    return [start, '', who, String(row.event ?? row.kind ?? Object.keys(rest)[0] ?? ''), JSON.stringify(rest), ''];
  }
  const length = row.dur_ns === null ? '' : `${row.dur_ns_at_least ? '>=' : ''}${span(Number(row.dur_ns))}`;
  const args = Object.entries(row.args ?? {}).map(([name, value]) => `${name}: ${argumentText(value)}`).join(', ');
  const result = row.errno ? `-1 ${argumentText(row.errno)}` : row.ret === null ? row.incomplete ?? '?' : argumentText(row.ret);
  return [start, length, who, row.syscall, args, result];
}

function callsView(place, { options, scope, go }) {
  const tools = element('div', 'tools');
  const told = element('output', 'muted');
  tools.append(optionsField(options, text => go(text), 'filters, e.g. -e openat --failure, --duration 1ms, -p 2214'), told);
  const head = element('div', 'virtual-row virtual-head');
  ['Start (s)', 'Length', 'Thread', 'Call', 'Arguments', 'Result'].forEach(name => {
    const cell = element('span', '', name);
    cell.setAttribute('role', 'columnheader');
    head.append(cell);
  });
  head.setAttribute('role', 'row');
  const box = element('div', 'virtual');
  box.tabIndex = 0;
  box.setAttribute('role', 'table');
  box.setAttribute('aria-label', 'Calls');
  const high = element('div', 'virtual-high');
  const rows = element('div', 'virtual-rows');
  rows.setAttribute('role', 'rowgroup');
  high.append(rows);
  box.append(head, high);
  const details = element('aside', 'panel details');
  details.hidden = true;
  place.append(tools, box, details);
  callsTable({ options, scope, told, box, high, rows, details });
}

function callsTable({ options, scope, told, box, high, rows, details }) {
  let base;
  try {
    base = wordsOf(options);
  } catch (error) {
    fault(details, error.message);
    details.hidden = false;
    return;
  }
  const words = [...base, tapeWord()];
  showCommand(words);
  const pages = new Map();
  const waiting = new Set();
  let [total, more, chosen, broken, sizes] = [0, true, -1, false, null];
  const limited = base.includes('--max-events') || base.some(word => word.startsWith('--max-events='));

  const tellTotal = () => {
    told.textContent = broken ? '' : `${more ? 'at least ' : ''}${whole(total)} rows`;
    const pixels = Math.max(1, total) * ROW;
    sizes = { pixels: Math.min(HIGHEST, pixels), scale: Math.max(1, pixels / HIGHEST) };
    high.style.height = `${sizes.pixels}px`;
  };

  const fetchPage = async number => {
    if (pages.has(number) || waiting.has(number) || broken) return;
    waiting.add(number);
    const from = number * BATCH;
    // the first counts them all, if that takes no longer than a moment
    const most = number === 0 || limited ? [] : ['--max-events', String(from + BATCH + 1)];
    try {
      const answer = await ask([...base, '--format', 'json', ...most, tapeWord()], { scope, sink: { kind: 'lines', from, count: BATCH } });
      pages.set(number, rowsOf(answer));
      while (pages.size > KEPT_PAGES) pages.delete(pages.keys().next().value);
      const known = Math.max(total, answer.lines);
      if (number === 0) [total, more] = [answer.lines, answer.more];
      else if (known > total || answer.lines <= from + BATCH) [total, more] = [known, answer.lines > from + BATCH];
      if (number === 0 && (answer.said || answer.fault)) messages(details, answer);
      if (number === 0 && (answer.said || answer.fault)) details.hidden = false;
      if (answer.fault) broken = true;
      tellTotal();
      draw();
    } catch (error) {
      if (error.message === CANCELLED) return;
      broken = true;
      details.hidden = false;
      fault(details, error.message);
    } finally {
      waiting.delete(number);
      box.dataset.done = 'yes';
    }
  };

  const rowAt = number => pages.get(Math.floor(number / BATCH))?.[number % BATCH];

  const choose = number => {
    chosen = number;
    const row = rowAt(number);
    draw();
    if (!row) return;
    details.hidden = false;
    details.replaceChildren(element('h3', '', `Row ${whole(number + 1)}`));
    const list = element('dl');
    for (const [name, value] of Object.entries(flat(row))) {
      if (value === null) continue;
      list.append(element('dt', '', name), element('dd', '', String(value)));
    }
    details.append(list);
    if (row.tid !== undefined) {
      const from = Number(row.ts_ns) / 1e9;
      const to = from + Math.max(Number(row.dur_ns ?? 0), 1e6) / 1e9;
      const links = element('p');
      const link = (text, view, typed) => {
        const made = element('a', '', text);
        made.href = linkOf(view, typed);
        links.append(made, ' ');
      };
      link('This time in the time line', 'time', `${Math.max(0, from - (to - from)).toFixed(9)},${(to + (to - from)).toFixed(9)}`);
      link(`Calls of thread ${row.tid}`, 'calls', `-t ${row.tid}`);
      if (row.syscall) link(`All ${row.syscall}`, 'calls', `-e ${row.syscall}`);
      details.append(links);
    }
  };

  const draw = () => {
    if (!sizes) return;
    const seen = Math.ceil(box.clientHeight / ROW) + 1;
    const top = box.scrollTop;
    const most = Math.max(0, total - seen + 2);
    const first = sizes.scale === 1 ? Math.floor(top / ROW) : Math.floor(top / Math.max(1, sizes.pixels - box.clientHeight) * most);
    const from = Math.max(0, Math.min(first, total - 1));
    rows.style.transform = `translateY(${sizes.scale === 1 ? from * ROW : Math.min(top, sizes.pixels - seen * ROW)}px)`;
    const made = [];
    for (let number = from; number < Math.min(total, from + seen); number++) {
      const line = element('div', `virtual-row${number === chosen ? ' chosen' : ''}`);
      line.setAttribute('role', 'row');
      line.setAttribute('aria-rowindex', String(number + 2));
      const row = rowAt(number);
      const cells = row ? callCells(row) : ['…', '', '', '', '', ''];
      cells.forEach(text => {
        const cell = element('span', '', text);
        cell.setAttribute('role', 'cell');
        line.append(cell);
      });
      if (row?.errno) line.classList.add('failed');
      line.addEventListener('click', () => choose(number));
      made.push(line);
      if (!row) fetchPage(Math.floor(number / BATCH));
    }
    rows.replaceChildren(...made);
    if (more && from + 2 * seen > total) fetchPage(Math.floor(total / BATCH));
  };
  box.addEventListener('scroll', () => requestAnimationFrame(draw));
  box.addEventListener('keydown', event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target !== box || total === 0) return;
    event.preventDefault();
    const next = Math.min(total - 1, Math.max(0, chosen + step));
    choose(next);
    const top = next * ROW / sizes.scale;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW - box.clientHeight;
  });
  new ResizeObserver(draw).observe(box);
  fetchPage(0);
}
