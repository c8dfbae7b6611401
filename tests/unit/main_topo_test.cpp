// `netcheck topo` in the test's own process: what it prints, writes, and exits with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "machines.h"
#include "main/topo.h"

namespace netcheck {
namespace {

using testing::HasSubstr;

struct Ran {
  int code = -1;
  std::string out, err;
};

Ran run(const TopoQuestion& question) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ran ran;
  ran.code = show_topology(question);
  ran.out = testing::internal::GetCapturedStdout();
  ran.err = testing::internal::GetCapturedStderr();
  return ran;
}

std::string fixture_file(const std::string& name) {
  return fixture::folder() + "/" + name;
}

TEST(Topo, PrintsARecordedMachine) {
  TopoQuestion question;
  question.xml = fixture_file("hgx.json");
  const Ran ran = run(question);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  for (const char* part :
       {"hgx1, HGX: 2 sockets", "Distances:", "NV18", "Limits:", "8 rails × 400 Gb/s = 3200 Gb/s",
        "Findings:\n  none\n", "[not fabric: 1 × 200 Gb/s beside 8 × 400 Gb/s]"})
    EXPECT_THAT(ran.out, HasSubstr(part));
}

TEST(Topo, PrintsThisMachine) {
  EXPECT_EQ(run({}).code, 0);
}

TEST(Topo, CountsTheJobsGpusOnly) {
  TopoQuestion question;
  question.xml = fixture_file("hgx.json");
  question.gpus = "0-1,6";
  // Two switches' NICs, and of GPU 6's pair both: 4 × 400, but GPU 6 alone has 504 for two.
  EXPECT_THAT(run(question).out, HasSubstr("2 rails × 400 Gb/s + 2 rails × 252 Gb/s = 1304 Gb/s"));
  for (const char* bad : {"x", "0-", "1-0", "0,", "8", "0-8", "-1", "99999999999", "0 1"}) {
    question.gpus = bad;
    const Ran ran = run(question);
    EXPECT_EQ(ran.code, 2) << bad;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }
}

TEST(Topo, TakesTheSitesGlobs) {
  TopoQuestion question;
  question.xml = fixture_file("hgx.json");
  question.exclude = {"mlx5_[0-5]"};
  const Ran ran = run(question);
  EXPECT_THAT(ran.out, HasSubstr("2 rails"));
  EXPECT_THAT(ran.out, HasSubstr("GPUs 0, 1 go to mlx5_6 and mlx5_7 over SYS; nearer, but excluded by the "
                                 "site: mlx5_0 and mlx5_1\n"));
}

TEST(Topo, NotesGlobsThatFitNoPort) {
  TopoQuestion question;
  question.xml = fixture_file("hgx.json");
  question.include = {"mlx5_[0-3]", "mlx6_*", "ib99"};
  Ran ran = run(question);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "netcheck: note: --include mlx6_* ib99: no port here is called that\n");
  question.include = {};
  question.exclude = {"eth9"};
  ran = run(question);
  EXPECT_EQ(ran.err, "netcheck: note: --exclude eth9: no port here is called that\n");
}

/// One that only we can change.
std::string own_folder() {
  std::string folder = testing::TempDir() + "netcheck-topo-XXXXXX";
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  return folder;
}

TEST(Topo, TakesTheSitesFile) {
  TopoQuestion question;
  question.xml = fixture_file("hgx.json");
  const std::string folder = own_folder();
  question.config = folder + "/netcheck.toml";
  std::ofstream(question.config) << "[fabric]\ndevices = [\"mlx5_[01]\"]\nexclude = [\"mlx5_1\"]\n";
  EXPECT_THAT(run(question).out, HasSubstr("8 rails"));  // another site's machine, maybe
  question.must_exist = true;
  EXPECT_THAT(run(question).out, HasSubstr("1 rail × 400 Gb/s"));
  question.include = {"mlx5_[2-4]"};  // the command line first
  EXPECT_THAT(run(question).out, HasSubstr("[not fabric: not among the site's devices]"));
  question.include.clear();
  std::ofstream(question.config) << "[fabric]\ndevises = []\n";
  EXPECT_EQ(run(question).code, 2);
  question.config += ".not";
  EXPECT_EQ(run(question).code, 2);
  std::filesystem::remove_all(folder);
}

// "Eight GPUs" of a rule for this class of hardware; of another class nothing is said.
TEST(Topo, MissesWhatTheSiteSaysIsThere) {
  TopoQuestion question;
  question.xml = fixture_file("pcie-server.json");
  const std::string folder = own_folder();
  question.config = folder + "/netcheck.toml";
  question.must_exist = true;
  std::ofstream(question.config) << "[[rule]]\nhardware = 'PCIe*'\ngpus = 8\nports = 3\n";
  const Ran ran = run(question);
  EXPECT_THAT(ran.out, HasSubstr("fault    gpus-missing: 4 GPUs are there; the site says 8\n"));
  EXPECT_THAT(ran.out, HasSubstr("fault    ports-missing: 2 fabric ports are there; the site says 3\n"));
  question.xml = fixture_file("cpu-hdr.json");
  EXPECT_THAT(run(question).out, HasSubstr("Findings:\n  none\n"));
  std::filesystem::remove_all(folder);
}

TEST(Topo, TakesTheSitesDescriptionOfItsMachines) {
  TopoQuestion question;
  question.xml = fixture_file("pcie-server.json");
  const std::string folder = own_folder();
  const std::string file = folder + "/cloud.xml";
  std::filesystem::copy_file(fixture_file("cloud.nccl.xml"), file);
  question.config = folder + "/netcheck.toml";
  question.must_exist = true;
  std::ofstream(question.config) << "[hardware]\nnccl_topology = '" << file << "'\n";
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  if (::geteuid() == 0) {
    EXPECT_THAT(run(question).out, HasSubstr("note: what is near to what is as in " + file));
  }
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  const Ran ran = run(question);  // anybody could have put another there
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("it can be changed by others than root"));
  std::filesystem::remove_all(folder);
}

TEST(Topo, LoadsNoLibraryThatOthersCanChange) {
  TopoQuestion question;
  const std::string folder = own_folder(), library = folder + "/libnvidia-ml.so.1";
  std::ofstream(library) << "anybody's";
  std::filesystem::permissions(library, std::filesystem::perms(0666));
  question.config = folder + "/netcheck.toml";
  question.must_exist = true;
  std::ofstream(question.config) << "[nccl]\nwatcher = '" << library << "'\n";
  const Ran ran = run(question);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr(library + ": it can be changed by others than root"));
  std::filesystem::permissions(library, std::filesystem::perms(0644));
  EXPECT_EQ(run(question).code, 0);  // whatever comes of loading it
  std::filesystem::remove_all(folder);
}

TEST(Topo, TakesNcclsWordOnWhatIsNear) {
  TopoQuestion question;
  question.xml = fixture_file("pcie-server.json");
  question.nccl = fixture_file("cloud.nccl.xml");
  const Ran ran = run(question);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("note: what is near to what is as in " + question.nccl));
  EXPECT_THAT(ran.out, HasSubstr("warning  nccl-differs:"));
  question.nccl = "/nonexistent";
  EXPECT_EQ(run(question).code, 2);
}

TEST(Topo, SavesWhatItCanReadAgain) {
  TopoQuestion question;
  question.xml = fixture_file("pcie-server.json");
  question.save = testing::TempDir() + "saved.json";
  question.svg = testing::TempDir() + "drawn.svg";
  ASSERT_EQ(run(question).code, 0);
  std::ifstream drawn(question.svg);
  std::string first;
  std::getline(drawn, first);
  EXPECT_THAT(first, testing::StartsWith("<svg"));
  TopoQuestion same;
  same.compare = {question.xml, question.save};
  const Ran ran = run(same);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "no differences\n");
}

TEST(Topo, TellsTwoMachinesApart) {
  TopoQuestion question;
  question.compare = {fixture_file("hgx.json"), fixture_file("pcie-server.json")};
  const Ran ran = run(question);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("GPUs "));
  question.json = true;
  const Json json = Json::parse(run(question).out);
  EXPECT_EQ(json[0]["what"], "product");
  EXPECT_EQ(json[0]["other"], "PCIe server");
}

TEST(Topo, ExitsWithTwoAndOneLineOnABadFile) {
  TopoQuestion question;
  for (const char* bad : {"/nonexistent", "/dev/null", "/"}) {
    question.xml = bad;
    const Ran ran = run(question);
    EXPECT_EQ(ran.code, 2) << bad;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, testing::StartsWith("netcheck: read "));
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }
  question.xml = fixture_file("hgx.json");
  question.save = "/nonexistent/folder/file";
  EXPECT_EQ(run(question).code, 2);
  question = {};
  question.fsroot = "/nonexistent";
  EXPECT_EQ(run(question).code, 2);
  question = {};
  question.compare = {fixture_file("hgx.json"), "/nonexistent"};
  EXPECT_EQ(run(question).code, 2);
}

TEST(Topo, PrintsJson) {
  TopoQuestion question;
  question.xml = fixture_file("cloud.nccl.xml");
  question.json = true;
  const Json json = Json::parse(run(question).out);
  EXPECT_EQ(json["machine"]["gpus"].size(), 2u);
  EXPECT_EQ(json["matrix"][0]["gpus"][1], "NV12");
}

}  // namespace
}  // namespace netcheck
