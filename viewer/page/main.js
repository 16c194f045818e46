// The page: a tape is dropped, the bar shows the views, the link says which is seen.

const draws = { overview: overviewView, time: timeView, calls: callsView, flame: flameView, top: topView, console: consoleView };
/// Redraws of the view that is seen, when the theme changes.
let current = null;

function redrawn(draw) {
  redraws.push(draw);
}

function filesChanged() {
  const choice = byId('tape');
  const names = session.files.map(({ name }) => name);
  if (JSON.stringify([...choice.options].map(option => option.value)) !== JSON.stringify(names)) {
    choice.replaceChildren(...names.map(name => {
      const option = element('option', '', name);
      option.value = name;
      return option;
    }));
  }
  choice.value = session.tape;
  byId('tape-choice').hidden = names.length === 0;
}

/// Shows the view that the link names.
function show() {
  if (!session.tape) return;
  const { view, options } = linked(location.hash);
  if (current) cancel(current);
  const scope = { view };
  current = scope;
  redraws.length = 0;
  tip();
  byId('welcome').hidden = true;
  byId('seen').hidden = false;
  byId('line').hidden = true;
  byId('title').textContent = TITLES[view];
  document.title = `${TITLES[view]} – ${session.tape}`;
  document.querySelectorAll('#views a').forEach(link => {
    if (link.dataset.view === view) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  });
  const place = element('div', `view ${view}`);
  byId('body').replaceChildren(place);
  const go = (text, again = false, silent = false) => {
    if (current !== scope) return;
    const link = linkOf(view, text);
    if (silent) history.replaceState(null, '', link);
    else if (link === (location.hash || '#overview')) again && show();
    else location.hash = link;
  };
  const leave = (other, text) => location.hash = linkOf(other, text);
  const draw = draws[view] ?? reportView;
  Promise.resolve(draw(place, { view, options, scope, go, leave })).catch(error => {
    if (error.message !== CANCELLED) fault(place, error.message);
  });
}

function take(list) {
  const files = [...list].filter(file => file.size > 0 || file.type);
  if (files.length === 0) return;
  if (!session.module) {
    // the module is still being made
    waitingFiles.push(...files);
    return;
  }
  addFiles(files);
  filesChanged();
  show();
}

const waitingFiles = [];

function startBar() {
  const bar = byId('views');
  for (const view of ORDER) {
    const link = element('a', '', TITLES[view]);
    link.href = linkOf(view, '');
    link.dataset.view = view;
    bar.append(link);
  }
  byId('pick').addEventListener('change', event => {
    take(event.target.files);
    event.target.value = '';
  });
  byId('open').addEventListener('click', () => byId('pick').click());
  byId('first').addEventListener('click', () => byId('pick').click());
  byId('copy-command').addEventListener('click', event => copy(byId('command').textContent, event.target));
  byId('copy-link').addEventListener('click', event => copy(location.hash || '#overview', event.target));
  byId('cancel').addEventListener('click', () => cancel());
  byId('tape').addEventListener('change', event => {
    session.tape = event.target.value;
    show();
  });
  addEventListener('hashchange', show);
  const still = event => event.preventDefault();
  addEventListener('dragover', event => {
    still(event);
    document.body.classList.add('over');
  });
  addEventListener('dragleave', event => event.relatedTarget || document.body.classList.remove('over'));
  addEventListener('drop', event => {
    still(event);
    document.body.classList.remove('over');
    take(event.dataTransfer.files);
  });
}

/// Progress, once a question takes longer than a moment.
function startProgress() {
  const busy = byId('busy');
  let timer = null;
  session.progress = (part, text) => {
    if (part === null) {
      clearTimeout(timer);
      timer = null;
      busy.hidden = true;
      return;
    }
    byId('progress').value = part;
    byId('progress-text').textContent = `${text} ${Math.round(part * 100)} %`;
    timer ??= setTimeout(() => busy.hidden = false, 400);
  };
}

/// The tape that this page was served with, by `analyze open`.
async function servedTape() {
  if (location.protocol !== 'http:') return;
  const response = await fetch(`tape${location.search}`);
  if (!response.ok) return;
  const name = decodeURIComponent(response.headers.get('x-tape-name') ?? 'tape');
  take([new File([await response.blob()], name)]);
}

async function start() {
  startTheme();
  startBar();
  startProgress();
  try {
    await loadModule();
  } catch (error) {
    fault(byId('welcome'), `this browser cannot run the viewer: ${error.message}`);
    return;
  }
  performance.mark('ready');
  document.documentElement.dataset.ready = 'yes';
  take(waitingFiles.splice(0));
  try {
    await servedTape();
  } catch (error) {
    fault(byId('welcome'), `the tape cannot be fetched: ${error.message}`);
  }
}

start();
