/* canvas.h - a canvas of masks and the shared parts of its samplers, in double precision. */
#pragma once

#include <jansson.h>

#include "tests/reference/model.h"

struct canvas {
    const struct model *m;
    size_t prompt, gen, n; /* n: number of ids, with those that fill the last block */
    long *x, mask;
    double *logits;        /* [n][vocab] */
    double *sure;          /* [n] measure of the choice for a slot; -inf: the slot has no choice */
    double *lead;          /* [n] lead of the choice over the next best id */
    long *choice;
    int order;             /* the measure: confidence, 'm'argin or negative 'e'ntropy */
    double top_p;          /* measures count only ids that top_p and top_k keep; 1, 0: all ids */
    size_t top_k;
    double min_lead, min_confidence;
    size_t edits, passes;  /* number of edits of run_joint; of passes of run_idlm */
};

/* Returns the number with this key of a request, or `otherwise` if there is none. */
double canvas_asked(const json_t *request, const char *key, double otherwise);
/* Sets *least to gap if gap is smaller. */
void canvas_note(double *least, double gap);
/* Computes the choice for slot t and its measure, from the logits of row t - lag. */
void canvas_choose(struct canvas *c, size_t t, size_t lag);
/* Returns the number of masks among the slots from .. to-1. */
size_t canvas_masks(const struct canvas *c, size_t from, size_t to);
/* Fills the slots of from .. to-1 above the threshold, and at least the best `count` slots. The
 * network is given the first `seen` ids. */
void canvas_step(struct canvas *c, size_t from, size_t to, size_t seen, size_t count,
                 double threshold, size_t lag);
