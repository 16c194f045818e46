#: what The code sleeps 20 ms before each of 25 pieces of work.
#: cause-budget syscall*=nanosleep
#: cause syscall=clock_nanosleep|nanosleep comm=app
#: budget 0.50 syscall*=nanosleep
from shared import *

name("app")
for _ in range(25):
    if ON:
        time.sleep(0.02)
    spin(0.012)
