// Any command line of `analyze`.

const past = [];

/// Words that ask about no tape.
const WITHOUT = ['help', '-h', '--help', '-V', '--version', 'schema', 'sql', 'mcp'];

function consoleView(place, { options: text, scope, go }) {
  const form = element('form', 'options');
  form.append(element('label', 'prompt', 'analyze '));
  const field = element('input');
  field.type = 'text';
  field.id = 'console-line';
  field.spellcheck = false;
  field.autocapitalize = 'off';
  field.value = text;
  field.placeholder = 'why --floor 0, or --help';
  form.firstChild.htmlFor = field.id;
  const run = element('button', '', 'Run');
  run.type = 'submit';
  form.append(field, run);
  const result = element('div', 'result');
  place.append(form, result);
  const names = session.files.map(({ name }) => name).join(', ');
  place.append(element('p', 'hint', `Files here: ${names}. Without a name the tape ${session.tape} is asked. What a report writes (-o, --svg) can be saved and asked.`));
  let at = past.length;
  field.addEventListener('keydown', event => {
    if (event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return;
    at = Math.min(past.length, Math.max(0, at + (event.key === 'ArrowUp' ? -1 : 1)));
    field.value = past[at] ?? '';
    event.preventDefault();
  });
  form.addEventListener('submit', event => {
    event.preventDefault();
    const typed = field.value.trim().replace(/^analyze\s+/, '');
    if (past.at(-1) !== typed) past.push(typed);
    go(typed, true);
  });
  if (text) consoleAnswer(result, text, scope);
  else field.focus({ preventScroll: true });
}

/// The words that are asked: with the tape, if none of them names a file.
function consoleWords(text) {
  const words = wordsOf(text);
  const named = words.some(word => session.files.some(({ name }) => word === name || word === `./${name}`));
  const without = words.some(word => WITHOUT.includes(word)) || words.includes('-i') || words.includes('.');
  return named || without ? words : [...words, tapeWord()];
}

async function consoleAnswer(place, text, scope) {
  place.setAttribute('aria-busy', 'true');
  try {
    const words = consoleWords(text);
    showCommand(words);
    const answer = await ask(words, { scope, keep: true });
    answerText(place, answer);
    if (answer.status !== null) {
      place.append(element('p', 'foot', `exit status ${answer.status}, ${answer.ms < 1000 ? `${Math.round(answer.ms)} ms` : `${(answer.ms / 1000).toFixed(1)} s`}, ${Math.round(answer.memory / 2 ** 20)} MiB`));
    }
    filesChanged();
  } catch (error) {
    if (error.message !== CANCELLED) fault(place, error.message);
    else place.append(element('p', 'note', 'Cancelled.'));
  }
  place.removeAttribute('aria-busy');
  place.dataset.done = 'yes';
}
