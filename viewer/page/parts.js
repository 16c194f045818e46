// Parts that views have in common: the command line above an answer, its text, its rows as a table, what was said beside it.

/// A button.
function button(text, act, label) {
  const made = element('button', '', text);
  made.type = 'button';
  if (label) made.setAttribute('aria-label', label);
  made.addEventListener('click', act);
  return made;
}

async function copy(text, from) {
  const before = from.textContent;
  try {
    await navigator.clipboard.writeText(text);
    from.textContent = 'Copied';
  } catch {
    // a page from the disk may not always write there: the text is selected instead
    from.textContent = 'Not allowed here';
  }
  setTimeout(() => from.textContent = before, 1200);
}

/// Shows the command that makes what is seen, and remembers it in the link.
function showCommand(words) {
  byId('command').textContent = lineOf(words);
  byId('line').hidden = false;
}

/// A field for options of the command line.
function optionsField(value, change, placeholder = 'options and filters, e.g. -p 2214 --time 0.1,0.2') {
  const form = element('form', 'options');
  const field = element('input');
  field.type = 'text';
  field.spellcheck = false;
  field.autocapitalize = 'off';
  field.value = value;
  field.placeholder = placeholder;
  field.setAttribute('aria-label', 'Options and filters of the command line');
  const run = element('button', '', 'Ask');
  run.type = 'submit';
  form.append(field, run);
  form.addEventListener('submit', event => {
    event.preventDefault();
    change(field.value.trim());
  });
  return form;
}

/// A choice of some texts.
function chooser(label, texts, chosen, change) {
  const made = element('select');
  made.setAttribute('aria-label', label);
  for (const text of texts) {
    const option = element('option', '', text === '' ? '–' : text);
    option.value = text;
    made.append(option);
  }
  made.value = chosen;
  made.addEventListener('change', () => change(made.value));
  const box = element('label', 'choice');
  box.append(element('span', '', label), made);
  return box;
}

function fault(place, text) {
  const note = element('p', 'bad', text);
  note.setAttribute('role', 'alert');
  place.append(note);
}

/// Messages beside an answer, as analyze writes them to standard error.
function messages(place, answer) {
  if (answer.said) place.append(element('pre', 'said', answer.said.trimEnd()));
  if (answer.fault) fault(place, answer.fault);
  if (answer.cut) place.append(element('p', 'note', 'The answer is longer than 32 MiB, and is cut off here: narrow it with filters, or --max-events.'));
}

function download(name, bytes, text = `Save ${name}`) {
  const link = element('a', 'download', text);
  link.href = URL.createObjectURL(new Blob([bytes]));
  link.download = name;
  return link;
}

/// Most characters of text that the page shows at once: more is slow to lay out.
const SHOWN = 2e6;

/// The text of an answer.
function answerText(place, answer) {
  const text = textOf(answer);
  if (text) {
    const made = element('pre', 'answer', text.length > SHOWN ? text.slice(0, text.lastIndexOf('\n', SHOWN) + 1) : text);
    made.tabIndex = 0;
    made.setAttribute('aria-label', 'Answer');
    place.append(made);
    const foot = element('p', 'foot');
    const copied = button('Copy text', () => copy(text, copied));
    foot.append(copied);
    if (text.length > SHOWN) foot.append(' The first 2 MB of the text. ', download('answer.txt', answer.text, 'Save all of it'));
    place.append(foot);
  }
  messages(place, answer);
  for (const { name, bytes } of answer.made) {
    const line = element('p', 'made');
    line.append(`Wrote ${name}, ${whole(bytes.length)} bytes. `, download(name, bytes));
    place.append(line);
  }
}

/// One row without nesting: `{a: {b: 1}}` is `{'a.b': 1}`. Of flags only what they say of their number is left.
function flat(row, into = {}, before = '') {
  for (const [name, value] of Object.entries(row)) {
    if (value && typeof value === 'object' && !Array.isArray(value)) {
      if ('text' in value) into[before + name] = value.text;
      else flat(value, into, `${before}${name}.`);
    } else {
      into[before + name] = Array.isArray(value) ? value.map(part => (typeof part === 'object' ? JSON.stringify(part) : part)).join(' ') : value;
    }
  }
  return into;
}

const FLAG = /_(at_least|at_most|of_known|short)$/;

/// Rows of JSON as a table that sorts and filters.
function answerTable(place, rows) {
  const all = rows.map(row => flat(row));
  const names = [...new Set(all.slice(0, 500).flatMap(row => Object.keys(row)))]
    .filter(name => !FLAG.test(name) && all.some(row => row[name] !== null && row[name] !== undefined));
  const number = name => all.every(row => row[name] === null || row[name] === undefined || typeof row[name] === 'number' || /^-?[0-9]+$/.test(row[name]));
  const mark = (row, name) => (row[`${name}_at_least`] ? '>=' : row[`${name}_at_most`] ? '<=' : row[`${name}_of_known`] ? '~' : '');
  const columns = names.map(name => {
    const isNumber = number(name);
    const isTime = isNumber && /_ns$|^ns$/.test(name);
    const value = row => (row[name] === null || row[name] === undefined ? null : isNumber ? Number(row[name]) : row[name]);
    const text = row => {
      const it = value(row);
      if (it === null) return '–';
      if (isTime) return mark(row, name) + (/^(ts|first|last|end|begin|start)_ns$/.test(name) ? `${(it / 1e9).toFixed(6)} s` : it < 0 ? `-${span(-it)}` : span(it));
      if (isNumber) return mark(row, name) + (Number.isInteger(it) ? (/(^|\.|_)(pid|tid|uid|upid|utid|fd|port|sector)$/.test(name) ? String(it) : whole(it)) : it.toFixed(2));
      return mark(row, name) + it;
    };
    return { title: name.replace(/_ns$/, ''), number: isNumber, value, text };
  });
  if (!all.length) return;
  rowTable(place, columns, () => all, 200)();
}
