/* doubts.h - what keeps a run from answering, whatever its numbers are: a self-test that did not
 * pass, batches that the machine disturbed, a machine that was not quiet, a warm-up that never
 * became steady, times that drift, answers that no sound run gives. Each is a sentence. */
#ifndef ANALYSIS_VERDICT_DOUBTS_H
#define ANALYSIS_VERDICT_DOUBTS_H

#include "lib/analysis/records/runset.h"

struct doubts {
    char **v; /* owned */
    size_t n, cap;
};
/* About the points that compete with the crossover `headline` (NULL: all). Begins as zeroes;
 * released by doubts_free. */
void doubts_find(struct doubts *d, const struct runset *s, const json_t *headline);
void doubts_free(struct doubts *d);

/* 1: a check that failed or could not decide. */
int doubts_is_failed(const json_t *check);

/* How quiet the machine was: looks before launches and how many were not fit; answers timed and
 * tainted; points, those with tainted answers alone, those never warm, those that drift; those
 * whose repeats differ though nothing is drawn, whose prompts all have one answer, whose repeats
 * are quicker. What share of the arithmetic of one thread alone each made beside the others, before
 * launches: least and most; 0: nobody looked. */
struct doubts_fitness {
    int64_t launches, unfit, batches, tainted, points, disturbed, cold, drifts;
    int64_t unlike, alike, cached;
    double share_least, share_most;
};
/* 1: the host moved the processors of the machine between cores that are shared and own ones. */
int doubts_cores_moved(const struct doubts_fitness *f);
struct doubts_fitness doubts_count(const struct runset *s, const json_t *headline);

#endif
