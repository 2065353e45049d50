# what the keeper and init read: plans, records, requests to start a command
cm_fuzz_target(plan SOURCES fuzz_plan.c DEPS plan base)
cm_fuzz_target(proto SOURCES fuzz_proto.c DEPS proto base)
cm_fuzz_target(image SOURCES fuzz_image.c "${PROJECT_SOURCE_DIR}/isolation/keeper/image.c"
	DEPS proto base)
