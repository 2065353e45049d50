/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of npm and pip without secrets. The parsers are pure; any input. */
#ifndef CM_ISOLATION_HOST_TOOLCONF_H
#define CM_ISOLATION_HOST_TOOLCONF_H

#include <stdbool.h>

#include "runtime/base/buf.h"

/* Adds the listed settings as "key=value"; a later one replaces an earlier. 0 or CM_E_NOMEM. */
int cm_toolconf_parse_npm(const char *text, struct cm_strv *settings);
int cm_toolconf_parse_pip(const char *text, struct cm_strv *settings);
/* No user in a URL, no variable, no control character. */
bool cm_toolconf_is_plain(const char *value);

#endif
