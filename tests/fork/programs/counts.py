# SPDX-License-Identifier: Apache-2.0
# Objects, threads, and processes that answer by pipes: see programs.bats.
import multiprocessing
import threading
import time
import zlib

kept = {i: "text %d" % i for i in range(20000)}


def total(_=None):
    return zlib.crc32("".join(kept.values()).encode())


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    first = total()
    n = 0
    with multiprocessing.Pool(2) as pool:
        threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(int, 1)], daemon=True).start()
        while True:
            for found in [total(), *pool.map(total, range(4))]:
                if found != first:
                    open("/bad", "w").write("%d in place of %d" % (found, first))
            n += 1
            with open("/n", "w") as f:
                print(n, file=f)
            time.sleep(0.01)
