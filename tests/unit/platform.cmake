# the WebSocket client and the platform's provider, without a network
cm_unit_test(websocket DEPS websocket)
cm_unit_test(platform_texts DEPS platform_texts)
cm_unit_test(platform_template DEPS platform_texts)
