# Libraries, and which libc the static executables are built with.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LIBSECCOMP REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(LIBCAP REQUIRED IMPORTED_TARGET libcap)
pkg_check_modules(YAJL REQUIRED IMPORTED_TARGET yajl)
pkg_check_modules(LIBGIT2 REQUIRED IMPORTED_TARGET libgit2)
pkg_check_modules(LIBCURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(LIBARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(LIBSYSTEMD IMPORTED_TARGET libsystemd)

# The archives by full path: "-L" would let musl's linker find glibc's libc.a beside them.
find_library(CM_CAP_ARCHIVE NAMES libcap.a REQUIRED)
find_library(CM_YAJL_ARCHIVE NAMES libyajl_s.a libyajl.a REQUIRED)

set(CM_STATIC_COMPILE_OPTIONS "")
set(CM_STATIC_LINK_OPTIONS "")
set(CM_LIBC_CHOSEN "${CM_LIBC}")
if(CM_SANITIZE)
	# a sanitizer's runtime cannot be linked into a static program
	set(CM_LIBC_CHOSEN "shared")
endif()

find_file(CM_MUSL_SPECS NAMES musl-gcc.specs
	PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}-musl /usr/lib/x86_64-linux-musl
		/usr/lib/aarch64-linux-musl /usr/lib/musl/lib)
if(CM_LIBC_CHOSEN STREQUAL "auto")
	if(CM_MUSL_SPECS AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
		set(CM_LIBC_CHOSEN "musl")
	else()
		set(CM_LIBC_CHOSEN "glibc")
	endif()
endif()

if(CM_LIBC_CHOSEN STREQUAL "musl")
	if(NOT CM_MUSL_SPECS OR NOT CMAKE_C_COMPILER_ID STREQUAL "GNU")
		message(FATAL_ERROR "CM_LIBC=musl needs gcc and musl's specs file (package musl-tools)")
	endif()
	# musl's include path has no kernel headers and none of the two libraries: exactly these
	# are made visible, so that no header of the other libc can be picked up.
	set(cm_musl_inc "${PROJECT_BINARY_DIR}/musl-include")
	file(MAKE_DIRECTORY "${cm_musl_inc}/sys")
	find_path(CM_ASM_DIR asm/unistd.h PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE} /usr/include)
	find_path(CM_LINUX_DIR linux/landlock.h)
	find_path(CM_CAP_DIR sys/capability.h)
	find_path(CM_YAJL_DIR yajl/yajl_parse.h)
	file(CREATE_LINK "${CM_ASM_DIR}/asm" "${cm_musl_inc}/asm" SYMBOLIC)
	file(CREATE_LINK "${CM_LINUX_DIR}/asm-generic" "${cm_musl_inc}/asm-generic" SYMBOLIC)
	file(CREATE_LINK "${CM_LINUX_DIR}/linux" "${cm_musl_inc}/linux" SYMBOLIC)
	file(CREATE_LINK "${CM_CAP_DIR}/sys/capability.h" "${cm_musl_inc}/sys/capability.h" SYMBOLIC)
	file(CREATE_LINK "${CM_YAJL_DIR}/yajl" "${cm_musl_inc}/yajl" SYMBOLIC)
	set(CM_STATIC_COMPILE_OPTIONS -specs=${CM_MUSL_SPECS} -isystem ${cm_musl_inc}
		-U_FORTIFY_SOURCE -DCM_LIBC_MUSL=1)
	set(CM_STATIC_LINK_OPTIONS -specs=${CM_MUSL_SPECS} -static)
elseif(CM_LIBC_CHOSEN STREQUAL "glibc")
	set(CM_STATIC_LINK_OPTIONS -static)
elseif(NOT CM_LIBC_CHOSEN STREQUAL "shared")
	message(FATAL_ERROR "CM_LIBC must be auto, musl, glibc or shared, not '${CM_LIBC}'")
endif()
message(STATUS "libc of casemate and casemate-keeper: ${CM_LIBC_CHOSEN}")
