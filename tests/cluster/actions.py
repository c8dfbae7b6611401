"""What tests of actions share: the site's file, what Slurm says of a job and of a node, and jobs on a machine that is busy."""

import contextlib
import re
import time

from conftest import MIN, NODES, TRUNK, run, until

SLOW = "n3"


def config(**actions):
    """The site's file with these under [action]; no rate limit unless asked for: tests follow each other within an hour."""
    actions = {"max_actions_per_hour": 0, **actions}
    lines = [f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}" for key, value in actions.items()]
    return "\n".join([f'[threshold]\nmin = "{MIN}"\n[action]', *lines, ""]).replace("'", '"')


def runs(job):
    """Every run of the job as accounting keeps it: dictionaries, the first one first."""
    fields = ["JobID", "State", "Start", "End", "NodeList", "AdminComment"]
    done = job.cluster.exec("ctl", "sacct", "-D", "-X", "-n", "-P", "-j", job.number, "-o", ",".join(fields))
    return [dict(zip(fields, line.split("|", len(fields) - 1))) for line in done.stdout.splitlines()]


def queue(cluster, number, fmt="%t %r"):
    return cluster.exec("ctl", "squeue", "-h", "-j", number, "-o", fmt, check=False).stdout.strip()


def excluded(cluster, job):
    shown = cluster.exec("ctl", "scontrol", "show", "job", job.number).stdout
    names = re.search(r"^ +ReqNodeList=\S+ ExcNodeList=(\S+)$", shown, re.MULTILINE)[1]
    return set(cluster.exec("ctl", "scontrol", "show", "hostnames", names).stdout.split()) - {"(null)"}


def let_go(cluster, job):
    """As an administrator may let a requeued job start before Slurm's two minutes are over: not before its old nodes have been quiet for
    as long as slurmd 22.05 needs, which else loses its prolog."""
    time.sleep(4)
    cluster.exec("ctl", "scontrol", "update", f"JobId={job.number}", "StartTime=now")


def reason(cluster, node):
    return cluster.exec("ctl", "sinfo", "-h", "-N", "-p", "main", "-n", node, "-o", "%t %E").stdout.strip()


def epoch(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def drained_by_us(cluster):
    return {node for node in NODES if " netcheck: " in reason(cluster, node)}


@contextlib.contextmanager
def narrow_trunk(cluster, rate):
    """What joins the two leaf switches, on all rails, as scripts/cluster has made it."""
    enter = ["nsenter", f"--net=/proc/{(cluster.folder / 'state/fabric.pid').read_text().strip()}/ns/net", "--"]

    def shape(to):
        for end in ("trunk0a", "trunk0b", "trunk1a", "trunk1b"):
            run(*enter, "tc", "qdisc", "replace", "dev", end, "root", "tbf", "rate", to, "burst", "256kb", "limit", "1mb")

    shape(rate)
    try:
        yield
    finally:
        shape(TRUNK)


# What a line says where processes that measured did not get the CPU for it.
UNCLEAR = "netcheck=(fail .*( noisy=yes|no node stands out)|inconclusive .*kept from running)"


def blamed(cluster, submit, want=r" slow=n3\(", tasks=1, tries=8):
    """A job of `submit()`, after the first run of each of its tasks, with what is wanted in the line of each. On a machine with too
    little CPU the figures may jump about: nobody can be told from the others, or is drained. Then that is what is looked at, and
    another job is taken."""
    before = drained_by_us(cluster)
    for _ in range(tries):
        job = submit()
        rows = until(lambda job=job: first_runs(job, tasks), f"the verdict on job {job.number}", cluster)
        unclear = [row["AdminComment"] for row in rows if not re.search(want, row["AdminComment"])]
        if not unclear:
            return job
        assert all(re.match(UNCLEAR, line) for line in unclear), unclear
        assert drained_by_us(cluster) == before
        cluster.exec("ctl", "scancel", "--user", "alice", check=False)
        until(lambda: set(cluster.node_states().values()) <= {"idle", "drain"}, "the same nodes to be there", cluster)
    raise AssertionError(f"the figures of {tries} jobs were noisy\n{cluster.logs()}")


def first_runs(job, tasks):
    """Once the first run of each task, preempted ones aside, has ended and has a line: what accounting has of it."""
    first = {}
    for row in runs(job):
        if row["State"] != "PREEMPTED":
            first.setdefault(row["JobID"], row)
    ended = [row for row in first.values() if row["State"].split()[0] in ("REQUEUED", "COMPLETED", "CANCELLED") and row["AdminComment"]]
    return ended if len(ended) == tasks else None
