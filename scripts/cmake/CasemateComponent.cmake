# cm_component(NAME SOURCES ... [DEPS ...] [LINK ...] [ARCHIVES ...])
#
# A component is built twice: cm_NAME for the tests and the dynamic helpers, and cm_NAME_st with
# the libc of the static executables.  DEPS are other components (each flavour links its own),
# LINK are libraries for the first flavour, ARCHIVES for the second.  The DEPS are the layer diagram:
# tests/lint checks the include lines.
function(cm_component name)
	cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LINK;ARCHIVES" ${ARGN})
	add_library(cm_${name} STATIC ${arg_SOURCES})
	add_library(cm_${name}_st STATIC ${arg_SOURCES})
	target_compile_options(cm_${name}_st PRIVATE ${CM_STATIC_COMPILE_OPTIONS})
	foreach(dep IN LISTS arg_DEPS)
		target_link_libraries(cm_${name} PUBLIC cm_${dep})
		target_link_libraries(cm_${name}_st PUBLIC cm_${dep}_st)
	endforeach()
	if(arg_LINK)
		target_link_libraries(cm_${name} PUBLIC ${arg_LINK})
	endif()
	if(arg_ARCHIVES)
		target_link_libraries(cm_${name}_st PUBLIC ${arg_ARCHIVES})
	endif()
endfunction()

# cm_static_executable(NAME SOURCES ... DEPS ... [ARCHIVES ...])
function(cm_static_executable name)
	cmake_parse_arguments(arg "" "" "SOURCES;DEPS;ARCHIVES" ${ARGN})
	add_executable(${name} ${arg_SOURCES})
	target_compile_options(${name} PRIVATE ${CM_STATIC_COMPILE_OPTIONS})
	target_link_options(${name} PRIVATE ${CM_STATIC_LINK_OPTIONS})
	foreach(dep IN LISTS arg_DEPS)
		target_link_libraries(${name} PRIVATE cm_${dep}_st)
	endforeach()
	target_link_libraries(${name} PRIVATE ${arg_ARCHIVES})
	set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
endfunction()

# cm_first_memory(NAME BYTES): what a static executable allocates first comes from a range of its own
# (runtime/base/first_memory.c has the reason). With another libc, or a sanitizer, all memory is that one's.
function(cm_first_memory name bytes)
	if(NOT CM_LIBC_CHOSEN STREQUAL "musl" OR CM_SANITIZE)
		return()
	endif()
	target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/runtime/base/first_memory.c")
	target_compile_definitions(${name} PRIVATE CM_FIRST_MEMORY_SIZE=${bytes}UL)
	target_link_options(${name} PRIVATE
		LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free)
endfunction()
