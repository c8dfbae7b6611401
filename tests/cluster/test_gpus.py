"""Checks over GPUs. There are none: libcuda, libnccl and NVML are stand-ins (tests/fakes/gpu) that move real bytes over the nodes'
links and do wrong what their node's fake.ini says. GPU i sends over rail i.
"""

import re

import pytest
from conftest import GPU_LIBRARIES, NODES
from report import doctor, fails

pytestmark = pytest.mark.skipif(not GPU_LIBRARIES.exists(), reason="built without the NCCL module")

# A fifth of the usual rate: the stand-ins copy every byte more often than a GPU would, and a machine that is too slow for four nodes
# is not what these tests are about.
RATE, SLOW = "200mbit", "40mbit"

# With both rails a healthy node reaches 380 Mb/s; with a slow one both rings are as slow as it: 76 Mb/s.
CONFIG = """
[threshold]
min = "100Mbps"
[nccl]
library = "/run/node/gpu/libnccl.so.2"
driver = "/run/node/gpu/libcuda.so.1"
watcher = "/run/node/gpu/libnvidia-ml.so.1"
"""


class Gpus:
    def __init__(self, cluster):
        self.cluster, self.gone = cluster, []

    def configure(self, more=""):
        self.cluster.configure(CONFIG + more, fabric="auto")

    def fault(self, node, *lines):
        (self.cluster.folder / f"nodes/{node}/gpu/fake.ini").write_text("\n".join(["gpus=2", *lines, ""]))

    def without(self, node, library):
        """That node lacks one of the libraries, until the test ends."""
        file = self.cluster.folder / f"nodes/{node}/gpu/{library}"
        self.gone.append(file)
        file.rename(file.with_suffix(".gone"))

    def shape(self):
        for node in NODES:
            for rail in (0, 1):
                self.cluster.script("shape", f"{node}.{rail}", RATE)

    def check(self, *options, nodes=4, **kwargs):
        """A job that ran, whatever its check came to."""
        job = self.cluster.sbatch("--netcheck", *options, nodes=nodes, **kwargs)
        assert job.wait(timeout=90) == "COMPLETED"
        assert "script ran on" in job.text()
        self.cluster.prologs_end()
        return job


    def undisturbed(self):
        """The line of a job whose check says nothing of processes that got no processor: on a busy machine it may, rather than
        blame anybody."""
        for _ in range(5):
            line = self.check().comment()
            if "kept from running" not in line:
                break
        return line


@pytest.fixture
def gpus(cluster):
    stand = Gpus(cluster)
    stand.configure()
    yield stand
    for node in NODES:
        stand.fault(node)
    for file in stand.gone:
        file.with_suffix(".gone").rename(file)


def test_a_job_is_checked_over_all_its_gpus(gpus):
    job = gpus.check()
    line = job.comment()
    assert re.search(r"^netcheck=pass busbw=\S+ min=100Mbps op=all_reduce algo=ring nodes=4 gpus=8 ", line), line
    assert job.text().startswith("netcheck=pass")
    formed = job.record("n1")["report"]["history"]["done"][0]
    assert len(formed["step"]["teams"][0]["ranks"]) == 8
    assert all({"total", "bootstrap", "topo"} <= set(outcome["spent"]) for outcome in formed["outcomes"])
    # By NCCL's own log: both rails, and inside a node neither.
    assert set(formed["transport"].split(",")) == {"Socket/eth0", "Socket/eth1", "P2P/fake"}


def test_a_job_with_one_gpu_of_two_is_checked_over_that(gpus):
    line = gpus.check("--exclusive=user", "--gres=gpu:1").comment()
    assert re.search(r"^netcheck=pass .* op=all_reduce algo=ring nodes=4 gpus=4 ", line), line


def test_a_job_without_gpus_is_checked_over_ucx(gpus):
    job = gpus.check("--exclusive=user")
    line = job.comment()
    assert re.search(r"^netcheck=pass .* op=all_gather algo=ring nodes=4 ", line) and "gpus=" not in line, line
    assert job.record("n1")["policy"]["fabric"] == "ucx"


def test_a_slow_node_is_named_with_its_direction(gpus):
    gpus.shape()
    for rail in (0, 1):
        gpus.cluster.script("shape", f"n3.{rail}", SLOW, "--tx")
    line = gpus.undisturbed()
    assert re.search(r"^netcheck=fail .* gpus=8 slow=n3\(tx: ", line), line


def test_a_slow_rail_is_named_by_its_gpu(gpus):
    gpus.shape()
    gpus.cluster.script("shape", "n3.1", SLOW, "--rx")
    line = gpus.undisturbed()
    assert re.search(r"^netcheck=fail .* gpus=8 slow=n3/0000:f1:00\.0\(rx: ", line), line


# What is told to a stand-in of n3, and what comes of it. In none of these is the network blamed.
REFUSED = {
    "mig=1": "measure GPU 0000:f0:00.0: it is in MIG mode",
    "process=4711": "measure GPU 0000:f0:00.0: process 4711 computes on it",
    "remap_failed=1": "measure GPU 0000:f0:00.0: its memory has rows that could not be remapped",
    "memory=1048576": "open GPU 0000:f0:00.0: only 1MiB of its memory are free",
    "cuinit=100": "open CUDA: a node without GPUs",
    "minors=4,5": "find GPU 0: there is no /dev/nvidia0, but 4, 5",
    "version=21705": "use NCCL 2.17.5: NCCL 2.18 or later is needed",
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_gpu_that_is_not_fit_is_told_with_its_reason(gpus, fault):
    gpus.fault("n3", fault)
    line = gpus.check().comment()
    assert line.startswith("netcheck=inconclusive phase=open nodes=4 ") and f'reason="n3: fabric refused: {REFUSED[fault]}' in line, line


@pytest.mark.parametrize("library", ["libnccl.so.2", "libcuda.so.1"])
def test_a_missing_library_is_named(gpus, library):
    gpus.without("n3", library)
    line = gpus.check().comment()
    assert re.search(rf"^netcheck=inconclusive phase=open .*n3: fabric refused: open /run/node/gpu/{library}: ", line), line


def test_without_nvml_there_is_nobody_to_tell_which_gpus_are_meant(gpus):
    gpus.without("n3", "libnvidia-ml.so.1")
    line = gpus.check().comment()
    assert "n3: fabric refused: find GPU 0: neither NVML nor /proc/driver/nvidia/gpus tells which one it is" in line, line


def differs(line, key, here, there):
    """Who opened first is compared with, and that may be n3; and it may open before all have come."""
    assert re.search(
        rf'^netcheck=inconclusive phase=(open|rendezvous) .*reason="(n3 differs from n\d: {key} is {here} instead of {there}'
        rf'|n\d differs from n3: {key} is {there} instead of {here})"', line), line  # fmt: skip


def test_another_version_is_named_before_anything_hangs_on_it(gpus):
    gpus.fault("n3", "version=22106")
    differs(gpus.check().comment(), "nccl", "2.21.6", "2.28.9")


def test_another_setting_is_named_before_anything_hangs_on_it(gpus):
    cluster = gpus.cluster
    (cluster.folder / "etc/nccl.conf").write_text("NCCL_IB_HCA=mlx5_0\n")
    (cluster.folder / "nodes/n3/nccl.conf").write_text("NCCL_IB_HCA=mlx5_1\n")
    cluster.exec("n3", "mount", "--bind", "/run/node/nccl.conf", "/etc/nccl.conf")
    try:
        differs(gpus.check().comment(), "NCCL_IB_HCA", "mlx5_1", "mlx5_0")
    finally:
        cluster.exec("n3", "umount", "/etc/nccl.conf")
        (cluster.folder / "etc/nccl.conf").unlink()


def test_a_plugin_that_one_node_lacks_is_named(gpus):
    # Any library will do.
    gpus.configure('env = { NCCL_NET_PLUGIN = "/run/node/gpu/libnet.so" }\n')
    for node in NODES:
        if node != "n3":
            (gpus.cluster.folder / f"nodes/{node}/gpu/libnet.so").symlink_to("libnvidia-ml.so.1")
    try:
        differs(gpus.check().comment(), "net", "none", "/run/node/gpu/libnet.so")
    finally:
        for node in NODES:
            (gpus.cluster.folder / f"nodes/{node}/gpu/libnet.so").unlink(missing_ok=True)


def test_little_memory_on_one_node_makes_small_messages(gpus):
    gpus.fault("n3", "memory=8388608")
    job = gpus.check()
    assert job.comment().startswith("netcheck=pass "), job.comment()
    # A quarter of the 8 MiB is one buffer's.
    sizes = [batch["bytes"] for step in job.record("n1")["report"]["history"]["done"] for batch in step["step"].get("batches", [])]
    assert max(sizes) <= 2 << 20


def test_another_transport_than_the_site_demands_fails_and_blames_nobody(gpus):
    gpus.configure('require_transport = "IB"\n')
    line = gpus.check().comment()
    assert re.search(r"^netcheck=fail .*transport=Socket/eth\d required=IB", line) and "slow=" not in line, line


def test_doctor_tells_of_a_gpu_nodes_libraries(gpus):
    report = doctor(gpus.cluster, "n1")
    assert report.levels("warn", "unseen", "fail") == set(), report.whole["findings"]
    assert report.of("NCCL")["why"] == "/run/node/gpu/libnccl.so.2, version 2.28.9, and root's alone to change"
    assert report.of("CUDA driver")["why"].startswith("/run/node/gpu/libcuda.so.1, version 12.0")
    assert report.of("NVML")["level"] == "ok"
    modules = [line["why"] for line in report.whole["findings"] if line["what"] == "fabric module"]
    assert ["ucx" in modules[0], "nccl" in modules[1]] == [True, True], modules
    gpus.without("n1", "libnccl.so.2")
    gpus.without("n1", "libnvidia-ml.so.1")
    (gpus.cluster.folder / "nodes/n1/gpu/libcuda.so.1").chmod(0o777)
    try:
        report = doctor(gpus.cluster, "n1")
    finally:
        (gpus.cluster.folder / "nodes/n1/gpu/libcuda.so.1").chmod(0o755)
    fails(report, "NCCL", "libnccl.so.2: cannot open", "with library in [nccl]")
    fails(report, "CUDA driver", "mode 0777", "chmod go-w /run/node/gpu/libcuda.so.1")
    assert report.of("NVML")["level"] == "warn"


def test_doctor_says_nothing_of_gpus_where_none_are_measured(gpus):
    gpus.cluster.configure()
    assert "NCCL" not in {line["what"] for line in doctor(gpus.cluster, "n1").whole["findings"]}


# --- what breaks and hangs under a check ---------------------------------------------------------------------


def test_an_init_that_hangs_is_given_up(gpus):
    gpus.fault("n3", "init=hang")
    line = gpus.check().comment()
    assert re.search(r"^netcheck=inconclusive phase=connect nodes=4 gpus=8 .*did not end in time", line), line


def test_an_init_that_fails_is_told_with_nccls_words(gpus):
    gpus.fault("n3", "init=error")  # and others lose their connections to it
    line = gpus.check().comment()
    assert re.search(r"^netcheck=inconclusive phase=connect .*n\d: fabric refused: NCCL: unhandled system error: ", line), line


def test_a_first_operation_that_breaks_is_no_slow_network(gpus):
    gpus.fault("n3", "async_error=1")
    line = gpus.check().comment()
    assert line.startswith("netcheck=inconclusive phase=connect ") and "slow=" not in line, line


def test_an_operation_that_breaks_later_is_no_pass(gpus):
    gpus.fault("n3", "async_error=6")
    line = gpus.check().comment()
    assert line and "netcheck=pass" not in line and "slow=n1" not in line and "slow=n2" not in line, line


def test_an_operation_that_never_ends_is_no_pass(gpus):
    gpus.fault("n3", "stall=6")
    line = gpus.check().comment()
    assert line and "netcheck=pass" not in line, line


def test_one_wrong_element_fails(gpus):
    gpus.fault("n3", "wrong_element=7")
    line = gpus.check().comment()
    assert re.search(r'^netcheck=fail .*reason="corrupt data: n3 received 1 wrong elements"', line), line
