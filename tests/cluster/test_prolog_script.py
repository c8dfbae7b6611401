"""netcheck as a Prolog script: without SPANK a job asks in its comment, or the site for it; with both there is one check."""

import re

import pytest
from actions import blamed
from conftest import CONFIG, MIN, NODES, until

TREE = "/run/cluster/root"  # scripts/cluster lays the installed tree there


@pytest.fixture
def script(cluster):
    """The script as a site would install it: the example, with its two paths. Gives its text."""
    text = (cluster.folder / "root/share/netcheck/prolog.d/netcheck").read_text()
    text, changed = re.subn(r"(?m)^program=.*", f"program={TREE}/sbin/netcheck", text)
    assert changed == 1
    cluster.prolog("netcheck", text)
    yield text
    cluster.prolog("netcheck", None)


@pytest.fixture
def without_spank(cluster):
    with cluster.plugged("ctl", *NODES, text=""):
        yield


def everywhere(job, key):
    """What the record of each node has there."""
    return [(job.record(node) or {}).get(key) for node in NODES]


@pytest.mark.usefixtures("script", "without_spank")
class TestWithoutSpank:
    def test_a_job_is_checked_that_asks_in_its_comment(self, cluster):
        assert cluster.sbatch("--netcheck", check=False).returncode != 0  # nobody knows the option here
        job = cluster.sbatch("--comment=project=x netcheck", script='echo "V=$NETCHECK_VERDICT"')
        assert job.wait() == "COMPLETED"
        assert job.comment().startswith("netcheck=pass busbw=") and f"min={MIN}" in job.comment()
        assert everywhere(job, "verdict") == ["pass"] * 4
        assert job.field("Comment") == "project=x netcheck"
        assert job.text() == "V=\n"  # the job itself is told by the plugin alone

    def test_what_it_asks_for_counts_whatever_else_the_comment_holds(self, cluster):
        comment = "a\nSLURM_JOB_ID=1\n JobId=1 netcheckx\nnetcheck=10Tbps\nSLURM_JOB_UID=0"
        job = cluster.sbatch(f"--comment={comment}")
        assert job.wait() == "COMPLETED"
        assert job.comment().startswith("netcheck=fail") and "min=10000Gbps" in job.comment()
        assert everywhere(job, "request") == ["10Tbps"] * 4

    @pytest.mark.parametrize("comment", [None, 'netcheckx my-netcheck "netcheck"', "y" * 1024])
    def test_a_job_that_does_not_ask_is_not_checked(self, cluster, comment):
        job = cluster.sbatch(*([f"--comment={comment}"] if comment else []))
        assert job.wait() == "COMPLETED"
        assert job.comment() == ""
        assert everywhere(job, "verdict") == [None] * 4

    def test_a_request_that_cannot_be_read_is_named_and_the_job_runs(self, cluster):
        job = cluster.sbatch("--comment=netcheck=fast")
        assert job.wait() == "COMPLETED"
        assert job.comment().startswith("netcheck=inconclusive phase=start")
        assert "min 'fast'" in job.comment()

    def test_the_site_may_want_every_job_checked(self, cluster):
        cluster.configure('[when]\nmode = "always"\n' + CONFIG)
        job = cluster.sbatch()
        assert job.wait() == "COMPLETED"
        assert job.comment().startswith("netcheck=pass")

    def test_a_refused_job_is_sent_away_from_the_slow_node_and_still_asks(self, cluster):
        cluster.configure(CONFIG + '[action]\naction = "requeue"\nmax_actions_per_hour = 0\n')
        cluster.script("shape", "n3", "100mbit", "--tx")
        job = blamed(cluster, lambda: cluster.sbatch("--comment=netcheck", nodes=3))
        until(lambda: job.field("State") == "COMPLETED", "a second run", cluster)
        assert job.record("n3")["verdict"] == "fail" and job.record("n4")["verdict"] == "pass"  # each was in one run
        assert job.comment().startswith("netcheck=pass") and "prev=fail(slow=n3)" in job.comment()
        cluster.prologs_end()  # the helper that let it start early, too

    def test_a_job_runs_unchecked_where_the_program_is_missing(self, cluster, script):
        cluster.prolog("netcheck", script.replace(f"{TREE}/sbin/netcheck", "/nowhere/netcheck"))
        job = cluster.sbatch("--comment=netcheck")
        assert job.wait() == "COMPLETED"  # and no node is drained: see the fixture
        assert job.comment() == ""


@pytest.mark.usefixtures("script")
class TestWithBoth:
    def test_a_job_that_asks_twice_is_checked_once(self, cluster):
        job = cluster.sbatch("--netcheck=min=300Mbps", "--comment=netcheck=min=350Mbps")
        assert job.wait() == "COMPLETED"
        assert job.comment().startswith("netcheck=pass") and "min=300Mbps" in job.comment()
        assert everywhere(job, "request") == ["min=300Mbps"] * 4  # a second check would have left its own
        assert job.text().count("netcheck=") == 1

    def test_a_job_that_asks_in_its_comment_is_shown_the_line(self, cluster):
        job = cluster.sbatch("--comment=netcheck", script='echo "V=$NETCHECK_VERDICT"; srun -n4 true')
        assert job.wait() == "COMPLETED"
        assert job.text().count("netcheck=pass") == 1 and "V=pass" in job.text()
        assert [cluster.said(job, node) for node in NODES] == [""] * 4  # it was the script's: slurmd has heard nothing
