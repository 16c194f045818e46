#: what A redis server rests, with a request each 100 ms.
#: healthy
#: needs redis-check-rdb redis-cli
# Debian has the server under this name in a package that starts none
ln -sf "$(command -v redis-check-rdb)" redis-server
./redis-server --port 0 --unixsocket ./redis.sock --save '' --appendonly no >/dev/null &
server=$!
until redis-cli -s ./redis.sock ping >/dev/null 2>&1; do sleep 0.05; done
for i in 1 2 3 4 5 6 7 8 9 10; do redis-cli -s ./redis.sock set key $i >/dev/null; sleep 0.1; done
redis-cli -s ./redis.sock shutdown nosave
wait $server
