# Asks the user's systemd for a control group; the one executable that links libsystemd.
cm_component(scope_text SOURCES scope_text.c DEPS base)
if(LIBSYSTEMD_FOUND)
	add_executable(casemate-scope scope.c)
	target_link_libraries(casemate-scope PRIVATE cm_scope_text cm_proto cm_plan cm_base PkgConfig::LIBSYSTEMD)
	set_target_properties(casemate-scope PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
	install(TARGETS casemate-scope RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/casemate)
endif()
