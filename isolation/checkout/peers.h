/* SPDX-License-Identifier: Apache-2.0 */
/* Whom this process is connected to, by its own descriptors. */
#ifndef CM_ISOLATION_CHECKOUT_PEERS_H
#define CM_ISOLATION_CHECKOUT_PEERS_H

#include <stdbool.h>

/*
 * Is there a TCP connection, and has the other end of each this port? libgit2 (1.5) takes a redirect
 * to another port of the same host for one on the same server, and tells nobody.
 */
bool cm_peers_have_port(unsigned int port);
/* Is there a TCP connection, and does none leave this host? */
bool cm_peers_are_here(void);

#endif
