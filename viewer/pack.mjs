// Packs the viewer into one file: `node pack.mjs MODULE PAGE`. MODULE is analyze as WebAssembly; its gzip is in the page as base64.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const [module, page] = process.argv.slice(2);
/// The most that the module and the page may have, bytes.
const [MOST_MODULE, MOST_PAGE] = [3 * 1024 * 1024, 5 * 1024 * 1024];

const text = (...path) => readFileSync(join(here, ...path), 'utf8');
const assets = name => text('..', 'analyzer', 'assets', 'page', name);

/// Modules one behind the other: what they import stands before them, under the same name.
function joined(names) {
  const seen = new Map();
  return names.map(name => {
    const source = text('worker', name).replace(/^import [^;]*;\n/gm, '').replace(/^export /gm, '');
    for (const [, declared] of source.matchAll(/^(?:async )?(?:function|class|const|let) ([A-Za-z_]\w*)/gm)) {
      if (seen.has(declared)) throw new Error(`${declared} is in ${seen.get(declared)} and ${name}`);
      seen.set(declared, name);
    }
    return source;
  }).join('\n');
}

const worker = `'use strict';\n${joined(['files.js', 'wasi.js', 'run.js', 'sinks.js', 'lanes.js', 'main.js'])}`;
const scripts = [
  ...['draw.js', 'tables.js', 'stacks.js'].map(assets),
  ...['words.js', 'session.js', 'views.js', 'parts.js', 'report.js', 'overview.js', 'top.js', 'console.js', 'calls.js', 'flames.js', 'time.js', 'main.js']
    .map(name => text('page', name)),
].join('\n');
const script = `(() => {\n'use strict';\n${scripts}\n})();\n`;
const style = `${assets('style.css')}\n${text('viewer.css')}`;
const packed = gzipSync(readFileSync(module), { level: 9 });
const version = /^version = "([^"]+)"/m.exec(text('..', 'Cargo.toml'))[1];

for (const source of [worker, script]) {
  if (/<\/script|<!--/i.test(source)) throw new Error('a script would end its element');
}
const sum = source => `'sha256-${createHash('sha256').update(source).digest('base64')}'`;
const policy = [
  "default-src 'none'",
  `script-src ${sum(script)} 'wasm-unsafe-eval'`,
  `style-src ${sum(style)}`,
  'worker-src blob:',
  // `analyze open` serves the page with 'self' here: the tape comes from it
  "connect-src 'none'",
  // an icon that is nothing, so that none is asked for
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types systape',
].join('; ');

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="systape ${version}">
<title>systape</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
${text('index.html').replace('VERSION', version)}<script type="text/plain" id="worker">${worker}</script>
<script type="text/plain" id="module">${packed.toString('base64')}</script>
<script>${script}</script>
</body>
</html>
`;
writeFileSync(page, html);
const mib = bytes => `${(bytes / 2 ** 20).toFixed(2)} MiB`;
console.log(`viewer: module ${mib(readFileSync(module).length)}, ${mib(packed.length)} packed; page ${mib(html.length)}: ${page}`);
if (packed.length > MOST_MODULE) throw new Error(`the packed module is larger than ${mib(MOST_MODULE)}`);
if (html.length > MOST_PAGE) throw new Error(`the page is larger than ${mib(MOST_PAGE)}`);
