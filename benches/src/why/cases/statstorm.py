#: what A program looks 250,000 times for a file that is not there.
#: cause syscall=access object*=no-such-file
import os
from shared import *

name("seeker")
if ON:
    for _ in range(250000):
        os.access("/usr/no-such-file", os.R_OK)
spin(0.2)
