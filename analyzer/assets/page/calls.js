// Single calls: the slowest, and the first that failed.

function callTable(calls) {
  const panel = element('div', 'panel');
  panel.append(element('h3', '', calls.title));
  byId('call-view').append(panel);
  const text = column => at => calls.texts[calls[column][at]];
  const rows = calls.at.map((_, at) => at);
  const length = at => calls.ns[at] === null ? '–' : `${calls.least[at] ? '>=' : ''}${span(calls.ns[at])}`;
  const show = rowTable(panel, [
    { title: 'At', number: true, value: at => calls.at[at], text: at => clock(calls.at[at]) },
    { title: 'Duration', number: true, value: at => calls.ns[at], text: length },
    { title: 'Thread', value: at => `${calls.texts[calls.comm[at]]} ${calls.tid[at]}` },
    { title: 'Call', value: text('name') },
    { title: 'Result', value: text('ret') },
    { title: 'Arguments', value: text('args') },
  ], () => rows.filter(at => isChosen(calls.at[at], calls.at[at] + (calls.ns[at] || 0))), 25);
  notes(panel, calls.told, calls.command);
  following(show);
}

function drawSingleCalls() {
  if (!data.rows) return;
  callTable(data.rows.slow);
  callTable(data.rows.failed);
}
