"""What a check costs the controller: each call that a node makes is counted. None by the job's other nodes, at most ten for a job
that is measured, as many again for the helper of a requeue; for a job that is not measured none that does not tell whether it is."""

import collections
import os
import re

from actions import blamed, config, queue, runs
from conftest import CONFIG, until


def test_a_job_that_passes_costs_its_first_node_two_calls_or_three(cluster, counted):
    """Which job it is, and its line; before these its time limit, from a Slurm that does not tell prologs."""
    assert cluster.sbatch("--netcheck").wait() == "COMPLETED"
    calls = counted()
    assert calls.keys() == {"n1"}
    names = [call.split()[0] for call in calls["n1"]]
    assert names in (["squeue", "scontrol"], ["squeue", "squeue", "scontrol"]), calls


def test_a_job_that_is_refused_costs_ten_at_most(slow, counted):
    slow.configure(config(action="hold", drain=True, max_actions_per_hour=1000))
    job = slow.sbatch("--netcheck", nodes=3)
    until(lambda: "held" in queue(slow, job.number), "a hold", slow)
    calls = counted()
    assert calls.keys() == {"n1"} and 3 < len(calls["n1"]) <= 10, calls


def test_a_job_that_is_sent_away_costs_its_helpers_ten_besides(slow, counted):
    slow.configure(config(action="requeue", max_actions_per_hour=1000))

    def one():
        counted()
        return slow.sbatch("--netcheck", nodes=3)

    job = blamed(slow, one)
    until(lambda: len(runs(job)) == 2 and runs(job)[1]["State"] == "COMPLETED", "a second run", slow)
    slow.prologs_end()
    calls = counted()
    # The second run, which passes, has its own three.
    assert calls.keys() == {"n1"} and 6 < len(calls["n1"]) <= 10 + 10 + 3, calls


def test_a_job_that_is_not_checked_costs_none(cluster, counted):
    assert cluster.sbatch().wait() == "COMPLETED"
    cluster.configure('[when]\nmode = "always"\nallow_users = ["bob"]\n' + CONFIG)
    assert cluster.sbatch().wait() == "COMPLETED"
    assert counted() == {}


# As many as take ten seconds. NETCHECK_ARRAY_TASKS=500 for the storm that this stands for.
TASKS = int(os.environ.get("NETCHECK_ARRAY_TASKS", 60))


def test_an_array_of_short_jobs_is_no_storm(cluster, counted):
    """Eight at a time, four to a node, which the site would have checked were they not too short. Slurm 22.05 does not tell a prolog
    its job's time limit: the first node asks, once. Nobody hears of it, and nobody is busy with it when the next one comes."""
    cluster.configure('[when]\nmode = "always"\nmin_walltime = "5min"\n' + CONFIG)
    options = ["--array", f"1-{TASKS}", "-t", "1", "-n", "2", "--oversubscribe", "-o", "/dev/null"]
    job = cluster.sbatch(*options, nodes=2, script="true")

    def tasks():
        done = cluster.exec("ctl", "sacct", "-n", "-P", "-X", "-j", job.number, "-o", "JobIDRaw,NodeList,State,AdminComment")
        rows = [line.split("|", 3) for line in done.stdout.splitlines()]
        return rows if len(rows) == TASKS and all(row[2] == "COMPLETED" for row in rows) else None

    rows = until(tasks, f"{TASKS} completed tasks", cluster, timeout=60 + TASKS, pause=0.5)
    assert {line for *_, line in rows} == {""}
    first_node = {number: re.sub(r"\[(\d+).*", r"\1", nodes) for number, nodes, *_ in rows}
    calls = collections.Counter()
    for node, lines in counted().items():
        for line in lines:
            asked = re.match(r"squeue .*--jobs=(\d+) ", line)
            assert asked and first_node[asked[1]] == node, (node, line)
            calls[asked[1]] += 1
    assert max(calls.values(), default=0) <= 1, calls
