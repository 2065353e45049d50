# what a sandbox of E2B, or whoever is between, can have the client read
cm_fuzz_target(e2b_stream SOURCES fuzz_e2b_stream.c DEPS e2b)
cm_fuzz_target(e2b_json SOURCES fuzz_e2b_json.c DEPS e2b)
