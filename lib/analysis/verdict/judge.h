/* judge.h - runs the modes of compare that judge existing records: claims about options, the
 * self-test, a gate against slower builds, flags that must not change a token, a stored run, the
 * order of points over templates and seeds, accuracy under parallelism, and the parts of the time
 * of a step. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/record/rec.h"

/* Exactly one of the modes is set; NULL or 0: not set. The input is:
 *   claims               metric and comparison records (ablation.h)
 *   exact                generation records (exactness.h)
 *   stored               claim records of another run (agreement.h)
 *   self_test, gate      comparison records (selftest.h)
 *   same_ids             generation records; the first file is the base (sameness.h)
 *   samples              samples records (effects.h)
 *   ranking              quality records (rankings.h)
 *   aup                  generation and quality records (parallelism.h)
 *   split                generation and roofline records (steptime.h) */
struct judge {
    const char *claims; /* file of option records */
    const char *exact;  /* file of exact_case records */
    const char *stored; /* file of claim records */
    double self_test;   /* how much slower the slow twin is: a factor, 1.05 */
    double gate;        /* a share of time: 0.02 finds builds that are 2 % slower */
    double same_ids;    /* the least share of equal answers, 0 to 1 */
    int samples;
    int ranking;
    const char *margin; /* of ranking: a well-formed text of pooled_margin_parse() */
    int aup;
    int split;
    uint64_t seed;      /* of the draws of aup and split */
    size_t draws;
};

int judge_count(const struct judge *j); /* how many modes are set */
/* Reads the records of paths[0..n-1] (n = 0: standard input), writes the verdicts to `out`, and
 * returns an exit code, or -1 with *e.
 *     stored   0: the runs agree; 1: they differ; 69: no time could be compared
 *     gate     0: nothing is slower; 1: something is slower; 69: something is undecided
 *     same_ids 0: all checks passed; 1: a check failed, or there is none
 *     others   0 */
int judge_run(const struct judge *j, const char *const *paths, size_t n, struct rec_writer *out,
              const struct log *log, struct err *e);
