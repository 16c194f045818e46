#: what A script runs three tools; one of them waits 0.7 s.
#: prepare /bin/cp /bin/sleep slowtool
#: cause comm=slowtool syscall=clock_nanosleep|nanosleep
#: cause by=slowtool
#: cause object*=slowtool syscall=wait4|waitid
#: innocent cat
i=0
while [ $i -lt 20 ]; do cat /etc/passwd >copy.$i; i=$((i + 1)); done
sort copy.* >sorted
if [ "$1" = on ]; then ./slowtool 0.7; else ./slowtool 0.01; fi
sleep 0.3
