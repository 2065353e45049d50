# what services of remote sessions say
cm_fuzz_target(websocket SOURCES fuzz_websocket.c DEPS websocket)
cm_fuzz_target(platform_json SOURCES fuzz_platform_json.c DEPS platform_texts)
