"""A probe whose account has been taken over: what it reports is believed only as far as its own samples go.

On the job's first node the supervisor is made to start another program in the probe's place, by a library that tells it another name
for its own. That program runs the true probe and changes what it reports.
"""

import subprocess

import pytest
from actions import config, reason, runs
from conftest import NODES

TREE = "/run/cluster/root"

SWAP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/types.h>
ssize_t readlink(const char* path, char* buffer, size_t size) {
  ssize_t (*next)(const char*, char*, size_t) = (ssize_t(*)(const char*, char*, size_t))dlsym(RTLD_NEXT, "readlink");
  static const char other[] = "/run/cluster/root/sbin/taken-over";
  if (strcmp(path, "/proc/self/exe") != 0 || size < sizeof other) return next(path, buffer, size);
  memcpy(buffer, other, sizeof other - 1);
  return sizeof other - 1;
}
"""

# Descriptor 4 takes the report (session/probe.h).
TAKEN_OVER = """#!/usr/bin/python3
import os, re, subprocess
report = os.dup(4)
read, write = os.pipe()
os.dup2(write, 4, inheritable=True)
os.close(write)
probe = subprocess.Popen(["/run/cluster/root/sbin/netcheck", "probe"], close_fds=False)
os.close(4)
text = open(read).read()
probe.wait()
def say(text):
    text = text if isinstance(text, bytes) else text.encode()
    while text:
        text = text[os.write(report, text) :]
LIE
"""

LIES = {
    "a GiB": ("for _ in range(1024): say(bytes(1 << 20))", "larger than 16 MiB"),
    "NaN": (r"""say(re.sub(r'("done": ?\[)[0-9]+', r'\1NaN', text))""", "it is no JSON"),
    "nodes of others": ("""say(text.replace('"n2"', '"n4"'))""", "the report's nodes are not this job's"),
    "a fail as a pass": ("""say(re.sub('("claimed": ?)"fail"', r'\\1"pass"', text))""", "its samples do not support 'pass'"),
}


@pytest.fixture
def takes_over(slow, tmp_path):
    """Gives what makes n1's probe tell a lie."""
    source = tmp_path / "swap.c"
    source.write_text(SWAP)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", slow.folder / "root/swap.so", source], check=True)

    def lie(statement):
        for name, text in (
            ("sbin/taken-over", TAKEN_OVER.replace("LIE", statement)),
            ("swapped", f'#!/bin/sh\nLD_PRELOAD={TREE}/swap.so exec {TREE}/sbin/netcheck "$@"\n'),
        ):
            (slow.folder / "root" / name).write_text(text)
            (slow.folder / "root" / name).chmod(0o755)
        return slow.plugged("n1", program=f"{TREE}/swapped")

    yield lie
    for name in ("sbin/taken-over", "swapped", "swap.so"):
        (slow.folder / "root" / name).unlink(missing_ok=True)


def test_the_stand_in_is_believed_while_it_does_not_lie(slow, takes_over):
    """Else the tests below would pass for another reason."""
    with takes_over("say(text)"):
        job = slow.sbatch("--netcheck", nodes=3)
        assert job.wait() == "COMPLETED"
    assert job.comment().startswith("netcheck=fail ")


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_rejected_and_nothing_follows(slow, takes_over, lie):
    statement, told = LIES[lie]
    slow.configure(config(action="cancel", drain=True))
    with takes_over(statement):
        job = slow.sbatch("--netcheck", nodes=3)
        assert job.wait() == "COMPLETED"
    assert job.comment().startswith("netcheck=inconclusive ") and "report rejected" in job.comment(), job.comment()
    assert told in job.comment() and "slow=" not in job.comment() and "action=" not in job.comment(), job.comment()
    assert len(runs(job)) == 1
    assert all(reason(slow, node) == "idle none" for node in NODES)
