/* canvas.h - a canvas of masks and what its samplers share, in double precision. */
#pragma once

#include <jansson.h>

#include "tests/reference/model.h"

struct canvas {
    const struct model *m;
    size_t prompt, gen, n; /* n: ids with those that fill the last block */
    long *x, mask;
    double *logits;        /* [n][vocab] */
    double *sure;          /* [n] measure of the choice for a slot; -inf: it is not asked about */
    double *lead;          /* [n] of the choice over the next best id */
    long *choice;
    int order;             /* the measure: confidence, 'm'argin or negative 'e'ntropy */
    double top_p;          /* measures are of the ids that top_p and top_k keep; 1, 0: of all */
    size_t top_k;
    double min_lead, min_confidence;
    size_t edits, passes;  /* of run_joint; of run_idlm */
};

/* The number under that key of a request, or otherwise this one. */
double canvas_asked(const json_t *request, const char *key, double otherwise);
/* *least = gap, if that is less. */
void canvas_note(double *least, double gap);
/* The choice for slot t and its measure, from the logits of row t - lag. */
void canvas_choose(struct canvas *c, size_t t, size_t lag);
/* The masks among the slots from .. to-1. */
size_t canvas_masks(const struct canvas *c, size_t from, size_t to);
/* Writes the slots of from .. to-1 above the threshold, at least `count` of the best, where the
 * network is given the first `seen` ids. */
void canvas_step(struct canvas *c, size_t from, size_t to, size_t seen, size_t count,
                 double threshold, size_t lag);
