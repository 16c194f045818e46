#: what make compiles and links three files.
#: healthy
#: needs make cc
#: prepare {prog} on prepare
if [ "$2" = prepare ]; then
    for i in 1 2 3; do echo "#include <stdio.h>
int f$i(int n) { return printf(\"%d\", n); }" >f$i.c; done
    echo 'int f1(int), f2(int), f3(int); int main(void) { return f1(f2(f3(1))) > 9; }' >main.c
    printf 'hello: main.o f1.o f2.o f3.o\n\tcc -o $@ $^\n' >Makefile
    make -s
    exit
fi
for i in 1 2 3; do rm -f ./*.o hello; make -s; done
rm -f ./*.o hello
exec make -s
