#: what A shell pipe: numbers, sorted, counted.
#: healthy
seq 1 120000 | sort -R | sort -n | uniq -c | tail -n 1 >/dev/null
seq 1 120000 | grep -c 7 >/dev/null
