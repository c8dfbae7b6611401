"""Processes that a user's ended job has left on a check's own nodes, which know where the check listens and speak from the nodes' own
addresses: they put themselves in nobody's place."""

import contextlib
import pathlib

from actions import config, drained_by_us
from conftest import until

LEFTOVER = pathlib.Path(__file__).with_name("leftover.py").read_text()
NODES = ("n1", "n2", "n3")


@contextlib.contextmanager
def leftovers(cluster):
    """Bob's, on three nodes. Each has knocked when the block ends."""
    shared = cluster.folder / "home/bob/ports"
    cluster.exec("ctl", "sh", "-c", "rm -rf ~/ports && mkdir ~/ports", user="bob")
    addresses = {node: cluster.exec("ctl", "getent", "hosts", node).stdout.split()[0] for node in NODES}
    bobs = [cluster.start(node, "python3", "-c", LEFTOVER, addresses[node], "/run/cluster/home/bob/ports", user="bob") for node in NODES]
    try:
        for bob in bobs:
            assert bob.stdout.readline() == "ready\n"
        yield
        until(lambda: all(bob.poll() is not None for bob in bobs), "the end of what was left behind", cluster)
        said = [bob.communicate(timeout=30)[0].split() for bob in bobs]
        assert all(word == "knocked" and int(times) > 0 for word, times in said), said
    finally:
        for node in NODES:
            cluster.exec(node, "pkill", "-u", "bob", check=False)
        assert shared.exists()


def test_what_a_job_left_behind_speaks_for_no_check(cluster):
    cluster.configure(config(action="cancel", drain=True))
    with leftovers(cluster):
        jobs = []
        for _ in range(3):
            jobs.append(cluster.sbatch("--netcheck", "-w", ",".join(NODES), nodes=3))
            assert jobs[-1].wait() == "COMPLETED"
    for job in jobs:
        assert job.comment().startswith("netcheck=pass "), job.comment()
    assert drained_by_us(cluster) == set()
