# facts about the host and the session's control group
cm_unit_test(host_cgroup DEPS host_cgroup)
# these make real groups: as root, and they skip what the host's hierarchies do not have
foreach(name cgroup cgroup_tree)
	cm_unit_test(${name} DEPS mech_cgroup host_cgroup)
	target_sources(test_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/cgroup_ground.c")
	set_tests_properties(unit.${name} PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endforeach()
cm_unit_test(scope DEPS scope_text)
