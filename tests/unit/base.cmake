# Whole archives, so that a symbol that any member of them wants and musl lacks fails the link.
cm_static_executable(test_base_static SOURCES test_base_static.c DEPS json base
	ARCHIVES -Wl,--whole-archive ${CM_YAJL_ARCHIVE} ${CM_CAP_ARCHIVE} -Wl,--no-whole-archive
		cm_fortify_st)
add_test(NAME unit.base_static COMMAND test_base_static)
set_tests_properties(unit.base_static PROPERTIES LABELS unit TIMEOUT 60)
# not among the programs that are installed
set_target_properties(test_base_static PROPERTIES
	RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")

foreach(area base64 buf error fd fields gitref giturl loop num path remove sock submodule text tree_size)
	cm_unit_test(base_${area} DEPS base)
endforeach()
foreach(area json json_write)
	cm_unit_test(base_${area} DEPS json base)
endforeach()
cm_unit_test(first_memory DEPS base)
target_sources(test_first_memory PRIVATE ${PROJECT_SOURCE_DIR}/runtime/base/first_memory.c)
