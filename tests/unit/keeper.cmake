cm_unit_test(plan_codec DEPS plan base)
cm_unit_test(proto DEPS proto base)
cm_unit_test(image DEPS proto base)
target_sources(test_image PRIVATE "${PROJECT_SOURCE_DIR}/isolation/keeper/image.c")

cm_unit_test(peer DEPS base)
# as before Linux 6.5: an option that no kernel has
add_executable(test_peer_old test_peer.c "${PROJECT_SOURCE_DIR}/runtime/base/peer.c")
target_compile_definitions(test_peer_old PRIVATE CM_SO_PEERPIDFD=32767)
target_link_libraries(test_peer_old PRIVATE cm_base PkgConfig::CMOCKA)
add_test(NAME unit.peer_old COMMAND test_peer_old)
set_tests_properties(unit.peer_old PROPERTIES LABELS unit TIMEOUT 60)
cm_unit_test(outbox DEPS proto base)
target_sources(test_outbox PRIVATE "${PROJECT_SOURCE_DIR}/isolation/keeper/outbox.c")

# With trees that the test makes up.
cm_unit_test(serve_end DEPS proto base)
target_sources(test_serve_end PRIVATE "${PROJECT_SOURCE_DIR}/isolation/keeper/serve_end.c"
	"${PROJECT_SOURCE_DIR}/isolation/keeper/serve_due.c")

cm_unit_test(serve_report DEPS proto base)
target_sources(test_serve_report PRIVATE "${PROJECT_SOURCE_DIR}/isolation/keeper/serve_report.c")

# Makes pid namespaces of its own; skips where there are none to be had.
find_package(Threads REQUIRED)
cm_unit_test(tree DEPS base)
target_sources(test_tree PRIVATE "${PROJECT_SOURCE_DIR}/isolation/keeper/tree.c")
target_link_libraries(test_tree PRIVATE Threads::Threads)
cm_slow_unit_tests(120 tree)
set_tests_properties(unit.tree PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON)

# Makes namespaces of its own, too; each test skips by itself.
cm_unit_test(ns DEPS plan base)
target_sources(test_ns PRIVATE "${PROJECT_SOURCE_DIR}/isolation/mech/ns.c")

# The client's end of it.
cm_unit_test(local_stop DEPS local)

# The programs that it starts are stood in for.
cm_unit_test(local_launch DEPS base)
target_sources(test_local_launch PRIVATE "${PROJECT_SOURCE_DIR}/providers/local/launch.c")

# File operations: frames, and what a receiver makes of them.
cm_unit_test(file_stream DEPS proto base)
cm_unit_test(file_recv DEPS proto base)
cm_unit_test(file_send DEPS proto base)
