"""Checks over GPUs. There are none: libcuda, libnccl and NVML are stand-ins (tests/fakes/gpu) that move real bytes over the nodes'
links and do wrong what their node's fake.ini says. GPU i sends over rail i.
"""

import pytest
from conftest import NODES

CONFIG = """
[threshold]
min = "200Mbps"
[nccl]
library = "/run/node/gpu/libnccl.so.2"
driver = "/run/node/gpu/libcuda.so.1"
watcher = "/run/node/gpu/libnvidia-ml.so.1"
"""


class Gpus:
    def __init__(self, cluster):
        self.cluster = cluster

    def configure(self, more=""):
        self.cluster.configure(CONFIG + more, fabric="auto")

    def fault(self, node, *lines):
        (self.cluster.folder / f"nodes/{node}/gpu/fake.ini").write_text("\n".join(["gpus=2", *lines, ""]))

    def check(self, *options, nodes=4, **kwargs):
        """The line of a job that ran, whatever its check came to."""
        job = self.cluster.sbatch("--netcheck", *options, nodes=nodes, **kwargs)
        assert job.wait(timeout=90) == "COMPLETED"
        assert "script ran on" in job.text()
        self.cluster.prologs_end()
        return job


@pytest.fixture
def gpus(cluster):
    stand = Gpus(cluster)
    stand.configure()
    yield stand
    for node in NODES:
        stand.fault(node)


def test_a_job_is_checked_over_all_its_gpus(gpus):
    job = gpus.check()
    print(job.comment())
    import json
    print(json.dumps(job.record("n1"))[:6000])
    assert 0
