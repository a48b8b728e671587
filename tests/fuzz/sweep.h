/* sweep.h - makes the records of a small experiment, for targets that read points: three step
 * counts and a rival at two batch sizes, each with its cost in five launches. At the first batch
 * size there are also qualities. */
#pragma once

#include "lib/base/buf.h"

enum { SWEEP_POINTS = 4, SWEEP_PROMPTS = 3, SWEEP_LAUNCHES = 5 };

/* Puts the members that name the point. Point 0 is the rival. */
static inline void sweep_about(struct buf *to, int point, int batch, const char *kind)
{
    buf_format(to, "{\"schema\":\"crossover/1\",\"kind\":\"%s\",\"run\":\"r\","
               "\"config\":\"c%d b%d\","
               "\"point\":\"%d.%d\",\"batch\":%d,\"device\":\"cpu\",\"contract\":\"answer\","
               "\"weights_random\":false,\"workload\":\"w\",\"prompts\":3,", kind, point, batch,
               point, batch, batch);
    if (point)
        buf_format(to, "\"model\":\"llada\",\"arch\":\"llada\",\"paradigm\":\"masked_diffusion\","
                   "\"axis\":\"steps\",\"series\":\"s%d\",\"steps\":%d,\"gen_length\":64,"
                   "\"passes\":%d,", batch, 2 << point, 2 << point);
    else
        buf_text(to, "\"model\":\"llama\",\"arch\":\"llama\",\"paradigm\":\"autoregressive\","
                     "\"axis\":null,\"series\":\"a\",\"steps\":null,\"max_new\":64,");
}

static inline void sweep_metric(struct buf *to, int point, int batch, const char *name,
                                const char *direction, double value)
{
    sweep_about(to, point, batch, "metric");
    buf_format(to, "\"metric\":\"%s\",\"unit\":\"ns\",\"direction\":\"%s\",\"value\":%.9g,"
               "\"lo\":%.9g,\"hi\":%.9g,\"n\":9,\"launches\":5,\"steady\":true,\"launch_values\":[",
               name, direction, value, 0.9 * value, 1.1 * value);
    for (int i = 1; i <= SWEEP_LAUNCHES; i++)
        buf_format(to, "%s{\"launch\":%d,\"value\":%.9g}", i > 1 ? "," : "", i,
                   value * (0.97 + 0.01 * i));
    buf_text(to, "]}\n");
}

static inline void sweep_quality(struct buf *to, int point, int prompt, const char *name,
                                 const char *direction, double value)
{
    sweep_about(to, point, 1, "quality");
    buf_format(to, "\"metric\":\"%s\",\"direction\":\"%s\",\"id\":\"p%d\",\"value\":%.9g,"
               "\"scored_tokens\":30}\n", name, direction, prompt, value);
}

static inline void sweep_put(struct buf *to)
{
    for (int i = 0; i < 2 * SWEEP_POINTS; i++) {
        int point = i % SWEEP_POINTS, batch = i < SWEEP_POINTS ? 1 : 4;
        sweep_metric(to, point, batch, "e2e_ns", "lower", point ? 1e8 * point * batch : 2e8);
        for (int k = 0; k < SWEEP_PROMPTS && batch == 1; k++) {
            sweep_quality(to, point, k, "judge_nll_nats", "lower", 60 + k - 5 * point);
            sweep_quality(to, point, k, "accuracy", "higher", k <= point);
        }
    }
    sweep_metric(to, 1, 1, "mfu_ratio", "higher", 0.5);
    sweep_metric(to, 0, 1, "mbu_ratio", "higher", 0.7);
    sweep_metric(to, 2, 1, "energy_j_per_request", "lower", 5);
}
