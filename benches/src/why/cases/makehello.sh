#: what make compiles and links three files of 90 functions each.
#: healthy
#: needs make cc
#: prepare {prog} on prepare
if [ "$2" = prepare ]; then
    for i in 1 2 3; do
        echo '#include <stdio.h>'
        for j in $(seq 90); do echo "int f${i}_$j(int n) { return n > $j ? printf(\"%d\", n) : n * $j + $i; }"; done
        echo "int f$i(int n) { return f${i}_1(n) + f${i}_90(n); }"
    done >all.c
    for i in 1 2 3; do { echo '#include <stdio.h>'; grep "f$i[_(]" all.c; } >f$i.c; done
    echo 'int f1(int), f2(int), f3(int); int main(void) { return f1(f2(f3(1))) > 9; }' >main.c
    printf 'CFLAGS = -O2\nhello: main.o f1.o f2.o f3.o\n\tcc -o $@ $^\n' >Makefile
    make -s
    exit
fi
rm -f ./*.o hello
exec make -s
