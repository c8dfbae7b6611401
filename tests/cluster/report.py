"""What `netcheck doctor` reports on a node."""

import json

PROGRAM = "/run/cluster/root/sbin/netcheck"


class Report:
    def __init__(self, done):
        self.code = done.returncode
        assert done.stdout, done.stderr
        self.whole = json.loads(done.stdout)

    def of(self, what):
        """The worst line about it."""
        order = ["ok", "warn", "unseen", "fail"]
        lines = [line for line in self.whole["findings"] if line["what"] == what]
        assert lines, f"nothing is said about {what}: {self.whole['findings']}"
        return max(lines, key=lambda line: order.index(line["level"]))

    def levels(self, *levels):
        return {line["what"] for line in self.whole["findings"] if line["level"] in levels}


def doctor(cluster, node, *options, user=None):
    # It promises ten seconds whatever hangs; what is added here is for a busy machine.
    return Report(cluster.exec(node, PROGRAM, "doctor", "--json", *options, user=user, check=False, timeout=30))


def fails(report, what, why, remedy):
    line = report.of(what)
    assert line["level"] == "fail", line
    assert why in line["why"], line
    assert remedy in line["remedy"], line
    assert report.code == 1
