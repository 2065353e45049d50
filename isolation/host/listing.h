/* SPDX-License-Identifier: Apache-2.0 */
/* The names in a directory, without the memory that opendir(3) allocates: each start lists /etc. */
#ifndef CM_ISOLATION_HOST_LISTING_H
#define CM_ISOLATION_HOST_LISTING_H

#include <stddef.h>

#include "runtime/base/kernel.h"

struct cm_listing {
	/* the directory, for reading; borrowed */
	int fd;
	size_t pos;
	size_t len;
	/* as much as musl's readdir asks for at once */
	_Alignas(struct cm_dirent) char buf[2048];
};

void cm_listing_begin(struct cm_listing *l, int fd);
/* The next name but "." and "..", until the next call; NULL at the end, or where it has failed. */
const char *cm_listing_next(struct cm_listing *l);

#endif
