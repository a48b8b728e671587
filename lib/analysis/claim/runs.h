/* runs.h - the answers of several runs side by side, and forecasts beside measurements. Machines
 * are never pooled: a row has the claims of one run, a forecast has the records of one machine.
 *
 * A run is a `question` claim and all claims up to the next one, in the order in which conclude
 * writes them. A second `answer` begins the next run too. A forecast is a check
 * record of `forecast --check` about a measured point of plain decoding. Only forecasts under the
 * measured ceilings of the machine count, not those by data sheet. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/stat/stat.h"

enum { RUNS_MOST = 256 }; /* the most runs, and the most forecasts: each is compared with all */

/* A machine. If two machines have one name, the first digits of their fingerprints are added. */
struct run_machine {
    char *name;  /* "AMD EPYC (Zen 5), 2 cores", "NVIDIA H200"; owned */
    char *print; /* fingerprint; NULL: unknown; owned */
};

struct run {
    struct run_machine machine;
    size_t number;   /* 1; 2 for the second run of the same models on the machine, and so on */
    json_t *claims;  /* owned */
    const json_t *question, *answer, *sure; /* borrowed; NULL: none */
    int is_forecast; /* 1: there is a forecast for its machine */
};

/* One goal of a run: the times at the least step count that matches LLaMA; if none is shown to
 * match, at the most steps. Unknown numbers are NaN and have a reason, which is borrowed. */
struct run_row {
    const struct run *run;
    const json_t *goal;       /* the claim X_q; borrowed */
    const char *clock;        /* "wall", "cpu" */
    double steps;
    int matches;              /* 1: `steps` is shown to match */
    struct interval llada, llama, ratio; /* ns; ns; LLaDA / LLaMA */
    double launches;
    const char *no_times, *no_ratio;
    struct interval equal;    /* the steps of equal time: X_lat; if unknown: */
    double faster, slower;    /* the most steps shown faster than LLaMA, the least above them shown
                                 slower; NaN: none */
    const char *no_equal;
};

struct run_beside { double measured, forecast, ratio; }; /* ratio: forecast / measured */
/* The forecasts for a pair on a machine under contract fixed, with one batch size, prompt length,
 * answer length and block length. */
struct run_forecast {
    struct run_machine machine;
    const json_t *canvas, *text; /* check records: LLaDA with its most steps, or its crossover if no
                                 time is forecast; LLaMA; borrowed; NULL: none */
    struct run_beside llada, llama, equal; /* ns, ns, steps */
};

struct runs {
    struct run *run;
    size_t n_runs, cap_runs;
    struct run_row *row;
    size_t n_rows, cap_rows;
    struct run_forecast *forecast;
    size_t n_forecasts, cap_forecasts;
    size_t machines;          /* machines that have a forecast */
    int is_one_pair;          /* 1: the claims name at most one pair of models */
    size_t not_forecast;      /* checks of a time under measured ceilings without a forecast */
    const char *why_not;      /* the reason of the first of them; borrowed */
};

/* Gathers claim and forecast records (arrays or NULL), which must outlive `runs`. A run that equals
 * an earlier one is left out. If there is one run, forecasts are left out. Returns -1 with *e
 * filled (EXIT_BAD_DATA) for more than RUNS_MOST runs or forecasts, or GOALS_MAX goals a run;
 * runs_free() is due then too. */
int runs_gather(struct runs *runs, const json_t *claims, const json_t *forecasts, struct err *e);
void runs_free(struct runs *runs);
/* 1: there are two runs or more; or forecasts for two machines or more, and no run. */
int runs_are_several(const struct runs *runs);
