# The one user of libcurl, for what links glibc.
add_library(cm_http STATIC
	http.c http_conn.c http_fault.c http_stream.c http_text.c http_transfer.c http_url.c)
target_link_libraries(cm_http PUBLIC cm_base PkgConfig::LIBCURL)
target_compile_definitions(cm_http PRIVATE CM_VERSION="${PROJECT_VERSION}")
