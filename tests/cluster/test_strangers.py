"""The rendezvous among hostile or broken neighbours: who cannot prove itself is dropped and named; the check goes on if it can."""

import contextlib
import re
import time

import pytest
from conftest import CONFIG
from test_faults import ran

# A private munged beside the node's own, so that Slurm itself goes on working.
MUNGED = (
    "rm -rf /run/test-munge; mkdir -p /run/test-munge; {key}; chmod 0700 /run/test-munge; chmod 0400 /run/test-munge/key; "
    "chmod 0755 /run/test-munge; {prefix} munged --foreground --force --key-file=/run/test-munge/key --socket=/run/test-munge/socket "
    "--pid-file=/run/test-munge/pid --log-file=/run/test-munge/log --seed-file=/run/test-munge/seed >/dev/null 2>&1 </dev/null & "
    "for i in $(seq 100); do test -S /run/test-munge/socket && exit; sleep 0.1; done; exit 1"
)


FAKETIME = "$(ls /usr/lib/*/faketime/libfaketimeMT.so.1)"


@pytest.fixture
def configured_apart(cluster):
    """Gives one node a configuration of its own; puts things back."""
    with contextlib.ExitStack() as undo:

        def configure(node, text):
            file = cluster.folder / f"nodes/{node}/netcheck.toml"
            file.write_text(text)
            file.chmod(0o644)
            undo.callback(cluster.exec, node, "sh", "-c", "pkill -f '^munged .*test-munge'; rm -rf /run/test-munge", check=False)
            undo.enter_context(cluster.plugged(node, config="/run/node/netcheck.toml"))

        yield configure


def private_munged(cluster, node, key, prefix=""):
    cluster.exec(node, "sh", "-c", MUNGED.format(key=key, prefix=prefix))


@pytest.mark.parametrize("node", ["n1", "n3"])
def test_a_munged_that_is_stopped_is_named(cluster, configured_apart, node):
    configured_apart(node, CONFIG + '[peers]\nmunge_socket = "/run/nowhere/munge.socket"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive")
    assert "munge" in comment or "missing=" in comment


def test_another_munge_key_is_named(cluster, configured_apart):
    private_munged(cluster, "n3", "head -c 1024 /dev/urandom > /run/test-munge/key")
    configured_apart("n3", CONFIG + '[peers]\nmunge_socket = "/run/test-munge/socket"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive") and "missing=n3" in comment
    assert "key" in comment


@pytest.mark.parametrize("skew", ["+10m", "-10m"])
def test_a_skewed_clock_is_named(cluster, configured_apart, skew):
    private_munged(cluster, "n3", "cp /run/node/munge/munge.key /run/test-munge/key", f"env FAKETIME={skew} LD_PRELOAD={FAKETIME}")
    configured_apart("n3", CONFIG + '[peers]\nmunge_socket = "/run/test-munge/socket"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive") and "missing=n3" in comment
    assert "clock" in comment


def test_settings_that_differ_are_named_before_anything_is_measured(cluster, configured_apart):
    configured_apart("n3", CONFIG + '[check]\nop = "all_reduce"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive") and "n3" in comment and "op" in comment


GARBAGE = r"""
import socket, sys, time
end = time.monotonic() + 12
kept = []
while time.monotonic() < end:
    for port in range(860, 900):
        s = socket.socket()
        s.settimeout(0.2)
        try:
            s.connect(("n1", port))
            s.sendall({payload})
            kept.append(s)
        except OSError:
            s.close()
    kept = kept[-50:]
    time.sleep(0.02)
"""


@pytest.mark.parametrize(
    "payload",
    ['b"\\xff" * 4096', 'b"\\x00\\x00\\x00\\x40"', 'b"\\x40\\x00\\x00\\x00"', 'b"GET / HTTP/1.0\\r\\n\\r\\n"', 'b""'],
    ids=["garbage", "1GiB", "1GiB-big-endian", "http", "silent"],
)
def test_strangers_at_the_leaders_door_stop_nothing(cluster, payload):
    stranger = cluster.start("n2", "python3", "-c", GARBAGE.format(payload=payload), user="bob")
    time.sleep(0.5)
    try:
        assert ran(cluster.sbatch("--netcheck")).startswith("netcheck=pass")
    finally:
        stranger.kill()
        cluster.exec("n2", "pkill", "-u", "bob", check=False)


SQUAT = r"""
import socket, time
held = []
for port in range(860, 900):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", port)); s.listen(); held.append(s)
print("held", flush=True)
time.sleep(60)
"""


def test_a_user_cannot_squat_on_the_ports(cluster):
    done = cluster.exec("n1", "python3", "-c", SQUAT, user="bob", check=False)
    assert done.returncode != 0 and "PermissionError" in done.stderr


def test_ports_that_are_all_taken_are_named(cluster):
    squatter = cluster.start("n1", "python3", "-c", SQUAT)
    try:
        assert squatter.stdout.readline().strip() == "held"
        comment = ran(cluster.sbatch("--netcheck"))
        assert comment.startswith("netcheck=inconclusive") and "port" in comment
    finally:
        cluster.exec("n1", "pkill", "-f", "range.860", check=False)
        squatter.kill()


@pytest.mark.parametrize("address", ["127.0.1.1", None], ids=["loopback", "unknown"])
def test_a_leaders_name_that_leads_nowhere_is_named(cluster, address):
    hosts = cluster.folder / "nodes/n3/hosts"
    before = hosts.read_text()
    without = "\n".join(line for line in before.splitlines() if not re.search(r"\sn1(\s|$)", line))
    hosts.write_text(without + (f"\n{address} n1\n" if address else "\n"))
    try:
        comment = ran(cluster.sbatch("--netcheck"))
    finally:
        hosts.write_text(before)
    assert comment.startswith("netcheck=inconclusive") and "missing=n3" in comment


def test_a_probe_account_that_is_missing_is_named(cluster):
    cluster.configure(CONFIG + '[probe]\nprobe_user = "nosuchuser"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive") and "nosuchuser" in comment


@pytest.mark.parametrize("text", ["[threshold]\nmim = 1\n", "[threshold", '[threshold]\nmin = "400"\n', "\x00"], ids=repr)
def test_a_broken_configuration_checks_nothing_and_says_where(cluster, text):
    cluster.configure(text)
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive phase=start") and "netcheck.toml" in comment


def test_a_configuration_that_others_may_write_is_refused(cluster):
    cluster.configure()
    cluster.config_file.chmod(0o666)
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive phase=start") and "changed by others" in comment


def test_two_links_slow_in_different_ways_are_both_named(cluster):
    cluster.script("shape", "n2", "100mbit", "--tx")
    cluster.script("shape", "n4", "100mbit", "--rx")
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=fail")
    assert "n2(tx: " in comment and "n4(rx: " in comment


def test_all_links_slow_is_the_fabrics_fault(cluster):
    for node in ["n1", "n2", "n3", "n4"]:
        cluster.script("shape", node, "100mbit")
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=fail") and "slow=" not in comment


def test_one_slow_path_between_two_good_nodes_blames_neither(cluster):
    cluster.script("shape", "n1", "100mbit", "--tx", "--to", "n2")
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=fail")
    assert re.search(r"slow=n1>n2\(link: [0-9.]+Mbps\) ", comment), comment  # the link alone, neither node


def test_of_two_nodes_the_direction_is_named_and_the_side_left_open(cluster):
    cluster.script("shape", "n2", "100mbit", "--tx")
    job = cluster.sbatch("--netcheck", "-w", "n1,n2", nodes=2)
    comment = ran(job)
    assert comment.startswith("netcheck=fail")
    assert not re.search(r"slow=n[12]\(", comment) and "n2" in comment and "n1" in comment
