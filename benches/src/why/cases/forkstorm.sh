#: what A script starts a program 250 times for what it could do itself.
#: cause object*=/bin/true
#: cause text*=/bin/true text*=started
mode=$1
i=0
while [ $i -lt 250 ]; do
    if [ "$mode" = on ]; then /bin/true; else true; fi
    i=$((i + 1))
done
sleep 0.2
