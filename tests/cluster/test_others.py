"""A healthy node into whose link somebody else sends while it is measured: nobody may be named for it, or drained."""

import contextlib
import pathlib

import pytest
from conftest import CHECK, NODES, SPARE, until

DRAINS = '[threshold]\nmin = "80Mbps"\n[action]\naction = "requeue"\ndrain = true\nmax_actions_per_hour = 0\n'
FLOOD = pathlib.Path(__file__).with_name("flood.py").read_text()


@contextlib.contextmanager
def flood(cluster, target, megabits, of=SPARE, segment=()):
    """Bob has a node of his own beside the job, or sits on the login node, whose link is wider."""
    address = cluster.exec("ctl", "getent", "hosts", target).stdout.split()[0]
    bob = cluster.start(of, "python3", "-c", FLOOD, address, str(megabits), *segment, user="bob")
    try:
        assert bob.stdout.readline() == "ready\n"
        yield
    finally:
        cluster.exec(of, "pkill", "-u", "bob", check=False)
        bob.communicate(timeout=30)


@pytest.mark.parametrize(
    "of, megabits, segment",
    [(SPARE, 50, ()), (SPARE, 95, ()), ("ctl", 115, ()), ("ctl", 300, ()), ("ctl", 115, ("1",))],  # "1": datagrams of one byte
)
def test_a_node_that_somebody_sends_to_is_not_named(cluster, of, megabits, segment):
    cluster.configure(DRAINS)
    for node in [*NODES, SPARE]:
        cluster.script("shape", node, "100mbit")
    with flood(cluster, "n3", megabits, of, segment):
        nobody_is_named(cluster)


@pytest.mark.parametrize("segment", [(), ("1",)], ids=["large", "of_one_byte"])
def test_a_node_from_which_somebody_sends_is_not_named(cluster, segment):
    cluster.configure(DRAINS)
    for node in [*NODES, SPARE]:
        cluster.script("shape", node, "100mbit")
    with flood(cluster, SPARE, 60, "n3", segment):  # what an ended job has left there
        nobody_is_named(cluster)


def nobody_is_named(cluster):
    job = cluster.sbatch("--netcheck", nodes=4)
    assert job.wait() == "COMPLETED"
    until(lambda: not cluster.processes("n3", CHECK), "the end of the check", cluster)
    comment = job.comment()
    assert comment and "netcheck=fail" not in comment and " drain=" not in comment, comment
    # On a busy machine a process may have been silent, or kept from running for longer than others' traffic explains.
    assert "n3's devices carried other traffic" in comment or "process" in comment, comment
