# A deterministic run of the programs people trace most. Run with a clean environment in an empty directory.
set -e
mkdir tree tree/sub "tree/a b" tree/empty
printf 'int puts(const char *);\nint main(void) { puts("hello"); return 0; }\n' > tree/main.c
printf 'plain\n' > tree/sub/plain.txt
printf 'odd name\n' > "tree/a b/$(printf 'n\303\266 "quote"\\slash\ttab')"
ln -s sub/plain.txt tree/link
ln -s nowhere tree/dangling

git init -q repo
git -C repo config core.preloadIndex false
git -C repo config index.threads 1
git -C repo config pack.threads 1
git -C repo config gc.auto 0
git -C repo config maintenance.auto false
cp tree/main.c repo/main.c
# as old as the index can tell: else git compares contents again, or not, as the clock will have it
touch -d 2020-01-01T00:00:00 repo/main.c
git -C repo add main.c
git -C repo commit -q -m first
git -C repo status --short
git -C repo log --oneline

gcc -O1 -c -o tree/main.o tree/main.c
gcc -o tree/hello tree/main.o
tree/hello
/usr/bin/python3 -S -E -B -c 'import os
for name in sorted(os.listdir("tree")):
    os.stat("tree/" + name, follow_symlinks=False)
try:
    open("tree/no such file")
except FileNotFoundError:
    print("none")'

find tree -type f -size +0
find tree -name '*.txt' -exec cat {} +
tar cf tree.tar tree
tar tf tree.tar
mkdir out
tar xf tree.tar -C out
rm -r out/tree/sub
mv out/tree/main.c out/renamed.c
ls -l out
cat no-such-file || true
