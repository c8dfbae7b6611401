// netcheck-fabric-unlinkable.so: needs a library that is not there, as a module does on a node without UCX.
extern "C" int netcheck_test_from_nowhere();
extern "C" [[gnu::visibility("default")]] int netcheck_fabric_module() {
  return netcheck_test_from_nowhere();
}
