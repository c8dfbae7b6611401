"""Somebody who speaks the first words of netcheck's protocol without being a peer. Run inside a node, by the tests alone.

  stranger.py door NODE FRAME…       brings each frame to whoever listens on NODE's ports, for 20 s; prints `through N` when frame
                                     N (from 0) has been brought for the first time. A frame: what is sent, in hexadecimal
  stranger.py hello KEY=VALUE…       prints a first frame whose hello the account that runs this has sealed for the probe's
  stranger.py listen                 as root: prints the first true hello that comes in on eth0

The protocol: a frame is its length in 4 bytes, little-endian, and then the greeting: NCK1, a kind (1 is a hello), the index of
the node that the sender says it is in 4 bytes, and the credential.
"""

import socket
import struct
import subprocess
import sys
import time

PORTS = range(860, 900)
HELLO = b"NCK1\x01"


def door(node, *frames):
    frames = [bytes.fromhex(frame) for frame in frames]
    print("ready", flush=True)
    through, kept = set(), []
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for number, frame in enumerate(frames):
            for port in PORTS:
                knocking = socket.socket()
                knocking.settimeout(0.2)
                try:
                    knocking.connect((node, port))
                    knocking.sendall(frame)
                except OSError:
                    knocking.close()
                    continue
                kept.append(knocking)
                if number not in through:
                    through.add(number)
                    print("through", number, flush=True)
        kept = kept[-50:]
        time.sleep(0.02)


def cbor(value):
    """RFC 8949, as much as a hello needs."""

    def head(major, count):
        for code, (limit, form) in enumerate([(24, "B"), (1 << 8, "B"), (1 << 16, ">H"), (1 << 32, ">I")]):
            if count < limit:
                return bytes([major << 5 | (count if code == 0 else 23 + code)]) + (struct.pack(form, count) if code else b"")
        raise ValueError(count)

    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    return head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())


def hello(*fields):
    """`forged=yes`: a letter in the middle of the credential is another one."""
    say = {"kind": "hello", "cluster": "netcheck", "restart": 0, "receiver": 0, "receiver_name": "n1", "nonce": bytes(16)}
    for field in fields:
        key, _, value = field.partition("=")
        say[key] = int(value) if value.isdigit() else value
    forged = say.pop("forged", None)
    command = ["munge", "--restrict-uid=netcheck"]
    token = subprocess.run(command, input=cbor(say), stdout=subprocess.PIPE, check=True).stdout.strip()
    if forged:
        middle = len(token) // 2
        token = token[:middle] + (b"A" if token[middle : middle + 1] != b"A" else b"B") + token[middle + 1 :]
    greeting = HELLO + struct.pack("<I", say["sender"]) + token
    print((struct.pack("<I", len(greeting)) + greeting).hex())


def listen():
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
    packets.bind(("eth0", 0))
    print("ready", flush=True)
    while True:
        packet = packets.recv(65536)
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            continue
        segment = packet[(packet[0] & 15) * 4 : struct.unpack(">H", packet[2:4])[0]]
        text = segment[(segment[12] >> 4) * 4 :]
        if text[4:9] == HELLO and struct.unpack("<I", text[:4])[0] == len(text) - 4:
            print(text.hex(), flush=True)
            return


{"door": door, "hello": hello, "listen": listen}[sys.argv[1]](*sys.argv[2:])
