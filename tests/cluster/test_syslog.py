"""What the syslog of a job's first node is told: one line for each action, and one where a brake held."""

import contextlib
import re
import socket
import threading

import pytest
from actions import blamed, config, narrow_trunk, reason, runs

# The nodes have the machine's /dev, which nobody changes for a test: a node's own in front of it, the same but for the log.
OWN_DEV = """
mkdir -p /run/dev /run/dev.own
mount --rbind /dev /run/dev
mount -t tmpfs -o mode=0755 tmpfs /run/dev.own
for entry in /run/dev/*; do ln -s "$entry" "/run/dev.own/${entry##*/}"; done
ln -sfn /run/node/syslog /run/dev.own/log
mount --move /run/dev.own /dev
"""


class Syslog:
    """Stands where a node's syslogd would: keeps what it is told."""

    def __init__(self, cluster, node):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = cluster.folder / f"nodes/{node}/syslog"
        path.unlink(missing_ok=True)
        self.socket.bind(str(path))
        self.lines = []
        cluster.exec(node, "sh", "-ec", OWN_DEV)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError):
            while line := self.socket.recv(8192):
                self.lines.append(line.decode())

    def of(self, job):
        """Without priority and pid. Slurm's own lines are none of ours."""
        told = [re.fullmatch(r"<\d+>netcheck\[\d+\]: (.*)", line) for line in self.lines]
        return [line[1] for line in told if line and re.search(rf"\bjob[= ]{job.number}\b", line[1])]


@pytest.fixture(scope="module")
def syslog(running):
    """Of n1 and n2, by name."""
    logs = {node: Syslog(running, node) for node in ("n1", "n2")}
    yield logs
    for node, log in logs.items():
        running.exec(node, "sh", "-c", "umount -l /dev && umount -lR /run/dev")
        log.socket.close()


def test_each_action_is_one_line(slow, syslog):
    slow.configure(config(action="hold", drain=True))
    job = blamed(slow, lambda: slow.sbatch("--netcheck", nodes=3), want=" action=hold drain=n3 ")
    assert [line.split()[0] for line in syslog["n1"].of(job)] == ["action=drain", "action=hold"]
    drain, hold = syslog["n1"].of(job)
    why = rf"netcheck: job {job.number} measured n3\(tx: [0-9.]+Mbps\)"
    assert re.fullmatch(f'action=drain nodes=n3 job={job.number} reason="{why}"', drain)
    assert hold.startswith(f'action=hold job={job.number} nodes=n[1-3] line="netcheck=fail ')
    assert syslog["n2"].of(job) == []


def test_a_narrow_trunk_costs_no_node_and_no_requeue(cluster, syslog):
    """A bad day: whoever meets across it is slow, and nobody is to blame. n2 and n3 are on one side, n4 and n5 on the other."""
    cluster.configure(config(action="requeue", requeue_fallback="annotate", drain=True))
    with narrow_trunk(cluster, "150mbit"):
        across = "brake=(oversubscribed|fabric-wide)"
        job = blamed(cluster, lambda: cluster.sbatch("--netcheck", "-p", "main", "-x", "n1", nodes=4), want=across)
        assert job.wait() == "COMPLETED"
    assert len(runs(job)) == 1
    comment = job.comment()
    assert comment.startswith("netcheck=fail ") and "slow=" not in comment, comment
    assert re.search(f" action=annotate wanted=requeue {across}$", comment), comment
    assert [line.partition(":")[0] for line in syslog["n2"].of(job)] == ["a brake held"]
    assert all(reason(cluster, node) == "idle none" for node in ("n2", "n3", "n4", "n5"))
