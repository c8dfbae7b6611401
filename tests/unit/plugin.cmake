# The plugin's parts and its callbacks against a stand-in for Slurm, and the built file itself.
file(GLOB plugin_parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/*.cpp)
test_sources(sources test_plugin SOURCES ${sources})
add_executable(test_plugin ${sources} ${plugin_parts})
target_include_directories(test_plugin PRIVATE ${CMAKE_SOURCE_DIR}/plugin)
target_include_directories(test_plugin SYSTEM PRIVATE ${SLURM_INCLUDE_DIR})
target_compile_definitions(test_plugin PRIVATE NETCHECK_PROGRAM="/usr/sbin/netcheck")
target_link_libraries(test_plugin PRIVATE netcheck_policy netcheck_system netcheck_contract
                      GTest::gmock GTest::gtest_main)
netcheck_test(test_plugin)
netcheck_cases(test_plugin)

if(NOT NETCHECK_SANITIZE)
  add_test(NAME plugin_file COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/unit/plugin_file $<TARGET_FILE:spank_netcheck>)
endif()
