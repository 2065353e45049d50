# Sessions on disk.
foreach(area fault kill paths record session slots status)
	cm_unit_test(store_${area} DEPS store)
endforeach()
