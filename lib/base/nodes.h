/* nodes.h - the memory nodes (NUMA) of the machine that this process may allocate on. */
#ifndef BASE_NODES_H
#define BASE_NODES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Their number; 1 where the system does not report it. */
size_t nodes_count(void);
/* Pages of p[0..bytes) that are touched from now on are placed on the nodes in turn. `p` begins a
 * page. -1: the system refuses. */
int nodes_interleave(void *p, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
