// `netcheck replay` in the test's own process: records of a modelled check, and files that are none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "contract/wire.h"
#include "judge_model.h"
#include "main/replay.h"
#include "prolog/record.h"

namespace netcheck {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string out, err;
};

Ran run(const std::string& path, const std::optional<std::string>& config = {}) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.code = replay(path, config);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

class Replay : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "netcheck-replay-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The first node's, of a check of four nodes n0 to n3 with 1 Gb/s each, of which 500 Mb/s are asked for.
  static Json record(const judge::model::Network& network = {}) {
    prolog::Record record;
    record.job.roster = {{"demo", 17, 0}, {"n0", "n1", "n2", "n3"}, 0};
    record.verdict = "inconclusive";
    record.line = "what was said at the time is not looked at";
    record.time = std::chrono::milliseconds(1'300);
    record.took = std::chrono::milliseconds(2'500);  // the calls to Slurm came after the verdict
    session::Report report;
    report.leader = true;
    report.plan = judge::model::plan_for(4);
    report.plan.thresholds.min = report.plan.thresholds.site_floor = Rate{500e6};
    report.history = judge::model::play(report.plan, network).history;
    report.claimed = "inconclusive";
    record.report = std::move(report);
    return prolog::to_json(record);
  }
  [[nodiscard]] std::string file(const std::string& text) const {
    std::ofstream(folder_ / "record.json") << text;
    return (folder_ / "record.json").string();
  }
  [[nodiscard]] Ran run_harmed(const std::function<void(Json&)>& harm) const {
    Json harmed = record();
    harm(harmed);
    return run(file(harmed.dump()));
  }
  // One line that names the file, nothing on stdout, 2.
  static void expect_refusal(const Ran& ran, const std::string& path, const std::string& why) {
    EXPECT_EQ(ran.code, 2) << why;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, StartsWith("netcheck: "));
    EXPECT_THAT(ran.err, HasSubstr(path));
    EXPECT_THAT(ran.err, HasSubstr(why));
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }

  fs::path folder_;
};

TEST_F(Replay, JudgesAGoodRecordByItsSamplesAlone) {
  const Ran ran = run(file(record().dump()));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  // 1 Gb/s less the model's latency, which is one part in a hundred at the gate's sizes.
  EXPECT_THAT(ran.out,
              testing::MatchesRegex("netcheck=pass busbw=9[0-9][0-9][.][0-9]Mbps min=500Mbps .*time=1.3s\n"));
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 1);
}

// What a site would have made of it: asked for 500 Mb/s at the time, of 1 Gb/s measured.
TEST_F(Replay, HoldsASitesOtherThresholdsAgainstTheSameSamples) {
  Json kept = record();
  kept["partition"] = "gpu";
  const std::string path = file(kept.dump()), config = folder_ / "new.toml";
  const auto with = [&](const char* text) {
    std::ofstream(config) << text;
    return run(path, config);
  };
  Ran ran = with("[threshold]\nmin = \"2Gbps\"\n");
  EXPECT_EQ(ran.code, 3);  // the check would have gone on to measure, and did not
  EXPECT_THAT(ran.out, HasSubstr("below the threshold once"));
  ran = with("[threshold]\nmin = \"2Gbps\"\n[[rule]]\npartition = \"gpu\"\nmin = \"200Mbps\"\n");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr(" min=200Mbps "));
  kept["request"] = "900Mbps";  // the user's, who may ask for more
  EXPECT_EQ(file(kept.dump()), path);
  EXPECT_THAT(with("[threshold]\nmin = \"200Mbps\"\n").out, HasSubstr(" min=900Mbps "));
  judge::model::Network network;
  network.transmit[{2, 0}] = 0.1;  // 100 Mb/s
  EXPECT_EQ(file(record(network).dump()), path);
  EXPECT_EQ(run(path).code, 1);
  EXPECT_EQ(with("[threshold]\nmin = \"50Mbps\"\n").code, 0);
  EXPECT_EQ(with("[threshold]\nmin = \"200Mbps\"\n").code, 1);
  expect_refusal(with("[threshold]\nmax = 1\n"), "new.toml:2", "max");
  expect_refusal(run(path, folder_ / "gone.toml"), "gone.toml", "there is no such file");
}

TEST_F(Replay, NamesTheSlowNodeAndExitsWithOne) {
  judge::model::Network network;
  network.transmit[{2, 0}] = 0.1;
  const Ran ran = run(file(record(network).dump()));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, StartsWith("netcheck=fail "));
  EXPECT_THAT(ran.out, HasSubstr(" slow=n2(tx: "));
}

TEST_F(Replay, ExitsWithThreeWhereNothingCouldBeMeasured) {
  const Ran ran = run_harmed([](Json& record) {
    record["report"]["history"] = {
        {"done", Json::array()},
        {"missing", {{{"node", 3}, {"phase", "rendezvous"}, {"detail", "no answer"}}}}};
  });
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.out, StartsWith("netcheck=inconclusive "));
  EXPECT_THAT(ran.out, HasSubstr("n3"));
}

TEST_F(Replay, WantsTheNetcheckThatWroteAnOlderOrNewerRecord) {
  for (const int schema : {0, 1, prolog::kRecordSchema + 1}) {
    const Ran ran = run_harmed([&](Json& record) { record["schema"] = schema; });
    expect_refusal(ran, folder_, "it is of schema " + std::to_string(schema) + ", and this netcheck reads");
    EXPECT_THAT(ran.err, HasSubstr("use the netcheck of the version that wrote it"));
  }
}

TEST_F(Replay, SendsAFollowersReaderToTheFirstNode) {
  const Ran ran = run_harmed([](Json& record) {
    record["leader"] = false;
    record["node"] = "n2";
  });
  expect_refusal(ran, folder_, "it is that of n2");
  EXPECT_THAT(ran.err, HasSubstr("the job's first node, on n0"));
}

TEST_F(Replay, SaysWhereNothingWasMeasured) {
  expect_refusal(run_harmed([](Json& record) { record.erase("report"); }), folder_, "it holds no samples");
}

TEST_F(Replay, KnowsWhereRecordsLieIfThereIsNone) {
  expect_refusal(run(folder_ / "gone"), folder_, "there is no such file");
  const Ran number = run("17");
  expect_refusal(number, " 17", "wants the path of one");
  EXPECT_THAT(number.err, HasSubstr("/run/netcheck/records/*-17-*.json"));
  expect_refusal(run(""), "", "there is no such file");
}

TEST_F(Replay, OpensNothingThatIsNoFile) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);  // whose reader would wait for good
  for (const fs::path& bad : {folder_, folder_ / "pipe", fs::path("/dev/zero")})
    expect_refusal(run(bad), bad, "it is no regular file");
}

TEST_F(Replay, RefusesWhatWasDamaged) {
  const std::string whole = record().dump();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1})
    expect_refusal(run(file(whole.substr(0, bytes))), folder_, "it is no JSON");
  expect_refusal(run(file(whole + whole)), folder_, "it is no JSON");
  for (const char* other : {"null", "[]", "17", R"("text")", "{}"})
    expect_refusal(run(file(other)), folder_, "record");
}

TEST_F(Replay, RefusesFieldsOfAnotherKind) {
  for (const char* key : {"schema", "leader", "report", "time"})
    for (const Json& other : {Json(nullptr), Json("x"), Json::array(), Json(-1), Json(1e300)}) {
      const Ran ran = run_harmed([&](Json& record) { record[key] = other; });
      expect_refusal(ran, folder_, key);
    }
}

TEST_F(Replay, RefusesAHistoryThatDoesNotFitItsPlan) {
  const auto harmed = [&](const char* pointer, const Json& value) {
    return run_harmed([&](Json& record) { record.at(Json::json_pointer(pointer)) = value; });
  };
  expect_refusal(harmed("/report/plan/nodes", Json::array()), folder_, "rank that the plan does not");
  expect_refusal(harmed("/report/plan/thresholds", {{"min", 1e300}}), folder_, "min is out of range");
  expect_refusal(harmed("/report/history/done/1/outcomes/0/node", 4), folder_, "node");
  expect_refusal(harmed("/report/history/done/1/outcomes/0/samples/0/done", {INT64_MAX}), folder_, "");
  expect_refusal(harmed("/report/history/done", Json(10'000, Json::object())), folder_, "done");
}

// Of whoever handed the file over: root may be the one who replays it.
TEST_F(Replay, IsNotKeptBusyByAHostileFile) {
  const std::string more(33u << 20, ' ');  // twice a report's 16 MiB, and one more
  expect_refusal(run(file(more)), folder_, "it is larger than 33554432 bytes");
  expect_refusal(run(file(std::string(32u << 20, '['))), folder_, "nested too deep");
  std::string objects;
  for (int i = 0; i < 100'000; ++i)
    objects += R"({"report":)";
  expect_refusal(run(file(objects)), folder_, "nested too deep");
  expect_refusal(run(file(R"({"schema":2,"schema":1})")), folder_, "a repeated key");
  Ran ran = run_harmed([](Json& record) {
    record["leader"] = false;
    record["node"] = "n\x1b[2J\n";
    record["nodes"] = {"\x1b[31mn0\nnetcheck=pass"};
  });
  expect_refusal(ran, folder_, "it is that of n");
  EXPECT_THAT(ran.err, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace netcheck
