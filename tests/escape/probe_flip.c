/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The racer: exchanges two names for as long as it lives, as fast as it can; with a third argument
 * once. Runs on the host, as what another jail's writes into a shared tree look like from there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RENAME_EXCHANGE_ 2

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	do {
		if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE_) <
		    0) {
			perror("renameat2");
			return 1;
		}
	} while (argc == 3);
	return 0;
}
