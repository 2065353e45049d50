# the local provider: a keeper is played by the test
cm_unit_test(local_inside DEPS local)
cm_unit_test(local_adopt DEPS local)
cm_unit_test(local_plan DEPS local)
cm_unit_test(local_groups DEPS local)
cm_unit_test(local_known_hosts DEPS local)
cm_unit_test(local_ssh_config DEPS local)
cm_unit_test(local_ssh_key DEPS local)
cm_unit_test(local_module_list DEPS local)
