#: what An nginx with two workers answers a request each 100 ms.
#: healthy
#: needs nginx curl
printf 'daemon off; worker_processes 2; pid nginx.pid; error_log errors;\nevents {}\nhttp { access_log off; server { listen 127.0.0.1:7433; } }\n' >nginx.conf
nginx -p "$PWD" -c nginx.conf &
server=$!
sleep 0.3
for i in 1 2 3 4 5 6 7 8; do curl -s -o /dev/null http://127.0.0.1:7433/; sleep 0.1; done
kill -QUIT $server
wait $server
