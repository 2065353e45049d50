/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that was read, out again. Its depth is bounded by the reader. */
#include "runtime/base/json_copy.h"

void cm_json_copy(struct cm_json_writer *w, const struct cm_json *v)
{
	switch (v->type) {
	case CM_JSON_NULL:
		cm_jw_null(w);
		return;
	case CM_JSON_BOOL:
		cm_jw_bool(w, v->u.boolean);
		return;
	case CM_JSON_INT:
		cm_jw_int(w, v->u.integer);
		return;
	case CM_JSON_DOUBLE:
		cm_jw_double(w, v->u.number);
		return;
	case CM_JSON_STRING:
		cm_jw_string(w, v->u.string);
		return;
	case CM_JSON_ARRAY:
	case CM_JSON_OBJECT:
		break;
	}
	if (v->type == CM_JSON_ARRAY)
		cm_jw_array(w);
	else
		cm_jw_object(w);
	for (const struct cm_json *c = v->first_child; c; c = c->next) {
		if (v->type == CM_JSON_OBJECT)
			cm_jw_key(w, c->key);
		cm_json_copy(w, c);
	}
	if (v->type == CM_JSON_ARRAY)
		cm_jw_end_array(w);
	else
		cm_jw_end_object(w);
}
