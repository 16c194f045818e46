// What all parts of the page use, and the viewer too: elements, figures as text, colours, the note beside the pointer.

function byId(id) {
  return document.getElementById(id);
}

/// A new element; what is given as text is only ever text.
function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/// A length of time, as reports print it.
function span(ns) {
  if (ns < 1e3) return `${ns.toFixed(0)} ns`;
  const ms = ns / 1e6;
  if (ms < 10) return `${ms.toFixed(3)} ms`;
  if (ms < 1e3) return `${ms.toFixed(1)} ms`;
  if (ms < 6e5) return `${(ms / 1e3).toFixed(2)} s`;
  if (ms < 3.6e7) return `${(ms / 6e4).toFixed(1)} min`;
  return `${(ms / 3.6e6).toFixed(1)} h`;
}

function whole(number) {
  return Math.round(number).toLocaleString('en-US');
}

/// A number on an axis.
function short(number) {
  if (number >= 1e9) return `${+(number / 1e9).toPrecision(3)}G`;
  if (number >= 1e6) return `${+(number / 1e6).toPrecision(3)}M`;
  if (number >= 1e3) return `${+(number / 1e3).toPrecision(3)}k`;
  return `${+number.toPrecision(3)}`;
}

/// The value of a variable of the style, of the theme in use.
function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const redraws = [];

/// Calls `draw` now and whenever the theme changes.
function themed(draw) {
  redraws.push(draw);
  draw();
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  redraws.forEach(draw => draw());
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function startTheme() {
  byId('theme').addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraws.forEach(draw => draw()));
  // charts on paper are light ones
  let before;
  addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    setTheme('light');
    // what is drawn keeps its pixels: made as wide as paper
    const wide = document.querySelector('main').clientWidth;
    document.documentElement.style.setProperty('--paper', String(Math.min(1, 690 / wide)));
  });
  addEventListener('afterprint', () => setTheme(before));
}

/// Shows lines of text beside the pointer; without lines it is hidden.
function tip(lines, event) {
  const note = byId('tip');
  note.hidden = !lines;
  if (!lines) return;
  note.textContent = lines.join('\n');
  const { width, height } = note.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, innerWidth - width - 8);
  const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
  note.style.left = `${Math.max(4, left)}px`;
  note.style.top = `${Math.max(4, top)}px`;
}

/// A canvas of this size in CSS pixels, ready to draw on.
function prepare(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/// Calls `draw` with the width of `place` when that changes.
function sized(place, draw) {
  let last = 0;
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth);
    if (width > 0 && width !== last) {
      last = width;
      draw(width);
    }
  }).observe(place);
}

/// Messages that a report has beside its answer, and its command line.
function notes(place, told, command) {
  (told || []).slice(0, 4).forEach(text => place.append(element('p', 'note', text)));
  if (command === undefined) return;
  const foot = element('p', 'foot');
  foot.append(element('code', '', `analyze ${command}`));
  place.append(foot);
}
