// Tables that sort and filter: those that are in the page, and those that scripts make.

function compare(a, b) {
  const [one, other] = [a === null || a === '', b === null || b === ''];
  if (one || other) return one - other;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b));
}

/// Makes `heads` buttons that sort: `sort` gets the column, and 1 for the least first or -1.
function sortable(heads, sort) {
  heads.forEach((head, column) => {
    const button = element('button', '', head.textContent);
    button.type = 'button';
    head.replaceChildren(button);
    button.addEventListener('click', () => {
      const numbers = head.classList.contains('n');
      const was = head.getAttribute('aria-sort');
      const order = was ? (was === 'ascending' ? -1 : 1) : (numbers ? -1 : 1);
      heads.forEach(other => other.removeAttribute('aria-sort'));
      head.setAttribute('aria-sort', order > 0 ? 'ascending' : 'descending');
      sort(column, order);
    });
  });
}

function filterBox(change) {
  const box = element('input');
  box.type = 'search';
  box.placeholder = 'Filter';
  box.setAttribute('aria-label', 'Filter rows');
  box.addEventListener('input', () => change(box.value.trim().toLowerCase()));
  return box;
}

/// A table that is in the page.
function enhance(table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.classList.contains('n') ? null : cell.textContent;
  };
  sortable([...table.tHead.rows[0].cells], (column, order) => {
    const unknown = row => value(row, column) === null;
    rows.sort((a, b) => unknown(a) - unknown(b) || order * compare(value(a, column), value(b, column)));
    body.append(...rows);
  });
  let words = '';
  const timed = table.closest('#kills') !== null;
  const show = () => rows.forEach(row => {
    const inside = !timed || isChosen(Number(row.cells[0].dataset.v));
    row.hidden = !inside || !row.textContent.toLowerCase().includes(words);
  });
  if (rows.length > 8) {
    const tools = element('div', 'tools');
    tools.append(filterBox(text => {
      words = text;
      show();
    }));
    table.parentElement.before(tools);
  }
  if (timed) following(show);
}

function enhanceAll() {
  document.querySelectorAll('table.data').forEach(enhance);
  document.querySelectorAll('#tables summary').forEach(summary => {
    const badge = element('span', 'badge', 'all of the time');
    badge.hidden = true;
    summary.append(' ', badge);
    following(() => badge.hidden = !range.chosen);
  });
}

/// A short text stays on one line.
function textCell(text, number) {
  return element('td', number ? 'n' : text.length <= 30 ? 's' : '', text);
}

/// A table made of rows that scripts have. `columns`: {title, number, value(row), text(row), cell(row)}; of those with `cell` that makes
/// the element. `rows` returns what is to be shown now; most rows are only made when they are asked for.
function rowTable(place, columns, rows, most) {
  const tools = element('div', 'tools');
  const told = element('span', 'muted');
  const wide = element('div', 'wide');
  const table = element('table', 'data');
  const head = table.createTHead().insertRow();
  const heads = columns.map(column => {
    const cell = element('th', column.number ? 'n' : '', column.title);
    cell.scope = 'col';
    head.append(cell);
    return cell;
  });
  const body = table.createTBody();
  const more = element('button', '', 'Show more');
  more.type = 'button';
  let [words, sorted, limit] = ['', null, most];
  const text = (column, row) => column.text ? column.text(row) : String(column.value(row) ?? '–');
  const show = () => {
    let shown = rows();
    if (words) shown = shown.filter(row => columns.some(column => text(column, row).toLowerCase().includes(words)));
    if (sorted) {
      const { column, order } = sorted;
      const value = row => columns[column].value(row);
      const unknown = row => value(row) === null || value(row) === undefined;
      shown = [...shown].sort((a, b) => unknown(a) - unknown(b) || order * compare(value(a), value(b)));
    }
    const made = shown.slice(0, limit).map(row => {
      const line = element('tr');
      columns.forEach(column => {
        const cell = column.cell ? column.cell(row) : textCell(text(column, row), column.number);
        line.append(cell);
      });
      return line;
    });
    body.replaceChildren(...made);
    told.textContent = `${whole(shown.length)} rows${shown.length > limit ? `, ${whole(limit)} shown` : ''}`;
    more.hidden = shown.length <= limit;
  };
  sortable(heads, (column, order) => {
    sorted = { column, order };
    show();
  });
  more.addEventListener('click', () => {
    limit *= 5;
    show();
  });
  tools.append(filterBox(text => {
    words = text;
    show();
  }), told);
  wide.append(table);
  place.append(tools, wide, more);
  return show;
}
