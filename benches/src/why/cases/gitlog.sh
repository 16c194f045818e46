#: what git searches and lists a repository of 120 commits.
#: healthy
#: needs git
#: prepare {prog} on prepare
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
if [ "$2" = prepare ]; then
    git init -q repo && cd repo || exit 1
    git config user.name nobody && git config user.email nobody@example.org
    i=0
    while [ $i -lt 120 ]; do
        mkdir -p d$((i % 9))
        seq $i $((i * 3 + 200)) >d$((i % 9))/f$((i % 40)).txt
        git add -A && git commit -qm "change $i"
        i=$((i + 1))
    done
    git gc -q
    exit
fi
cd repo || exit 1
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do git log -p --stat >/dev/null; git grep -c 17 >/dev/null; git status --short; git blame d1/f1.txt >/dev/null; done
