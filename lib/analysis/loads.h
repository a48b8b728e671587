/* loads.h - the points of a run whose prompts arrive (setting arrival_rate), as a list of rows, for
 * figures and tables. No other figure or table shows these points: their times include a queue. */
#pragma once

#include "lib/analysis/config_table.h"
#include "lib/base/buf.h"
#include "lib/setting/settings.h"

struct load {
    char *name; /* model, steps and prompts at once: "llada-demo, 16 steps, 8 at once"; owned */
    const json_t *about; /* a metric record of the point; borrowed */
    enum config_kind kind;
    double rate; /* prompts that arrive per second */
    char series[SETTINGS_ID]; /* identity of the settings without the rate */
};

struct loads {
    struct load *v;
    size_t n, cap;
};

/* Fills the list, sorted by kind, model, steps, batch, series, rate. The points of a series are
 * adjacent. */
void loads_gather(struct loads *loads, const struct runset *set);
void loads_free(struct loads *loads);
/* Returns the record of `metric` of a row; NULL: there is none. Borrowed. */
const json_t *loads_metric(const struct runset *set, const struct load *load, const char *metric);
/* The X_rate record of a series, or NULL; `load` is a row of the diffusion model. Borrowed. */
const json_t *loads_crossover(const struct runset *set, const struct load *load);
/* Appends whether the step count of an X_rate record is as good as LLaMA: "16 steps are shown to be
 * as good as LLaMA by accuracy". */
void loads_as_good(struct buf *text, const json_t *crossover);
