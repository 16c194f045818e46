#: what A script looks for 50 files that are not there in a directory that takes 12 ms for each.
#: needs /usr/include/fuse3/fuse.h fusermount3
#: helper /bin/sh -c 'mkdir -p share; r=0; [ {mode} = on ] && r=12; exec {slowfs} {dir}/share $r 0'
#: cause object*=/share
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do
    [ -e share/plugin-$i ] || [ -e share/other/$i.conf ] || sleep 0.008
done
