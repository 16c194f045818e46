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
        seq $i $((i * 9 + 2000)) >d$((i % 9))/f$((i % 40)).txt
        git add -A && git commit -qm "change $i"
        i=$((i + 1))
    done
    git gc -q
    exit
fi
cd repo || exit 1
git log -p --stat >/dev/null
git log -S1717 --oneline >/dev/null
git grep -c 17 >/dev/null
git status --short
git blame d1/f1.txt >/dev/null
