// The page's data, and times of its tape.

const data = JSON.parse(document.getElementById('data').textContent);

/// A point in time, s since the tape's start.
function clock(ns) {
  return `${(ns / 1e9).toFixed(data.to - data.from < 1e9 ? 6 : 3)} s`;
}
