//: what A node server and its client, a request each 100 ms, and a file read (libuv's pool).
//: healthy
const http = require('http');
const fs = require('fs');
const server = http.createServer((_, res) => fs.readFile('/etc/passwd', () => res.end('answer')));
server.listen(0, '127.0.0.1', () => {
  let n = 0;
  const timer = setInterval(() => {
    http.get({ port: server.address().port, host: '127.0.0.1', agent: false }, (res) => res.resume());
    if (++n === 12) {
      clearInterval(timer);
      setTimeout(() => server.close(), 50);
    }
  }, 100);
});
