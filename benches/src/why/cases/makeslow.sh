#: what make compiles four files; the compiler looks for each header in a slow directory first.
#: needs /usr/include/fuse3/fuse.h fusermount3 make cc
#: helper /bin/sh -c 'mkdir -p inc; r=0; [ {mode} = on ] && r=12; exec {slowfs} {dir}/inc $r 0'
#: prepare {prog} on prepare
#: cause object*=/inc
if [ "$2" = prepare ]; then
    mkdir -p own
    for h in 1 2 3 4 5 6 7 8; do echo "int h$h;" >own/h$h.h; done
    for c in 1 2 3 4; do
        for h in 1 2 3 4 5 6 7 8; do echo "#include <h$h.h>"; done >u$c.c
        echo "int f$c(void) { return $c; }" >>u$c.c
    done
    printf 'all: u1.o u2.o u3.o u4.o\n%%.o: %%.c\n\tcc -Iinc -Iown -c $< -o $@\n' >Makefile
    exit
fi
rm -f u?.o
exec make -s
