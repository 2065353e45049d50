# casemate doctor: texts from facts
cm_unit_test(doctor DEPS cli_back)
