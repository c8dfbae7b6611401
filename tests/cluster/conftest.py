"""What the cluster tests share: one real Slurm cluster, jobs, and what must not be left behind.

Each test asserts outcomes: the sacct line, job and node states, exit codes, records, leftovers. None asserts a time. The cluster
(scripts/cluster) is brought up once, in build/cluster-test, with the program and plugin as `cmake --install` lays them out.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import time

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NETCHECK_BUILD_DIR", TOP / "build/plain"))
SCRIPT = TOP / "scripts/cluster"
NODES = ["n1", "n2", "n3", "n4"]

# A threshold between a healthy link (1 Gb/s less headers: about 950 Mb/s) and one at a tenth.
CONFIG = """
[threshold]
min = "400Mbps"
"""


def run(*command, timeout=120, check=True, env=None, **kwargs):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout, env=env, **kwargs
    )
    if check and done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Job:
    """One submitted job: what the user saw, and what Slurm keeps of it."""

    def __init__(self, cluster, number, output=None):
        self.cluster, self.number, self.output = cluster, number, output

    def wait(self, states=("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), timeout=60):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            state = self.state()
            if state.split()[0:1] and state.split()[0] in states:
                return state
            time.sleep(0.3)
        raise AssertionError(f"job {self.number} did not end: {self.state()}\n{self.cluster.logs()}")

    def field(self, name):
        done = self.cluster.exec("ctl", "sacct", "-n", "-P", "-X", "-j", self.number, "-o", name)
        return done.stdout.strip()

    def state(self):
        return self.field("State")

    def comment(self, timeout=15):
        """AdminComment as sacct shows it; the accounting daemon may be a moment behind."""
        deadline = time.monotonic() + timeout
        while True:
            comment = self.field("AdminComment")
            if comment or time.monotonic() > deadline:
                return comment
            time.sleep(0.3)

    def verdict(self):
        found = re.match(r"netcheck=(\w+)", self.comment())
        assert found, f"job {self.number}: AdminComment is {self.comment()!r}\n{self.cluster.logs()}"
        return found.group(1)

    def text(self):
        """What the job wrote, the plugin's line included."""
        return self.output.read_text() if self.output and self.output.exists() else ""

    def record(self, node):
        done = self.cluster.exec(node, "sh", "-c", f"cat /run/netcheck/records/*-{self.number}-*.json", check=False)
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else None


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "NETCHECK_CLUSTER_DIR": str(folder)}
        self.home = folder / "home/alice"
        self.config_file = folder / "etc/netcheck/netcheck.toml"
        self.namespaces = {}
        self.count = 0

    def script(self, *arguments, **kwargs):
        return run(SCRIPT, *arguments, env=self.env, **kwargs)

    def exec(self, node, *command, user=None, **kwargs):
        who = ["--user", user] if user else []
        return self.script("exec", *who, node, *command, **kwargs)

    def start(self, node, *command, user=None):
        """A command that goes on in the background; the test ends it."""
        who = ["--user", user] if user else []
        return subprocess.Popen(
            [str(SCRIPT), "exec", *who, node, *map(str, command)],
            env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def configure(self, text=CONFIG):
        """The site's file, for the next job on: every prolog reads it anew."""
        self.config_file.write_text(text)
        os.chmod(self.config_file, 0o644)

    def sbatch(self, *options, nodes=4, script="echo script ran on $(hostname)", user="alice", check=True):
        self.count += 1
        output = self.folder / f"home/{user}/job-{self.count}.out"
        text = f"#!/bin/sh\n{script}\n"
        done = self.exec(
            "ctl", "sbatch", "--parsable", "--exclusive", "-N", nodes, "-o", f"job-{self.count}.out", *options,
            user=user, check=check, input=text, cwd=self.folder / f"home/{user}",
        )  # fmt: skip
        if done.returncode != 0:
            return done
        return Job(self, done.stdout.strip().split(";")[0], output)

    def take_namespaces(self):
        """Of each node, once: looking them up takes longer than a check of a healthy network."""
        status = json.loads(self.script("status", "--json").stdout)
        self.namespaces = {node["name"]: os.readlink(f"/proc/{node['init_pid']}/ns/net") for node in status["nodes"]}

    @contextlib.contextmanager
    def held(self, options=("--netcheck",), **kwargs):
        """A job whose check stands still in its middle: the leader's probe is stopped once its fabric moves bytes, so that a
        test can break something there however fast the check is. It goes on when the block ends."""
        job = self.sbatch(*options, **kwargs)
        probe = self.appears("n1", r"netcheck probe")
        self.appears("n1", r"netcheck fabric")
        time.sleep(0.1)
        os.kill(probe, signal.SIGSTOP)
        try:
            yield job
        finally:
            with contextlib.suppress(ProcessLookupError):  # the test may have ended it
                os.kill(probe, signal.SIGCONT)

    def appears(self, node, pattern, timeout=30):
        """The pid (as this machine counts) of a process of `node` whose command line matches, as soon as there is one."""
        namespace = self.namespaces[node]
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            for entry in pathlib.Path("/proc").iterdir():
                try:
                    if entry.name.isdigit() and os.readlink(entry / "ns/net") == namespace:
                        words = (entry / "cmdline").read_bytes().split(b"\0")
                        if re.search(pattern, b" ".join(words).decode(errors="replace")):
                            return int(entry.name)
                except OSError:
                    continue
            time.sleep(0.002)
        raise AssertionError(f"{node}: no process '{pattern}' appeared\n{self.logs()}")

    def plugstack(self, node, text):
        """The plugin's line on one node from now on; every prolog reads it anew. Returns what stood there."""
        file = self.folder / f"nodes/{node}/plugstack.conf"
        before = file.read_text()
        file.write_text(text)
        return before

    def node_states(self):
        done = self.exec("ctl", "sinfo", "-h", "-N", "-p", "main", "-o", "%N %t")
        return dict(line.split() for line in done.stdout.splitlines())

    def wait_idle(self, timeout=60):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if set(self.node_states().values()) == {"idle"}:
                return
            time.sleep(0.3)
        raise AssertionError(f"nodes are not idle: {self.node_states()}")

    def leftovers(self):
        """Processes of the check, listening ports of its range, and probe-side files that outlived it."""
        found = []
        for node in NODES:
            ps = self.exec(node, "ps", "-e", "-o", "pid=,user=,args=").stdout
            found += [f"{node}: {line.strip()}" for line in ps.splitlines() if re.search(r"netcheck (prolog|probe|fabric)", line)]
            ss = self.exec(node, "ss", "-Hltn").stdout
            found += [f"{node}: {line}" for line in ss.splitlines() if re.search(r":8[6-9]\d\s", line)]
        return found

    def logs(self, lines=15):
        out = []
        for log in sorted((self.folder / "logs").glob("n*.slurmd.log")):
            picked = [line for line in log.read_text(errors="replace").splitlines() if "netcheck" in line or "rolog" in line]
            out += [f"--- {log.name}", *picked[-lines:]]
        return "\n".join(out)


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    """The tree of `cmake --install`, owned by root, as a site would have it."""
    tree = TOP / "build/stage"
    run("cmake", "--install", BUILD, "--prefix", tree)
    return tree


@pytest.fixture(scope="session")
def running(stage):
    cluster = Cluster(pathlib.Path(os.environ.get("NETCHECK_CLUSTER_DIR", TOP / "build/cluster-test")))
    cluster.script("up", "--nodes", 4, "--rails", 2, "--rate", "1gbit", "--install", stage, timeout=240)
    cluster.take_namespaces()
    yield cluster
    if not os.environ.get("NETCHECK_KEEP_CLUSTER"):
        cluster.script("down", timeout=120)


@pytest.fixture
def cluster(running):
    """The cluster as it should be: healthy links, the plain configuration, all nodes idle; afterwards nothing left over."""
    running.configure()
    running.wait_idle()
    yield running
    for node in NODES:
        running.script("shape", node, "off", check=False)
        running.script("shape", f"{node}.1", "off", check=False)
        running.script("link", node, "up", check=False)
    states = running.node_states()
    drained = {node: state for node, state in states.items() if "drain" in state or "down" in state}
    assert not drained, f"the check may never drain a node: {drained}\n{running.logs()}"
    running.exec("ctl", "scancel", "--user", "alice", check=False)
    running.wait_idle()
    assert running.leftovers() == []
