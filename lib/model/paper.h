/* paper.h - the memory that a network needs, computed from its config and precision alone.
 *
 *     weights      mat_bytes of every matrix (values in the back end's layout, with their scales
 *                  when quantized), 4 bytes a value of a norm
 *     kv           2 L S K E values of the cache's dtype
 *     activations  4 [T (2D + 2HE + 2KE + F + E) + 2RD] and the scratch of the largest operation
 *
 * Every array is rounded up to 64 bytes, as memory is handed out.
 */
#ifndef MODEL_PAPER_H
#define MODEL_PAPER_H

#include "lib/model/network.h"

struct paper {
    size_t weights, kv, activations; /* bytes */
};
/* For passes of up to `rows` rows that read up to `slots` keys a sequence and want `wanted` rows,
 * with a cache of `kv_slots` (0: none): the arguments of work_make and kv_make. */
struct paper paper_of(const struct network *n, size_t rows, size_t slots, size_t wanted,
                      size_t kv_slots);

#endif
