// What Slurm loads: plugstack.conf, the plugin's file, what the two mean for this Slurm.
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "doctor/plugin.h"

#ifdef NETCHECK_PLUGIN_FILE
extern "C" {
#include <slurm/slurm_version.h>
}
#endif

namespace netcheck::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PlugstackSource files(std::map<std::string, std::string> texts) {
  return {.read = [texts](const std::string& path) -> std::optional<std::string> {
            const auto found = texts.find(path);
            return found == texts.end() ? std::nullopt : std::optional(found->second);
          },
          .expand =
              [texts](const std::string& pattern) {
                std::vector<std::string> found;  // "DIR/*" or a name
                const bool all = pattern.ends_with('*');
                for (const auto& [path, text] : texts)
                  if (all ? path.starts_with(pattern.substr(0, pattern.size() - 1)) : path == pattern)
                    found.push_back(path);
                return found;
              }};
}

TEST(DoctorPlugstack, IsReadWithItsIncludesInPlace) {
  const Plugstack all = parse_plugstack(
      "/etc/slurm/plugstack.conf",
      files({{"/etc/slurm/plugstack.conf",
              "# a comment\n\nrequired\t/usr/lib/first.so  a=1 # not this\ninclude plugstack.conf.d/*\n"
              "optional last.so\nnonsense\noptional\n"},
             {"/etc/slurm/plugstack.conf.d/netcheck.conf",
              "optional /usr/lib/slurm/netcheck.so timeout=30 config=/a config=/b"}}));
  ASSERT_EQ(all.lines.size(), 3U);
  EXPECT_EQ(all.lines[0].place, "/etc/slurm/plugstack.conf:3");
  EXPECT_TRUE(all.lines[0].required);
  EXPECT_THAT(all.lines[0].arguments, ElementsAre("a=1"));
  EXPECT_EQ(all.lines[1].place, "/etc/slurm/plugstack.conf.d/netcheck.conf:1");
  EXPECT_EQ(plugin_settings(all.lines[1]).config, "/b");  // the last one counts
  EXPECT_EQ(all.lines[2].plugin, "last.so");
  EXPECT_EQ(netcheck_line(all), &all.lines[1]);
  EXPECT_EQ(plugin_timeout(all), std::chrono::seconds(30));
}

TEST(DoctorPlugstack, EndsWhereAFileIncludesItself) {
  const Plugstack all = parse_plugstack(
      "/p.conf", files({{"/p.conf", "include /p.conf\noptional netcheck.so timeout=nonsense\n"}}));
  EXPECT_FALSE(all.lines.empty());
  EXPECT_EQ(plugin_timeout(all), std::chrono::seconds(25));  // as the plugin takes a slip: the built-in value
  EXPECT_THAT(parse_plugstack("/none", files({})).unread, ElementsAre("/none"));
}

#ifdef NETCHECK_PLUGIN_FILE
std::string built_plugin() {
  std::ifstream file(NETCHECK_PLUGIN_FILE, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(DoctorPluginFile, SaysForWhichSlurmItWasBuilt) {
  const auto file = read_plugin_file(built_plugin(), "netcheck.so");
  ASSERT_TRUE(file) << describe(file.error());
  EXPECT_EQ(file->name, "netcheck");
  EXPECT_EQ(file->type, "spank");
  EXPECT_EQ(file->version, static_cast<std::uint32_t>(SLURM_VERSION_NUMBER));
}

TEST(DoctorPluginFile, MayBeAnything) {
  const std::string whole = built_plugin();
  for (std::size_t size = 0; size < 8'192; size += 7)
    EXPECT_FALSE(read_plugin_file(whole.substr(0, size), "x")) << size;
  // Each byte of the ELF header wrong in turn: an answer, or an error, and nothing beyond the file is read.
  for (std::size_t at = 0; at < 64; ++at)
    for (const char wrong : {'\x00', '\x7f', '\xff'}) {
      std::string broken = whole;
      broken[at] = wrong;
      static_cast<void>(read_plugin_file(broken, "x"));
    }
  EXPECT_THAT(read_plugin_file("#!/bin/sh\n", "x").error().reason, HasSubstr("no shared object"));
  std::string other = whole;
  other[18] = '\x28';  // e_machine: ARM
  other[19] = '\x00';
  const auto foreign = read_plugin_file(other, "x");
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().reason, HasSubstr("another kind of machine"));
}
#endif

/// A node on which all is well.
PluginFacts well() {
  PluginFacts facts;
  facts.plugstack_file = "/etc/slurm/plugstack.conf";
  facts.plugstack_exists = true;
  facts.plugstack.lines = {{.place = "/etc/slurm/plugstack.conf:1", .plugin = "/usr/lib/slurm/netcheck.so"}};
  facts.file = PluginFile{"netcheck", "spank", (22U << 16U) + (5U << 8U) + 3U};
  facts.slurm = SlurmVersion{22, 5, 8};
  facts.help = "Usage…\n      --netcheck=SPEC  …\n";
  facts.computes = facts.slurmd_runs = true;
  facts.slurmd_has_it = true;
  facts.config = "/etc/netcheck/netcheck.toml";
  facts.prologs_known = true;
  return facts;
}

FileFacts script_file(mode_t mode) {
  return {.path = "/etc/slurm/prolog.d/netcheck", .there = true, .regular = true, .mode = mode};
}
PrologScript script(mode_t mode) {
  return {.file = script_file(mode)};
}

/// The first of the worst findings, and its line.
Finding worst(const PluginFacts& facts) {
  return std::ranges::max(check_plugin(facts), {}, &Finding::level);
}

TEST(DoctorPlugin, IsAllRightWhereSlurmLoadsIt) {
  const Findings findings = check_plugin(well());
  ASSERT_EQ(findings.size(), 4U);  // plugstack.conf, plugin, plugin loads, slurmd
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.level, Level::ok) << finding.what << ": " << finding.why;
}

TEST(DoctorPlugin, NamesWhatKeepsSlurmFromCallingIt) {
  struct Case {
    const char* what;
    std::function<void(PluginFacts&)> spoil;
    Level level;
    const char* why;
    const char* remedy;
  };
  const std::vector<Case> cases{
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines.clear(); }, Level::fail, "has no line",
       "include"},
      {"plugstack.conf",
       [](PluginFacts& f) {
         f.plugstack.lines.clear();
         f.plugstack_exists = false;
       },
       Level::fail, "there is no /etc/slurm/plugstack.conf", "make it"},
      {"plugstack.conf",
       [](PluginFacts& f) {
         f.plugstack.lines.clear();
         f.plugstack.unread = {"/etc/slurm/plugstack.conf"};
       },
       Level::unseen, "cannot be read", "root"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines[0].required = true; }, Level::warn,
       "no job starts", "optional"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines.push_back(f.plugstack.lines[0]); },
       Level::warn, "more than one", "leave one"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines[0].arguments = {"config=/other.toml"}; },
       Level::warn, "/other.toml", "--config /other.toml"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines[0].arguments = {"timout=30"}; }, Level::warn,
       "plugstack.conf:1: 'timout=30': unknown argument 'timout', did you mean 'timeout='?; the plugin "
       "ignores it, and "
       "timeout=25 counts",
       "mend"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines[0].arguments = {"run_directroy=/x"}; },
       Level::warn, "run_directory=/run/netcheck counts", "mend"},
      {"plugstack.conf",
       [](PluginFacts& f) {
         f.plugstack.lines[0].arguments = {"timeout=30", "timeout=300"};
       },
       Level::warn,
       "'timeout=300': timeout= must be whole seconds from 1 to 120; the plugin ignores it, and timeout=30 "
       "counts",
       "mend"},
      {"plugstack.conf", [](PluginFacts& f) { f.plugstack.lines[0].arguments = {"xyzzy"}; }, Level::warn,
       "they are program=", "mend"},
      {"Prolog", [](PluginFacts& f) { f.prologs = {{.pattern = "/etc/slurm/prolog.d/*"}}; }, Level::fail,
       "Prolog=/etc/slurm/prolog.d/* fits no file on this node: slurmd drains it", "slurm.conf"},
      {"Prolog",
       [](PluginFacts& f) {
         f.prologs = {{.pattern = "/etc/slurm/prolog.d/*", .files = {script_file(0755), script_file(0644)}}};
       },
       Level::fail, "fits /etc/slurm/prolog.d/netcheck, which cannot be executed", "chmod 0755"},
      {"Prolog",
       [](PluginFacts& f) {
         f.prologs = {
             {.pattern = "/p/*", .files = {{.path = "/p/old", .there = true, .folder = true, .mode = 0755}}}};
       },
       Level::fail, "fits /p/old, which is no file", "remove it"},
      {"Prolog", [](PluginFacts& f) { f.prologs = {{.pattern = "/p/*", .hidden = true}}; }, Level::unseen,
       "cannot be read", "root"},
      {"Prolog script",
       [](PluginFacts& f) {
         f.script = script(0755);
         f.script->program_usable = fail("start", "/x", "there is no such file", "program= in the script");
       },
       Level::fail, "no such file", "program="},
      {"Prolog script",
       [](PluginFacts& f) {
         f.script = script(0755);
         f.script->limit = "30s";
       },
       Level::fail, "limit=30s is no number of seconds", "limit=25"},
      {"Prolog script",
       [](PluginFacts& f) {
         f.script = script(0755);
         f.script->config = "/other.toml";
       },
       Level::warn, "/other.toml", "--config /other.toml"},
      {"Prolog", [](PluginFacts& f) { f.prologs_known = false; }, Level::unseen, "not known: which scripts",
       "Slurm's settings"},
      {"Prolog script", [](PluginFacts& f) { f.script = script(0777); }, Level::fail, "may write it",
       "chmod go-w"},
      {"plugin",
       [](PluginFacts& f) {
         f.slurm = SlurmVersion{22, 6, 0};
       },
       Level::fail, "22.06.0 runs here", "SLURM_INCLUDE_DIR"},
      {"plugin",
       [](PluginFacts& f) {
         f.slurm = SlurmVersion{21, 8, 0};
       },
       Level::fail, "does not load", "headers"},
      {"plugin", [](PluginFacts& f) { f.slurm.reset(); }, Level::unseen, "not known", "sinfo"},
      {"plugin",
       [](PluginFacts& f) {
         f.file = PluginFile{"lua", "spank", 1};
       },
       Level::fail, "'lua'", "install"},
      {"plugin", [](PluginFacts& f) { f.file = fail("read", "x", "no shared object", "install it"); },
       Level::fail, "no shared object", "install it"},
      {"plugin",
       [](PluginFacts& f) { f.trusted = fail("trust", "x", "others may write it", "chmod go-w x"); },
       Level::fail, "others may write it", "chmod go-w x"},
      {"plugin loads",
       [](PluginFacts& f) {
         f.help = "sbatch: error: spank: /x/netcheck.so: Incompatible plugin version\nUsage\n";
       },
       Level::fail, "Incompatible plugin version", "above"},
      {"plugin loads", [](PluginFacts& f) { f.help = "Usage…\n"; }, Level::fail, "does not offer", "above"},
      {"plugin loads", [](PluginFacts& f) { f.help.reset(); }, Level::unseen, "no sbatch", "PATH"},
      {"plugin loads", [](PluginFacts& f) { f.help = fail("run", "sbatch", "no answer", ""); }, Level::unseen,
       "no answer", ""},
      {"slurmd", [](PluginFacts& f) { f.slurmd_has_it = false; }, Level::fail, "without the plugin",
       "restart slurmd"},
      {"slurmd", [](PluginFacts& f) { f.slurmd_has_it.reset(); }, Level::unseen, "root", "root"},
      {"slurmd", [](PluginFacts& f) { f.slurmd_runs = false; }, Level::warn, "does not run", "start"},
      {"program",
       [](PluginFacts& f) { f.program_trusted = fail("start", "/x", "there is no such file", "program="); },
       Level::fail, "no such file", "program="},
  };
  for (const Case& one : cases) {
    PluginFacts facts = well();
    one.spoil(facts);
    const Finding finding = worst(facts);
    EXPECT_EQ(finding.what, one.what) << one.why;
    EXPECT_EQ(name(finding.level), name(one.level)) << finding.why;
    EXPECT_THAT(finding.why, HasSubstr(one.why));
    EXPECT_THAT(finding.remedy, HasSubstr(one.remedy));
  }
}

TEST(DoctorPlugin, IsTakenByASlurmThatComparesNoVersions) {
  PluginFacts facts = well();
  facts.slurm = SlurmVersion{20, 11, 9};  // from 21.08 on they are compared
  EXPECT_EQ(worst(facts).level, Level::ok);
}

TEST(DoctorPlugin, IsNotMissedWhereTheSiteHasThePrologScriptAlone) {
  PluginFacts facts = well();
  facts.plugstack = {};
  facts.plugstack_exists = false;
  facts.prologs = {{.pattern = "/etc/slurm/prolog.d/*", .files = {script_file(0755)}}};
  EXPECT_EQ(worst(facts).level, Level::fail);  // another script of the site's
  facts.script = script(0755);
  const Findings findings = check_plugin(facts);
  ASSERT_EQ(findings.size(), 3U);  // plugstack.conf, Prolog, Prolog script
  for (const Finding& finding : findings)
    EXPECT_EQ(finding.level, Level::ok) << finding.why;
  EXPECT_THAT(findings[0].why, HasSubstr("--comment"));
  // A login node does not have the script, and cannot tell which one compute nodes have.
  facts.script.reset();
  facts.computes = facts.slurmd_runs = false;
  EXPECT_EQ(worst(facts).level, Level::warn);
  facts.prologs.clear();
  EXPECT_EQ(worst(facts).level, Level::fail);
}

TEST(DoctorPlugin, SaysOnceThatItsScriptCannotBeExecuted) {
  PluginFacts facts = well();
  facts.script = script(0644);
  facts.prologs = {{.pattern = "/etc/slurm/prolog.d/*", .files = {script_file(0644), script_file(0755)}}};
  const Findings findings = check_plugin(facts);
  EXPECT_EQ(std::ranges::count(findings, Level::fail, &Finding::level), 1);
  EXPECT_EQ(worst(facts).what, "Prolog");
  EXPECT_THAT(worst(facts).remedy, HasSubstr("chmod 0755 /etc/slurm/prolog.d/netcheck"));
}

TEST(DoctorPlugin, DoesNotMissItsLineWhereTheControllerCannotSayWhetherAScriptMakesTheChecks) {
  PluginFacts facts = well();
  facts.plugstack = {};
  facts.prologs_known = false;
  EXPECT_EQ(worst(facts).what, "plugstack.conf");
  EXPECT_EQ(name(worst(facts).level), name(Level::unseen));
  facts.computes = facts.slurmd_runs = false;  // a login node has no Prolog= to look at
  const Findings findings = check_plugin(facts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].what, "plugstack.conf");
}

TEST(DoctorPlugin, LooksForNoFilesOfPrologOnALoginNode) {
  PluginFacts facts = well();
  facts.computes = facts.slurmd_runs = false;
  facts.prologs = {{.pattern = "/etc/slurm/prolog.d/*"}};
  EXPECT_EQ(worst(facts).level, Level::ok);
}

TEST(DoctorPrologScript, SaysWhatItStartsAndForHowLong) {
  const PrologScript script = parse_prolog_script(
      "#!/bin/sh\n# program=/comment limit=1\n\nprogram=/opt/sbin/netcheck\n  config=\"/etc/n c.toml\" # "
      "this\n"
      "limit=20\nlimit=30 # seconds\n[ -x \"$program\" ]\nprogramme=/no\n");
  EXPECT_EQ(script.program, "/opt/sbin/netcheck");
  EXPECT_EQ(script.config, "/etc/n c.toml");
  EXPECT_EQ(script_limit(script), std::chrono::seconds(30));
  const PrologScript other = parse_prolog_script("program=$HOME/netcheck\nlimit=${1:-3}\nconfig=\"open\n");
  EXPECT_EQ(other.program, std::nullopt);  // only a shell knows
  EXPECT_EQ(other.config, std::nullopt);
  EXPECT_EQ(script_limit(other), std::nullopt);
  EXPECT_EQ(script_limit(parse_prolog_script("limit=0\n")), std::nullopt);  // timeout(1): no limit
  EXPECT_EQ(parse_prolog_script("program=").program, "");
}

TEST(DoctorPlugin, AsksNoSlurmdOfALoginNode) {
  PluginFacts facts = well();
  facts.computes = facts.slurmd_runs = false;
  facts.slurmd_has_it.reset();
  EXPECT_EQ(worst(facts).level, Level::ok);
}

}  // namespace
}  // namespace netcheck::doctor
