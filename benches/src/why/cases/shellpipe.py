#: what Three programs in a shell's pipe; the one in the middle sleeps 20 ms for each of 30 lines.
#: run /bin/sh -c 'seq 30 | "$@" | sort -n | tail -n 1' sh {prog} {mode}
#: cause by=squeeze
#: cause comm=squeeze syscall=clock_nanosleep
#: innocent seq sort tail
from shared import *

name("squeeze")
time.sleep(0.25)
for line in sys.stdin:
    if ON:
        time.sleep(0.02)
    sys.stdout.write(line)
