// Stacks as a tree of frames, for the flame graphs of the page and of the viewer: where each is drawn, and in which colour.

const FRAME = 18;

/// The graph as a tree, with these times: for each frame where it begins, and its depth. Functions stand beside each other by name, or
/// the heaviest first.
function layOut(graph, times, heavyFirst = false) {
  const count = graph.parent.length;
  const children = Array.from({ length: count }, () => []);
  const roots = [];
  graph.parent.forEach((parent, at) => (parent < 0 ? roots : children[parent]).push(at));
  const name = at => graph.labels[graph.label[at]];
  const byName = (a, b) => (name(a) < name(b) ? -1 : 1);
  const order = heavyFirst ? (a, b) => times[b] - times[a] || byName(a, b) : byName;
  const total = roots.reduce((sum, at) => sum + times[at], 0);
  const [left, depth] = [new Float64Array(count), new Uint16Array(count)];
  let deepest = 0;
  const place = (list, start, level) => {
    let at = start;
    list.sort(order).forEach(child => {
      left[child] = at;
      depth[child] = level;
      deepest = Math.max(deepest, level);
      at += times[child];
    });
  };
  place(roots, 0, 0);
  // parents stand before their children
  for (let at = 0; at < count; at++) place(children[at], left[at], depth[at] + 1);
  return { children, roots, total, left, depth, deepest, name };
}

function hash(text) {
  let sum = 0;
  for (let at = 0; at < text.length; at++) sum = (sum * 31 + text.charCodeAt(at)) >>> 0;
  return sum;
}

/// Warm for functions, another hue for the kernel's and for what is not known.
function flameColor(graph, at, waits) {
  const spread = hash(graph.labels[graph.label[at]]) % 100;
  const kind = graph.kind[at];
  const hue = [waits ? 205 : 22, waits ? 235 : 350, waits ? 190 : 40, 220, 215][kind] + spread * 0.22;
  const strength = kind > 2 ? 8 : 62;
  return `hsl(${hue} ${strength}% ${isDark() ? 56 + spread * 0.1 : 66 + spread * 0.12}%)`;
}
