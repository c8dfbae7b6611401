"""Somebody who sends datagrams as fast as told, for 20 s. Run inside a node, by the tests alone.

  flood.py ADDRESS MEGABITS_PER_SECOND [SEGMENT]

With SEGMENT the kernel cuts what is sent into datagrams of so many bytes, after a virtual device has counted them as one.
"""

import socket
import sys
import time

UDP_SEGMENT = 103  # linux/udp.h
HEADERS = 42  # of a datagram on the wire
SEGMENTS = 64  # the most of one call

address, rate = sys.argv[1], float(sys.argv[2]) * 1e6
segment = int(sys.argv[3]) if len(sys.argv) > 3 else 0
size = SEGMENTS * segment if segment else 1400
on_wire = size + (SEGMENTS * HEADERS if segment else HEADERS)
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if segment:
    to.setsockopt(socket.SOL_UDP, UDP_SEGMENT, segment)
print("ready", flush=True)
begin, sent = time.monotonic(), 0
while (now := time.monotonic() - begin) < 20:
    while sent * on_wire * 8 < rate * now:
        try:
            to.sendto(bytes(size), (address, 9))  # RFC 863: what comes there is thrown away
        except OSError:
            pass  # "refused", "no buffer": on it goes
        sent += 1
    time.sleep(0.002)
