#: what A program writes 200,000 single bytes to a file; without the cause all at once.
#: cause syscall=write object*=tiny.log
import os
from shared import *

name("logger")
f = os.open("tiny.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
if ON:
    for _ in range(200000):
        os.write(f, b"x")
else:
    os.write(f, b"x" * 200000)
spin(0.3)
