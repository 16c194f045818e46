"use strict";
(function () {
  const svg = document.documentElement;
  const width = Number(svg.getAttribute("data-width"));
  const frames = Array.from(svg.querySelectorAll("g.frame"), (group) => ({
    group,
    rect: group.querySelector("rect"),
    text: group.querySelector("text"),
    name: group.getAttribute("data-name"),
    from: Number(group.getAttribute("data-from")),
    to: Number(group.getAttribute("data-to")),
    depth: Number(group.getAttribute("data-depth")),
  }));
  const detail = document.getElementById("detail");
  const matched = document.getElementById("matched");
  const searchButton = document.getElementById("search");
  const resetButton = document.getElementById("reset");
  let shown = null;
  let pattern = null;

  function fits(name, room) {
    const letters = Math.floor((room - 6) / 7);
    if (name.length <= letters) return name;
    return letters < 3 ? "" : name.slice(0, letters - 2) + "..";
  }

  // frames outside of the one that is looked at are hidden, those below it as wide as it
  function look(at) {
    shown = at;
    const from = at ? at.from : 0;
    const scale = width / (at ? at.to - at.from : 1);
    for (const frame of frames) {
      const below = at && frame.depth < at.depth && frame.from <= at.from && frame.to >= at.to;
      const inside = !at || (frame.depth >= at.depth && frame.from >= at.from && frame.to <= at.to);
      frame.group.style.display = below || inside ? "" : "none";
      if (!below && !inside) continue;
      const x = below ? 0 : (frame.from - from) * scale;
      const w = below ? width : (frame.to - frame.from) * scale;
      frame.rect.setAttribute("x", x + 10);
      frame.rect.setAttribute("width", w);
      frame.text.setAttribute("x", x + 13);
      frame.text.textContent = fits(frame.name, w);
      frame.group.classList.toggle("below", Boolean(below));
    }
    resetButton.style.visibility = at ? "visible" : "hidden";
    count();
  }

  // each place counts once, however many frames above each other match; the lowest frame is the tape, no function
  function count() {
    let sum = 0;
    let end = -1;
    const hits = frames.filter((frame) => pattern && frame.depth > 0 && pattern.test(frame.name));
    frames.forEach((frame) => frame.group.classList.remove("hit"));
    hits.forEach((frame) => frame.group.classList.add("hit"));
    hits.sort((a, b) => a.from - b.from || b.to - a.to);
    const [first, last] = shown ? [shown.from, shown.to] : [0, 1];
    for (const frame of hits) {
      const from = Math.max(frame.from, end, first);
      const to = Math.min(frame.to, last);
      if (to > from) sum += to - from;
      end = Math.max(end, to);
    }
    matched.textContent = pattern ? "matched: " + ((100 * sum) / (last - first)).toFixed(1) + "%" : "";
    searchButton.textContent = pattern ? "Reset search" : "Search";
  }

  function search() {
    if (pattern) {
      pattern = null;
    } else {
      const typed = window.prompt("Functions that match (a regular expression):", "");
      if (!typed) return;
      try {
        pattern = new RegExp(typed);
      } catch (error) {
        window.alert(error.message);
        return;
      }
    }
    count();
  }

  for (const frame of frames) {
    frame.group.addEventListener("click", () => look(frame.to - frame.from >= 1 ? null : frame));
    frame.group.addEventListener("mouseover", () => {
      detail.textContent = frame.group.querySelector("title").textContent;
    });
    frame.group.addEventListener("mouseout", () => {
      detail.textContent = "";
    });
  }
  searchButton.addEventListener("click", search);
  resetButton.addEventListener("click", () => look(null));
  window.addEventListener("keydown", (event) => {
    if (event.key === "F3" || ((event.ctrlKey || event.metaKey) && event.key === "f")) {
      event.preventDefault();
      search();
    }
  });
  searchButton.style.visibility = "visible";
})();
