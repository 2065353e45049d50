# The WebSocket client, for what links libcurl.
add_library(cm_websocket STATIC
	../websocket.c ../websocket_accept.c ../websocket_frame.c ../websocket_handshake.c)
target_link_libraries(cm_websocket PUBLIC cm_http cm_base)

# Sandboxes of the Mastra platform; their texts, which need no network, beside what uses them.
add_library(cm_platform_texts STATIC answers.c command.c settings.c template.c time.c)
target_link_libraries(cm_platform_texts PUBLIC cm_http cm_json cm_base)
add_library(cm_platform STATIC
	control.c exec.c exec_legacy.c exec_sidecar.c exec_socket.c exec_wrap.c keep.c lease.c lifecycle.c open.c
	platform.c session.c template_store.c)
target_link_libraries(cm_platform PUBLIC
	cm_platform_texts cm_websocket cm_http cm_remote_shared cm_json cm_spec cm_base)
