# Compiler flags that hold for every target.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
	set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_compile_definitions(_GNU_SOURCE _FILE_OFFSET_BITS=64)
add_compile_options(
	-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2
	-Wundef -Wvla -Wwrite-strings -Wpointer-arith -Wswitch-enum
	# zero-filling the rest of a structure is a feature
	-Wno-missing-field-initializers
	-fstack-protector-strong)
if(CM_WERROR)
	add_compile_options(-Werror)
endif()
if(CM_SANITIZE)
	string(REPLACE ";" "," cm_sanitize_list "${CM_SANITIZE}")
	add_compile_options(-fsanitize=${cm_sanitize_list} -fno-sanitize-recover=all
		-fno-omit-frame-pointer)
	add_link_options(-fsanitize=${cm_sanitize_list})
else()
	add_compile_options($<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
include_directories("${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/runtime/include")
