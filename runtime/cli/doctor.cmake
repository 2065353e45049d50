# casemate doctor, part of the commands that need a jail or the store
foreach(flavour cm_cli_back cm_cli_back_st)
	target_sources(${flavour} PRIVATE
		cmd_doctor.c doctor_cgroup.c doctor_checks.c doctor_facts.c doctor_probe.c
		doctor_report.c doctor_user.c)
endforeach()
