// The chosen stretch of time, which all parts of the page follow. It begins and ends between slices, so that sums of slices are exact.

const range = { from: data.from, to: data.to, chosen: false };
const followers = [];

/// Calls `follow` now and whenever the choice changes.
function following(follow) {
  followers.push(follow);
  follow(range);
}

/// The slices of the choice: first, and behind the last.
function chosenSlices() {
  const first = Math.floor((range.from - data.from) / data.width + 1e-9);
  const end = Math.ceil((range.to - data.from) / data.width - 1e-9);
  return [Math.max(0, first), Math.min(data.slices, Math.max(end, first + 1))];
}

function choose(from, to) {
  const slice = time => (time - data.from) / data.width;
  const first = Math.max(0, Math.floor(slice(Math.min(from, to)) + 1e-9));
  const end = Math.min(data.slices, Math.max(first + 1, Math.ceil(slice(Math.max(from, to)) - 1e-9)));
  range.from = data.from + first * data.width;
  range.to = Math.min(data.to, data.from + end * data.width);
  range.chosen = first > 0 || range.to < data.to;
  if (range.to <= range.from) return chooseAll();
  tell();
}

function chooseAll() {
  Object.assign(range, { from: data.from, to: data.to, chosen: false });
  tell();
}

function tell() {
  tip();
  byId('range').hidden = !range.chosen;
  byId('range-text').textContent = `${clock(range.from)} – ${clock(range.to)} (${span(range.to - range.from)})`;
  followers.forEach(follow => follow(range));
}

/// Whether something at this time, or from `from` to `to`, touches the choice.
function isChosen(from, to) {
  return !range.chosen || ((to ?? from) >= range.from && from < range.to);
}

/// `--time` of the choice, or of another time, for command lines.
function timeOption(from = range.from, to = range.to) {
  if (!range.chosen) return '';
  const seconds = ns => (ns / 1e9).toFixed(9).replace(/0+$/, '').replace(/\.$/, '');
  return ` --time ${seconds(from)},${seconds(to)}`;
}

function startBrush() {
  byId('range-all').addEventListener('click', chooseAll);
  addEventListener('keydown', event => {
    if (event.key === 'Escape' && range.chosen) chooseAll();
  });
  document.querySelectorAll('button.when').forEach(button => {
    button.addEventListener('click', () => {
      choose(Number(button.dataset.from), Number(button.dataset.to) + 1);
      byId('time').scrollIntoView({ block: 'start' });
    });
  });
  following(() => {
    document.querySelectorAll('.findings li').forEach(finding => {
      const when = finding.querySelector('button.when');
      const inside = !when || isChosen(Number(when.dataset.from), Number(when.dataset.to));
      finding.classList.toggle('outside', !inside);
    });
  });
}

/// Lets a drag over `place` choose time; `timeAt` is the time at a distance from its left edge.
function brushable(place, timeAt) {
  let start = null;
  const box = element('div', 'select');
  box.hidden = true;
  place.append(box);
  const at = event => event.clientX - place.getBoundingClientRect().left;
  place.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    start = at(event);
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener('pointermove', event => {
    if (start === null) return;
    const now = at(event);
    box.hidden = Math.abs(now - start) < 4;
    box.style.left = `${Math.min(start, now)}px`;
    box.style.width = `${Math.abs(now - start)}px`;
  });
  const end = event => {
    if (start === null) return;
    const [from, to] = [start, at(event)];
    start = null;
    box.hidden = true;
    if (event.type === 'pointerup' && Math.abs(to - from) >= 4) choose(timeAt(from), timeAt(to));
  };
  place.addEventListener('pointerup', end);
  place.addEventListener('pointercancel', end);
  place.addEventListener('dblclick', chooseAll);
}
