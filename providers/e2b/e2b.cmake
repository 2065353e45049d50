# Sessions of E2B, and of services that speak its protocol.
add_library(cm_e2b STATIC
	adopt.c command.c connect.c control.c entry.c events.c files.c find.c follow.c open.c paths.c places.c process.c
	rpc.c sandbox.c session.c snapshot.c templates.c texts.c url.c watch.c write.c)
target_link_libraries(cm_e2b PUBLIC cm_http cm_remote_shared cm_json cm_spec cm_base)
