"""Somebody who sends datagrams as fast as told, for 20 s. Run inside a node, by the tests alone.

  flood.py ADDRESS MEGABITS_PER_SECOND
"""

import socket
import sys
import time

SIZE = 1400

address, rate = sys.argv[1], float(sys.argv[2]) * 1e6
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("ready", flush=True)
begin, sent = time.monotonic(), 0
while (now := time.monotonic() - begin) < 20:
    while sent * SIZE * 8 < rate * now:
        try:
            to.sendto(bytes(SIZE), (address, 9))  # RFC 863: what comes there is thrown away
        except OSError:
            pass  # "refused", "no buffer": on it goes
        sent += 1
    time.sleep(0.002)
