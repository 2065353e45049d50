cm_fuzz_target(spec_json SOURCES fuzz_spec_json.c DEPS spec)
cm_fuzz_target(spec_flags SOURCES fuzz_spec_flags.c DEPS spec)
