/* format_budget.h - chooses a format for each part of a network so that all tensors fit a budget of
 * bytes (mix.h). Losses are measured on texts (calibration.h), or without texts as the squared
 * error of the values. */
#pragma once

#include "lib/base/cli/opt.h"
#include "lib/run/engine.h"
#include "lib/run/probe/calibration.h"

struct format_budget {
    /* given */
    int64_t bytes;     /* most bytes of all tensors; 0: by `share` */
    double share;      /* most bytes as a share of the source's bytes */
    const char *texts; /* NULL: losses by values */
    int64_t samples;   /* masks per text of a diffusion model */
    /* chosen */
    struct mix_unit *units; /* [mix_count()]; NULL before format_budget_choose() */
    double limit;           /* bytes of all tensors at most */
    double dense_nats;      /* nats per token without quantization; NaN without texts */
    struct interval gain;   /* calibration_choose(); NaN without texts */
};

/* Chooses the formats and sets the mix of model->config. Returns -1 with *e filled; EXIT_BAD_USAGE
 * if the smallest formats exceed the budget. */
int format_budget_choose(struct format_budget *budget, struct checkpoint *model,
                         const struct engine *engine, const struct common *common,
                         const struct log *log, struct err *e);
void format_budget_free(struct format_budget *budget);
