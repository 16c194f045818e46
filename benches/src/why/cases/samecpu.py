#: what A neighbour computes on the one CPU that the program may use; another is busy elsewhere.
#: record -a
#: load
#: helper {prog} {mode} helper
#: cause rule*=cpu comm=victim by=rival
#: innocent elsewhere
import os
from shared import *

cpus = sorted(os.sched_getaffinity(0))
if ROLE:

    def on_cpu(cpu):
        os.sched_setaffinity(0, [cpu])
        spin(60)

    if ON:
        fork("rival", on_cpu, cpus[0])
    fork("elsewhere", on_cpu, cpus[-1])
    ready()
    forever()
name("victim")
os.sched_setaffinity(0, [cpus[0]])
spin(0.5)
