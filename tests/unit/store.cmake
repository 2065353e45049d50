# Sessions on disk.
cm_unit_test(store_status DEPS store)
cm_unit_test(store_record DEPS store)
