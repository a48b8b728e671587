/* judge.h - the modes of compare that judge existing records: claims about options, the self-test,
 * a gate against slower builds, flags that must not change a token, a stored run, the order of
 * points over templates and seeds, accuracy under parallelism, parts of
 * the time of a step. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

/* Exactly one of these is set; NULL or 0: not set. */
struct judge {
    const char *claims; /* file of option records: metric and comparison records in (ablation.h) */
    const char *exact;  /* file of exact_case records: generation records in (exactness.h) */
    const char *stored; /* file of claim records: claim records of another run in (agreement.h) */
    double self_test;   /* factor of the slow twin: comparison records in (selftest.h) */
    double gate;        /* a slow-down, 0.02: comparison records in (selftest.h) */
    double same_ids;    /* the least share of equal answers: generation records in, the first file
                         * is the base (sameness.h) */
    int samples;        /* samples records in (effects.h) */
    int ranking;        /* quality records in (rankings.h) */
    int aup;            /* generation and quality records in (parallelism.h) */
    int split;          /* generation and roofline records in (steptime.h) */
    uint64_t seed;      /* of the draws of aup and split */
    size_t draws;
};

int judge_count(const struct judge *j); /* how many modes are set */
/* Reads the records of paths[0..n-1] (n = 0: standard input), writes the verdicts to `out`, and
 * returns an exit code, or -1 with *e.
 *     stored   0: the runs agree; 1: they differ; 69: no time could be compared
 *     gate     0: nothing is slower; 1: something is slower; 69: something is undecided
 *     same_ids 0: all checks passed; 1: a check failed
 *     others   0 */
int judge_run(const struct judge *j, const char *const *paths, size_t n, struct rec_writer *out,
              const struct log *log, struct err *e);
