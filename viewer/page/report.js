// A view of reports: commands to choose from, options, and the answer as text or as a table.

/// The words of a command with options, about the tape.
function wordsFor(command, options) {
  return [...wordsOf(`${command} ${options}`), tapeWord()];
}

/// Splits what a link says into one of the commands and options behind it.
function commandOf(text, commands) {
  const fits = commands.filter(command => text === command || text.startsWith(`${command} `));
  const command = fits.sort((a, b) => b.length - a.length)[0] ?? commands[0];
  return { command, options: fits.length ? text.slice(command.length).trim() : '' };
}

function reportView(place, { view, options: text, scope, go }) {
  const { commands } = REPORTS[view];
  const { command, options } = commandOf(text, commands);
  const bar = element('div', 'tabs');
  bar.setAttribute('role', 'group');
  bar.setAttribute('aria-label', 'Reports');
  for (const name of commands) {
    const tab = button(name, () => go(`${name}${options ? ` ${options}` : ''}`));
    tab.setAttribute('aria-pressed', String(name === command));
    bar.append(tab);
  }
  place.append(bar);
  answered(place, { command, options, scope, change: now => go(`${command}${now ? ` ${now}` : ''}`) });
}

/// Options, and below them the answer to a command, as text or as rows.
function answered(place, { command, options, scope, change }) {
  const tools = element('div', 'tools');
  const result = element('div', 'result');
  const switches = element('span', 'switch');
  switches.setAttribute('role', 'group');
  switches.setAttribute('aria-label', 'Form of the answer');
  let asText = true;
  const forms = [['Text', true], ['Table', false]].map(([name, text]) => {
    const made = button(name, () => {
      asText = text;
      show();
    });
    switches.append(made);
    return [made, text];
  });
  tools.append(optionsField(options, change), switches);
  place.append(tools, result);
  const show = async () => {
    forms.forEach(([made, text]) => made.setAttribute('aria-pressed', String(text === asText)));
    result.replaceChildren();
    result.setAttribute('aria-busy', 'true');
    try {
      const words = wordsFor(command, options);
      showCommand(words);
      const all = asText ? words : [...words.slice(0, -1), '--format', 'json', words.at(-1)];
      const answer = await ask(all, { scope, keep: true });
      if (asText) {
        answerText(result, answer);
      } else {
        answerTable(result, answer.cut ? [] : rowsOf(answer));
        messages(result, answer);
      }
      filesChanged();
    } catch (error) {
      if (error.message !== CANCELLED) fault(result, error.message);
      else result.append(element('p', 'note', 'Cancelled.'));
    }
    result.removeAttribute('aria-busy');
    result.dataset.done = 'yes';
  };
  show();
}
