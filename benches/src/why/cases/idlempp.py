#: what A multiprocessing.Pool of three, with a task each 100 ms.
#: healthy
import multiprocessing
from shared import *

if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        for _ in range(12):
            pool.apply(spin, (0.004,))
            time.sleep(0.1)
        pool.close()
        pool.join()
