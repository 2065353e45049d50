# the E2B provider without a service: what is read and written
cm_unit_test(e2b_places DEPS e2b)
cm_unit_test(e2b_envelopes DEPS e2b)
cm_unit_test(e2b_events DEPS e2b)
cm_unit_test(e2b_texts DEPS e2b)
cm_unit_test(e2b_entry DEPS e2b)
cm_unit_test(e2b_url DEPS e2b)
