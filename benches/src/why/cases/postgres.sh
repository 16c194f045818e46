#: what A PostgreSQL server starts, answers a few hundred queries, rests for a second and stops.
#: healthy
#: needs postgres initdb runuser
#: prepare {prog} on prepare
umask 022
if [ "$2" = prepare ]; then
    d=$PWD
    while [ "$d" != / ]; do chmod a+x "$d"; d=$(dirname "$d"); done
    mkdir data && chown nobody data
    cd data || exit 1
    exec runuser -u nobody -- initdb -D . -U nobody --no-sync >/dev/null
fi
cd data || exit 1
runuser -u nobody -- postgres -D . -k "$PWD" -c listen_addresses= -c fsync=off &
server=$!
until psql -h "$PWD" -U nobody -c 'select 1' postgres >/dev/null 2>&1; do sleep 0.1; done
for i in 1 2 3; do echo 'select count(*) from pg_class;'; done | psql -h "$PWD" -U nobody postgres >/dev/null
sleep 1
kill -INT $(head -1 postmaster.pid)
wait $server
