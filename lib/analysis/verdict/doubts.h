/* doubts.h - reasons not to trust the answer of a run, each as a sentence: a failed self-test,
 * disturbed batches, a busy machine, a warm-up that never became steady, times that drift, answers
 * that differ or repeat without a reason. */
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

/* How quiet the machine was.
 *   launches, unfit     checks before launches; those that found the machine unfit
 *   batches, tainted    timed answers; disturbed ones
 *   points, disturbed, cold, drifts   points; with disturbed answers only; never warm; drifting
 *   unlike, alike, cached   points whose repeats differ although nothing is drawn; whose prompts
 *                       all have one answer; whose repeats are faster
 *   share_least, share_most   arithmetic of a thread beside the others / alone, before launches;
 *                       0: not checked */
struct doubts_fitness {
    int64_t launches, unfit, batches, tainted, points, disturbed, cold, drifts;
    int64_t unlike, alike, cached;
    double share_least, share_most;
};
/* 1: share_least and share_most tell that the virtual processors moved between shared and own
 * cores. */
int doubts_cores_moved(const struct doubts_fitness *fitness);
struct doubts_fitness doubts_count(const struct runset *set, const json_t *headline);
