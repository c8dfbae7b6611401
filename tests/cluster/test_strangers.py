"""The rendezvous among hostile or broken neighbours: who cannot prove itself is dropped and named; the check goes on if it can."""

import contextlib
import pathlib
import re

import pytest
from actions import blamed
from conftest import CONFIG
from test_faults import late_program, ran

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


# A late node is waited for however busy the machine is.
PATIENT = CONFIG + '[check]\nrendezvous = "6s"\n'

STRANGER = pathlib.Path(__file__).with_name("stranger.py").read_text()


@contextlib.contextmanager
def at_the_door(cluster, node, *frames, of="n1"):
    """Somebody on `node` who brings frames to the leader's door on `of` over and over. Each has come through when the block ends."""
    bob = cluster.start(node, "python3", "-c", STRANGER, "door", of, *(frame.hex() for frame in frames), user="bob")
    try:
        assert bob.stdout.readline() == "ready\n"
        yield
    finally:
        cluster.exec(node, "pkill", "-u", "bob", check=False)
        said = bob.communicate(timeout=30)[0].splitlines()
    assert set(said) == {f"through {number}" for number in range(len(frames))}


def test_strangers_at_the_leaders_door_stop_nothing(cluster):
    garbage, lengths, http, silence = b"\xff" * 4096, [b"\0\0\0\x40", b"\x40\0\0\0"], b"GET / HTTP/1.0\r\n\r\n", b""
    cluster.configure(PATIENT)
    with cluster.plugged("n3", program=late_program(cluster, 1)):  # so long is the door open
        with at_the_door(cluster, "n2", garbage, *lengths, http, silence):
            job = cluster.sbatch("--netcheck")
            assert ran(job).startswith("netcheck=pass")
    told = cluster.said(job, "n1")
    for length in ["4294967295", "1073741824", "542393671"]:  # of garbage, 1 GiB (0x40000000) and "GET "
        assert f"10.110.0.2: it announced a frame of {length} bytes" in told


# Who seals a hello of n3 to n1, what is untrue in it besides, and what n1 says of it.
IMPOSTURES = [
    ("bob", [], r"it is sealed by uid \d+, not by the probe's account"),
    ("netcheck", ["forged=yes"], r"the two nodes have different munge keys, or it is forged"),
    ("netcheck", ["receiver=3", "receiver_name=n4"], r"it is meant for n4, this is n1"),
    ("netcheck", ["job=4000000"], r"it is of cluster netcheck job 4000000 "),
    ("netcheck", ["cluster=other"], r"it is of cluster other job "),
    ("netcheck", ["sender_name=n2"], r"its sender n2 \(node 2\) is not in this job's node list"),
]


def test_a_hello_that_is_not_its_nodes_own_is_dropped_and_named(cluster):
    """Bob on n2 would be n3 to the leader while the true n3 is late."""
    cluster.configure(PATIENT)
    with cluster.plugged("n3", program=late_program(cluster, 2)):
        job = cluster.sbatch("--netcheck", "--hold")
        hello = ["hello", f"job={job.number}", "sender=2", "sender_name=n3"]
        frames = [
            # Where no check runs: what else its account runs there is ended with it.
            cluster.exec("ctl", "python3", "-c", STRANGER, *hello, *lies, user=user).stdout
            for user, lies, _ in IMPOSTURES
        ]
        with at_the_door(cluster, "n2", *map(bytes.fromhex, frames)):
            cluster.exec("ctl", "scontrol", "release", job.number)
            assert ran(job).startswith("netcheck=pass")
    for _, _, told in IMPOSTURES:
        assert re.search(r"10\.110\.0\.2 \(says it is n3\): .*" + told, cluster.said(job, "n1")), cluster.said(job, "n1")


def test_a_hello_replayed_to_another_node_is_dropped_and_named(cluster):
    """Bytes off the wire: n1's munged would know them again, n2's has never seen them."""
    thief = cluster.start("n1", "python3", "-c", STRANGER, "listen")
    try:
        assert thief.stdout.readline() == "ready\n"
        first = cluster.sbatch("--netcheck")
        assert ran(first).startswith("netcheck=pass")
        frame = bytes.fromhex(thief.stdout.readline())
    finally:
        thief.kill()
    cluster.configure(PATIENT)
    with cluster.plugged("n4", program=late_program(cluster, 1)), at_the_door(cluster, "n3", frame, of="n2"):
        second = cluster.sbatch("--netcheck", "-w", "n2,n4", nodes=2)
        assert ran(second).startswith("netcheck=pass")
    told = cluster.said(second, "n2")
    # Stolen from whichever node came first; as an index, its place may be one of the second job's too.
    assert re.search(rf"10\.110\.0\.3( \(says it is n4\))?: accept a hello: it is of cluster netcheck job {first.number} ", told)


def test_a_probe_of_another_account_is_missing(cluster, configured_apart):
    configured_apart("n3", CONFIG + '[probe]\nprobe_user = "bob"\n')
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=inconclusive") and "missing=n3" in comment
    assert "account" in comment


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
    comment = ran(blamed(cluster, lambda: cluster.sbatch("--netcheck"), want=r" slow=.*n2\(.*n4\("))
    assert comment.startswith("netcheck=fail")
    assert "n2(tx: " in comment and "n4(rx: " in comment


def test_all_links_slow_is_the_fabrics_fault(cluster):
    for node in ["n1", "n2", "n3", "n4"]:
        cluster.script("shape", node, "100mbit")
    comment = ran(cluster.sbatch("--netcheck"))
    assert comment.startswith("netcheck=fail") and "slow=" not in comment


def test_one_slow_path_between_two_good_nodes_blames_neither(cluster):
    cluster.script("shape", "n1", "100mbit", "--tx", "--to", "n2")
    comment = ran(blamed(cluster, lambda: cluster.sbatch("--netcheck"), want=" slow="))
    assert comment.startswith("netcheck=fail")
    assert re.search(r"slow=n1>n2\(link: [0-9.]+Mbps\) ", comment), comment  # the link alone, neither node


def test_of_two_nodes_the_direction_is_named_and_the_side_left_open(cluster):
    cluster.script("shape", "n2", "100mbit", "--tx")
    job = cluster.sbatch("--netcheck", "-w", "n1,n2", nodes=2)
    comment = ran(job)
    assert comment.startswith("netcheck=fail")
    assert not re.search(r"slow=n[12]\(", comment) and "n2" in comment and "n1" in comment
