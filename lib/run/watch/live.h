/* live.h - draws the answer in the terminal while it is generated (--live). The colour of a final
 * token shows its confidence; a masked slot is a block. If standard error is no terminal: a line
 * for each pass. */
#pragma once

#include "lib/decode/observer.h"
#include "lib/text/tokenizer.h"

struct live {
    const char *tool;
    const struct tokenizer *tokenizer; /* NULL: ids are shown */
    int terminal, colours;
    /* the current answer */
    char *name;              /* id of its prompt, safe to print on a terminal */
    size_t slots, n;         /* capacity; slots so far */
    int32_t *ids, mask;      /* [slots] current ids */
    double *confidence;      /* [slots] at the commit; NaN: unknown or masked */
    int64_t *since;          /* [slots] pass of the commit; 0: not committed */
    int64_t pass, ns;
    /* the screen */
    size_t rows, columns;    /* lines of the last frame, 0: none; its width */
    int64_t drawn_ns;
};

void live_open(struct live *l, const char *tool, const struct tokenizer *tokenizer);
void live_begin(struct live *l, const char *id, size_t slots);
void live_change(struct live *l, const struct observed *o);
void live_show(struct live *l); /* call after each pass; draws at most 20 times a second */
void live_end(struct live *l);  /* the last frame stays */
void live_free(struct live *l);
