/* live.h - an answer drawn in the terminal while it is made (--live): what is final in the colour
 * of its confidence, what is masked as a block; elsewhere a line for each pass. */
#ifndef RUN_WATCH_LIVE_H
#define RUN_WATCH_LIVE_H

#include "lib/decode/observer.h"
#include "lib/text/tokenizer.h"

struct live {
    const char *tool;
    const struct tokenizer *tokenizer; /* NULL: ids are shown */
    int terminal, colours;
    /* the answer at work */
    char *name;              /* of its prompt, as it may stand on a terminal */
    size_t slots, n;         /* at most; so far */
    int32_t *ids, mask;      /* [slots] as they are */
    double *confidence;      /* [slots] at the commit; NaN: not known, or masked */
    int64_t *since;          /* [slots] the pass of the commit; 0: none */
    int64_t pass, ns;
    /* what is on the screen */
    size_t rows, columns;    /* lines of the last frame, 0: none; of which width */
    int64_t drawn_ns;
};

void live_open(struct live *l, const char *tool, const struct tokenizer *tokenizer);
void live_begin(struct live *l, const char *id, size_t slots);
void live_change(struct live *l, const struct observed *o);
void live_show(struct live *l); /* after each pass: draws, at most 20 times a second */
void live_end(struct live *l);  /* the last frame stays */
void live_free(struct live *l);

#endif
