// The `fabric` subcommand alone, for tests of the fabric child: fabric_host fabric NAME --module-directory
// DIR
#include <cstdio>
#include <cstring>

#include "fabric/child.h"

int main(int argc, char** argv) {
  if (argc != 5 || std::strcmp(argv[1], "fabric") != 0 || std::strcmp(argv[3], "--module-directory") != 0) {
    std::fprintf(stderr, "usage: fabric_host fabric NAME --module-directory DIR\n");
    return 2;
  }
  return netcheck::fabric::host(argv[2], argv[4], 3);
}
