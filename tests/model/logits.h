/* logits.h - logits of a short text, to compare two networks. */
#pragma once

#include "lib/network/forward.h"

enum { LOGITS_ROWS = 5 };

/* Computes the logits of a fixed text. to: [LOGITS_ROWS, V] */
static inline void logits_of(const struct network *n, float *to)
{
    static const int32_t token[LOGITS_ROWS] = {1, 7, 42, 100, 511}, pos[] = {0, 1, 2, 3, 4};
    const struct work_size size = {.rows = LOGITS_ROWS, .seqs = 1, .slots = LOGITS_ROWS,
                                   .listed = LOGITS_ROWS, .wanted = LOGITS_ROWS, .logits = 1};
    const struct forward_seq seq = {.rows = LOGITS_ROWS};
    const struct forward f = {.token = token, .pos = pos, .seqs = &seq, .n_seqs = 1,
                              .mask = n->config.attends, .wanted = pos, .n_wanted = LOGITS_ROWS};
    struct work *w = work_make(n, &size);
    struct head_row answer[LOGITS_ROWS];
    forward(n, NULL, w, &f, answer, to);
    work_free(w, n);
}

/* Computes the logits of the model in a folder, quantized while it is loaded (quant NULL: not).
 * Returns -1 if the model does not load. */
static inline int logits_at(const char *folder, const char *device, const char *quant, float *to,
                            struct err *e)
{
    struct checkpoint c;
    struct network n;
    if (checkpoint_open(&c, folder, 0, e))
        return -1;
    struct backend *b = backend_open(device, NULL, 2, 0, NULL);
    int bad = network_load(&n, b, &c, &(struct precision){.quant = quant}, e);
    if (!bad) {
        logits_of(&n, to);
        network_free(&n);
    }
    backend_close(b);
    checkpoint_close(&c);
    return bad ? -1 : 0;
}
