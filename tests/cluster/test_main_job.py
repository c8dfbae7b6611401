"""The main job: a network is measured at the job's start, the slow node is named, the verdict is in sacct."""

from actions import blamed
from conftest import MIN


def test_a_healthy_network_passes_before_the_script_starts(cluster):
    job = cluster.sbatch("--netcheck")
    assert job.wait() == "COMPLETED"
    comment = job.comment()
    assert comment.startswith("netcheck=pass busbw=")
    assert f"min={MIN}" in comment and "nodes=4" in comment
    # The user's copy: once, the same line, before the script's own output.
    lines = job.text().splitlines()
    assert [line for line in lines if "netcheck=pass" in line] == lines[:1]
    assert "script ran on" in lines[-1]


def test_every_node_keeps_a_record(cluster):
    job = cluster.sbatch("--netcheck")
    job.wait()
    for node in ["n1", "n2", "n3", "n4"]:
        record = job.record(node)
        assert record, f"{node} has no record\n{cluster.logs()}"
        assert record["line"].startswith("netcheck=pass")


def test_a_node_with_a_tenth_of_transmit_is_named_with_its_direction(cluster):
    cluster.script("shape", "n3", "100mbit", "--tx")
    job = blamed(cluster, lambda: cluster.sbatch("--netcheck"))
    assert job.wait() == "COMPLETED"  # annotated, nothing acted on
    comment = job.comment()
    assert comment.startswith("netcheck=fail busbw=")
    assert "slow=n3(tx: " in comment
    for healthy in ["n1", "n2", "n4"]:
        assert f"{healthy}(" not in comment


def test_a_node_with_a_tenth_of_receive_is_named_with_its_direction(cluster):
    cluster.script("shape", "n2", "100mbit", "--rx")
    job = blamed(cluster, lambda: cluster.sbatch("--netcheck"), want=" slow=")
    assert "slow=n2(rx: " in job.comment()


def test_a_job_that_does_not_ask_is_not_checked(cluster):
    job = cluster.sbatch()
    assert job.wait() == "COMPLETED"
    assert job.comment() == ""
    assert "netcheck" not in job.text()
    assert job.record("n1") is None


def test_a_rate_of_the_users_own_is_judged_against(cluster):
    job = cluster.sbatch("--netcheck=10Tbps")
    assert job.wait() == "COMPLETED"
    comment = job.comment()
    assert comment.startswith("netcheck=fail") and "min=10000Gbps" in comment
    assert "slow=" not in comment  # a wish blames no node


def test_the_verdict_is_in_the_jobs_environment(cluster):
    job = cluster.sbatch("--netcheck", script='echo "V=$NETCHECK_VERDICT"; srun -n4 sh -c \'echo "T=$NETCHECK_VERDICT"\'')
    job.wait()
    text = job.text()
    assert "V=pass" in text
    assert text.count("T=pass") == 4
    assert text.count("netcheck=pass") == 1


def test_srun_shows_the_line_once_on_stderr(cluster):
    done = cluster.exec("ctl", "srun", "--netcheck", "--exclusive", "-N4", "-n8", "hostname", user="alice")
    assert done.stderr.count("netcheck=pass") == 1
    assert len(done.stdout.splitlines()) == 8


def test_salloc_shows_the_line_at_its_first_step(cluster):
    done = cluster.exec(
        "ctl", "salloc", "--netcheck", "--exclusive", "-N4", "sh", "-c", "srun -n1 true; srun -n1 true", user="alice"
    )
    assert (done.stdout + done.stderr).count("netcheck=pass") == 1


def test_an_option_in_the_script_counts(cluster):
    job = cluster.sbatch(script="#SBATCH --netcheck=min=500Mbps\ntrue")
    job.wait()
    assert "min=500Mbps" in job.comment()


def test_a_step_that_asks_for_itself_is_told_that_nothing_is_checked(cluster):
    job = cluster.sbatch(script="srun --netcheck -n1 true")
    job.wait()
    assert "checks nothing" in job.text()
    assert job.comment() == ""


def test_a_single_node_has_no_network_to_check(cluster):
    job = cluster.sbatch("--netcheck", nodes=1)
    assert job.wait() == "COMPLETED"
    comment = job.comment()
    assert comment.startswith("netcheck=inconclusive") and "one node" in comment


def test_the_kill_switch_stops_checks_without_a_restart(cluster):
    switch = cluster.config_file.with_name("disabled")
    switch.touch()
    try:
        job = cluster.sbatch("--netcheck")
        assert job.wait() == "COMPLETED"
        assert "netcheck=" not in job.comment()
    finally:
        switch.unlink()
