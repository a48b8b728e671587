/* ids.h - a list of token ids that grows. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ids { /* all zero: empty */
    int32_t *v; /* owned */
    size_t n, cap;
};
void ids_push(struct ids *ids, int32_t id);
void ids_append(struct ids *ids, const struct ids *more);
void ids_free(struct ids *ids);
