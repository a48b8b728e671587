/* nodes.c - see nodes.h. Two system calls replace libnuma. The nodes are those of our cpuset. A
 * range of addresses gets its policy before its first page is touched. A container may forbid both
 * calls: then there is one node.
 * Source: Linux, get_mempolicy(2), mbind(2).
 */
#include "lib/base/nodes.h"

#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORD = 8 * sizeof(unsigned long), WORDS = 1024 / WORD /* the most that Linux supports */ };

/* Sets a bit in mask[WORDS] for each node. -1: the system refuses. */
static int find_nodes(unsigned long *mask)
{
    memset(mask, 0, WORDS * sizeof *mask);
    return syscall(SYS_get_mempolicy, NULL, mask, (unsigned long)WORDS * WORD, NULL,
                   (unsigned long)MPOL_F_MEMS_ALLOWED) ? -1 : 0;
}

size_t nodes_count(void)
{
    unsigned long mask[WORDS];
    size_t n = 0;
    for (size_t i = find_nodes(mask) ? WORDS : 0; i < WORDS; i++)
        n += (size_t)__builtin_popcountl(mask[i]);
    return n ? n : 1;
}

int nodes_interleave(void *p, size_t bytes)
{
    unsigned long mask[WORDS];
    return find_nodes(mask) || syscall(SYS_mbind, p, bytes, (unsigned long)MPOL_INTERLEAVE, mask,
                                    (unsigned long)WORDS * WORD + 1, 0ul) ? -1 : 0;
}
