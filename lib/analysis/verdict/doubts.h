/* doubts.h - finds reasons not to trust the answer of a run, each as a sentence: a failed
 * self-test, disturbed batches, a busy machine, a warm-up that never became steady, times that
 * drift, answers that differ or repeat without a reason. */
#pragma once

#include "lib/analysis/records/runset.h"

struct doubts {
    char **v; /* owned */
    size_t n, cap;
};
/* Finds the doubts about the points that compete with the crossover `headline` (NULL: all points).
 * *doubts begins as zeroes; released by doubts_free. */
void doubts_find(struct doubts *doubts, const struct runset *set, const json_t *headline);
void doubts_free(struct doubts *doubts);

/* 1: the check failed or is undecided. */
int doubts_is_failed(const json_t *check);

/* Counts that tell how quiet the machine was.
 *   launches    fitness checks before launches
 *   unfit       checks that found the machine unfit
 *   batches     timed answers, disturbed ones included
 *   tainted     disturbed answers
 *   points      points that compete
 *   disturbed   points that have disturbed answers alone
 *   cold        points with a launch that never became warm
 *   drifts      points whose times drift
 *   unlike      points whose repeated answers differ, although nothing is drawn
 *   alike       points whose prompts all have one answer
 *   cached      points whose repeated answers are faster than the first ones
 *   share_least, share_most   speed of a thread beside the other threads / alone, as measured
 *               before launches: the least and the most; 0: not measured */
struct doubts_fitness {
    int64_t launches, unfit, batches, tainted, points, disturbed, cold, drifts;
    int64_t unlike, alike, cached;
    double share_least, share_most;
};
/* 1: share_least and share_most differ so much that the virtual processors must have moved between
 * shared and own cores. */
int doubts_cores_moved(const struct doubts_fitness *fitness);
/* Counts over the points that compete with the crossover `headline` (NULL: all points). */
struct doubts_fitness doubts_count(const struct runset *set, const json_t *headline);
