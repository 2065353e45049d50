# the planner and the facts about files
cm_unit_test(plan_build DEPS plan_build host plan spec base)
target_compile_definitions(test_plan_build PRIVATE
	CM_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
cm_unit_test(plan_skeleton DEPS plan_build host plan spec base)
cm_unit_test(env DEPS plan_build host plan spec base)
foreach(area git read refusals tree workspace)
	cm_unit_test(host_${area} DEPS host plan_build plan spec base)
endforeach()
cm_unit_test(host_source DEPS host plan spec base)
cm_unit_test(host_text DEPS host plan base)
