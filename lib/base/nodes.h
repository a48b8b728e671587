/* nodes.h - the memory nodes (NUMA) of the machine that this process may allocate on. */
#ifndef BASE_NODES_H
#define BASE_NODES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many they are; 1 also where the system does not tell. */
size_t nodes_count(void);
/* The pages of p[0..bytes) that nobody has touched yet will lie on all these nodes, in turn. `p` is
 * at a page. -1: the system refuses. */
int nodes_interleave(void *p, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
