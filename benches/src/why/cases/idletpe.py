#: what A ThreadPoolExecutor of four, with a task each 100 ms.
#: healthy
from concurrent.futures import ThreadPoolExecutor
from shared import *

with ThreadPoolExecutor(4) as pool:
    for _ in range(12):
        pool.submit(spin, 0.004).result()
        time.sleep(0.1)
