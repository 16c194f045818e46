#: what Four neighbours keep the CPUs busy while a program computes for 0.4 s.
#: record -a
#: load
#: helper {prog} {mode} helper
#: cause rule*=cpu comm=victim by=burner
#: innocent sleeper
import os
from shared import *

if ROLE:
    fork("sleeper", forever)
    if ON:
        for _ in range(2 * os.cpu_count()):
            fork("burner", spin, 60)
    ready()
    forever()
name("victim")
spin(0.4)
