#: what A script leaves jobs in the background that keep all CPUs busy while it computes.
#: load
#: cause rule*=cpu by=leftover
#: prepare /bin/cp /bin/dash leftover
#: innocent sleep
if [ "$1" = on ]; then
    for i in 1 2 3 4 5 6; do
        ./leftover -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' &
    done
fi
sleep 5 &
sleep=$!
i=0
while [ $i -lt 200000 ]; do i=$((i + 1)); done
kill $sleep
