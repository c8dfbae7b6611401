"""A healthy node whose measuring process is kept from running: nobody may be named for it, or drained."""

import contextlib
import os
import signal
import threading
import time

from conftest import CHECK, until

DRAINS = '[threshold]\nmin = "400Mbps"\n[action]\naction = "requeue"\ndrain = true\nmax_actions_per_hour = 0\n'


class Starved:
    """Every fabric process of a node runs 10 ms of each 40, until the block ends."""

    def __init__(self, cluster, node):
        self.cluster, self.node, self.stops, self.over = cluster, node, 0, threading.Event()
        self.thread = threading.Thread(target=self.loop)

    def loop(self):
        while not self.over.is_set():
            found = [pid for pid, _ in self.cluster.processes(self.node, r"netcheck fabric")]
            began = time.monotonic()
            while found and time.monotonic() < began + 1:  # then look again: a process may have been replaced
                for each, pause in ((signal.SIGSTOP, 0.03), (signal.SIGCONT, 0.01)):
                    for pid in found:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, each)
                            self.stops += each == signal.SIGSTOP
                    time.sleep(pause)
                found = [pid for pid in found if os.path.exists(f"/proc/{pid}")]
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_a_node_whose_process_gets_a_quarter_of_its_time_is_not_named(cluster):
    cluster.configure(DRAINS)
    for _ in range(3):
        with Starved(cluster, "n3") as starved:
            job = cluster.sbatch("--netcheck", nodes=4)
            assert job.wait() == "COMPLETED"
        assert starved.stops > 5
        comment = job.comment()
        assert comment and "slow=" not in comment and " drain=" not in comment, comment
        if comment.startswith("netcheck=inconclusive"):
            assert "n3's process was kept from running" in comment or "no sign of life" in comment, comment
    until(lambda: not cluster.processes("n3", CHECK), "the end of the check", cluster)

