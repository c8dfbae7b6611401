// Plan and History as JSON: what is written is read again, and what does not fit is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "contract/wire.h"
#include "judge_model.h"

namespace netcheck::judge {
namespace {

using model::plan_for;

Plan full_plan() {
  Plan plan = plan_for(9, 2);
  plan.thresholds = {
      .min = Rate{4e11}, .site_floor = Rate{1e11}, .min_per_rail = Rate{5e10}, .min_per_pair = Rate{3e11}};
  plan.op = Op::all_reduce;
  plan.algorithm = "ring";
  plan.seed = 77;
  return plan;
}

History full_history() {
  model::Network network;
  network.cut = {3, 4};
  History history = model::play(full_plan(), network).history;
  history.missing.push_back({.node = 8, .phase = Phase::blame, .detail = "no answer in time"});
  history.refusal = Refusal{Phase::open, "because"};
  return history;
}

/// Through the text of a record and back.
Json reread(const Json& json) {
  return Json::parse(json.dump());
}

TEST(HistoryJson, PlanSurvivesARoundTrip) {
  const Plan plan = plan_from_json(reread(to_json(full_plan())));
  EXPECT_EQ(to_json(plan), to_json(full_plan()));
  EXPECT_EQ(plan.thresholds.min, Rate{4e11});
  EXPECT_EQ(plan.nodes[8].lanes, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(plan.op, Op::all_reduce);
  EXPECT_EQ(plan.slice, full_plan().slice);
}

TEST(HistoryJson, HistorySurvivesARoundTripAndIsJudgedTheSame) {
  const History history = full_history();
  const History read = history_from_json(reread(to_json(history)), full_plan());
  EXPECT_EQ(to_json(read), to_json(history));
  ASSERT_EQ(read.done.size(), history.done.size());
  for (std::size_t i = 0; i < read.done.size(); ++i)
    EXPECT_EQ(read.done[i].step, history.done[i].step);
  History present = read;
  present.missing.clear();
  present.refusal.reset();
  History original = history;
  original.missing.clear();
  original.refusal.reset();
  EXPECT_EQ(line(decide(full_plan(), present), full_plan(), Ns(0)),
            line(decide(full_plan(), original), full_plan(), Ns(0)));
}

TEST(HistoryJson, AnEmptyPlanAndHistoryAreFine) {
  EXPECT_EQ(to_json(plan_from_json(to_json(Plan{}))), to_json(Plan{}));
  EXPECT_EQ(to_json(history_from_json(to_json(History{}), Plan{})), to_json(History{}));
}

struct Hostile {
  const char* what;
  std::function<void(Json&)> harm;
};

/// The first Measure's part of the history.
Json& measure(Json& history) {
  for (Json& done : history["done"])
    if (done["step"]["kind"] == "measure") return done;
  throw std::logic_error("no measure");
}
Json& sample(Json& history) {
  return measure(history)["outcomes"][1]["samples"][0];
}

class HostileHistory : public testing::TestWithParam<Hostile> {};

TEST_P(HostileHistory, IsRefused) {
  Json json = to_json(full_history());
  ASSERT_NO_THROW((void)history_from_json(json, full_plan()));
  GetParam().harm(json);
  EXPECT_THROW((void)history_from_json(json, full_plan()), Malformed) << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(
    Json, HostileHistory,
    testing::Values(
        Hostile{"node index out of range", [](Json& j) { measure(j)["outcomes"][0]["node"] = 9; }},
        Hostile{"negative node", [](Json& j) { measure(j)["outcomes"][0]["node"] = -1; }},
        Hostile{"a node answers twice", [](Json& j) { measure(j)["outcomes"][0]["node"] = 1; }},
        Hostile{"missing node out of range", [](Json& j) { j["missing"][0]["node"] = 9; }},
        Hostile{"unknown phase", [](Json& j) { j["missing"][0]["phase"] = "lunch"; }},
        Hostile{"unknown trouble", [](Json& j) { measure(j)["outcomes"][0]["trouble"] = "sad"; }},
        Hostile{"another node's rank", [](Json& j) { sample(j)["rank"] = 0; }},
        Hostile{"a rank outside the team", [](Json& j) { sample(j)["rank"] = 60000; }},
        Hostile{"a rank twice",
                [](Json& j) {
                  Json& outcome = measure(j)["outcomes"][1];
                  outcome["samples"].push_back(outcome["samples"][0]);
                  outcome["batch"].push_back(outcome["batch"][0]);
                }},
        Hostile{"more completions than iterations",
                [](Json& j) { sample(j)["done"] = {1, 2, 3, 4, 5, 6, 7, 8, 9}; }},
        Hostile{"falling completions",
                [](Json& j) {
                  sample(j)["done"] = {5, 4};
                }},
        Hostile{"negative completion", [](Json& j) { sample(j)["done"] = {-5}; }},
        Hostile{"a completion after centuries", [](Json& j) { sample(j)["done"] = {INT64_MAX}; }},
        Hostile{"fractional completion", [](Json& j) { sample(j)["done"] = {0.5}; }},
        Hostile{"infinite wrong",
                [](Json& j) { sample(j)["wrong"] = std::numeric_limits<double>::infinity(); }},
        Hostile{"a thousand samples",
                [](Json& j) {
                  Json& outcome = measure(j)["outcomes"][1];
                  for (int i = 0; i < 1000; ++i) {
                    outcome["samples"].push_back(outcome["samples"][0]);
                    outcome["batch"].push_back(1);
                  }
                }},
        Hostile{"samples without batch", [](Json& j) { measure(j)["outcomes"][1]["batch"].clear(); }},
        Hostile{"a batch that was not run",
                [](Json& j) { measure(j)["outcomes"][1]["batch"][0] = 4'000'000; }},
        Hostile{"a batch without team",
                [](Json& j) { measure(j)["step"]["batches"][0]["team"] = 4'000'000; }},
        Hostile{"a batch twice",
                [](Json& j) {
                  Json& batches = measure(j)["step"]["batches"];
                  batches.push_back(batches[0]);
                }},
        Hostile{"a team twice", [](Json& j) { j["done"].push_back(j["done"][0]); }},
        Hostile{"a rank that the plan has not",
                [](Json& j) {
                  j["done"][0]["step"]["teams"][0]["ranks"][0] = {8, 2};
                }},
        Hostile{"a node in two teams",
                [](Json& j) {
                  j["done"][0]["step"]["teams"][0]["ranks"][0] = j["done"][0]["step"]["teams"][1]["ranks"][0];
                }},
        Hostile{"a stop that was done",
                [](Json& j) {
                  j["done"][0]["step"] = {{"kind", "stop"}};
                }},
        Hostile{"time that overflows", [](Json& j) { j["done"][0]["took"] = INT64_MAX; }},
        Hostile{"allowance that overflows", [](Json& j) { measure(j)["step"]["allowance"] = INT64_MAX; }},
        Hostile{"too many steps",
                [](Json& j) {
                  const Json done{{"step", {{"kind", "form"}, {"phase", "open"}, {"teams", Json::array()}}},
                                  {"outcomes", Json::array()},
                                  {"transport", ""},
                                  {"took", 0}};
                  for (int i = 0; i < 200; ++i)
                    j["done"].push_back(done);
                }},
        Hostile{"no list", [](Json& j) { j["done"] = 3; }},
        Hostile{"no object", [](Json& j) { j = Json::array(); }},
        Hostile{"a field is gone", [](Json& j) { measure(j)["outcomes"][0].erase("took"); }}));

class HostilePlan : public testing::TestWithParam<Hostile> {};

TEST_P(HostilePlan, IsRefused) {
  Json json = to_json(full_plan());
  GetParam().harm(json);
  EXPECT_THROW((void)plan_from_json(json), Malformed) << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(
    Json, HostilePlan,
    testing::Values(
        Hostile{"min is no number", [](Json& j) { j["thresholds"]["min"] = "fast"; }},
        Hostile{"min is infinite",
                [](Json& j) { j["thresholds"]["min"] = std::numeric_limits<double>::infinity(); }},
        Hostile{"min is nan",
                [](Json& j) { j["thresholds"]["min"] = std::numeric_limits<double>::quiet_NaN(); }},
        Hostile{"min is negative", [](Json& j) { j["thresholds"]["min"] = -1.0; }},
        Hostile{"a gate of transfers", [](Json& j) { j["op"] = "transfer"; }},
        Hostile{"unknown type", [](Json& j) { j["type"] = "f128"; }},
        Hostile{"a lane is a number", [](Json& j) { j["nodes"][0]["lanes"][0] = 4; }},
        Hostile{"a long name", [](Json& j) { j["nodes"][0]["name"] = std::string(10'000, 'n'); }},
        Hostile{"a slice of centuries", [](Json& j) { j["slice"] = INT64_MAX; }},
        Hostile{"negative budget", [](Json& j) { j["budget"] = -5; }}));

}  // namespace
}  // namespace netcheck::judge
