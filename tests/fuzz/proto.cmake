# what the keeper and init read: plans, records, requests to start a command
cm_fuzz_target(plan SOURCES fuzz_plan.c DEPS plan base)
cm_fuzz_target(proto SOURCES fuzz_proto.c DEPS proto base)
cm_fuzz_target(image SOURCES fuzz_image.c "${PROJECT_SOURCE_DIR}/isolation/keeper/image.c"
	DEPS proto base)
# the keeper itself, without its process and its jail
set(keeper "${PROJECT_SOURCE_DIR}/isolation/keeper")
cm_fuzz_target(keeper SOURCES fuzz_keeper.c ${keeper}/clients.c ${keeper}/requests.c ${keeper}/execs.c
	${keeper}/jobs.c ${keeper}/answers.c ${keeper}/age.c ${keeper}/outbox.c ${keeper}/end.c
	DEPS proto mech store_keeper store_journal)
# what comes out of a jail in a file operation, up to the files of this side
cm_fuzz_target(file SOURCES fuzz_file.c DEPS proto base)
