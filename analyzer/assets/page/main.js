// Starts all parts. What a part has nothing to show for stays hidden.

startTheme();
document.querySelectorAll('section.scripted').forEach(section => section.hidden = false);
byId('theme').hidden = false;
startBrush();
enhanceAll();
drawThreads();
drawCalls();
drawHeats();
callSums();
drawPath();
drawFlames();
drawTree();
drawSingleCalls();
document.querySelectorAll('section.scripted').forEach(section => {
  const empty = !section.querySelector('.chart, .panel, .note');
  section.hidden = empty;
  const link = document.querySelector(`#bar a[href="#${section.id}"]`);
  if (link) link.hidden = empty;
});
performance.mark('ready');
document.documentElement.dataset.ready = 'yes';
