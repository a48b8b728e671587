/* published.h - published speeds (data/published.ndjson) beside what a data sheet allows.
 *
 * A row has a value of one metric (output_tokens_per_s, e2e_ns, step_ns) on named hardware, and the
 * settings that its publication states. It is forecast where this program has the shape of the
 * model. The verdict on a row compares it with the roofline of its card, which is a forecast with
 * all of the arithmetic and bandwidth (every share 1):
 *
 *     needs  = rate x bytes of the active weights / (bandwidth x devices x batch)
 *     share  = claimed speed / roofline; without a forecast, needs / tokens that a pass commits
 *
 * `needs` is the number of tokens of a text that a pass must commit, because it reads at least the
 * active weights; an autoregressive pass commits one. The verdict is
 *
 *     beyond          the share is above 1, or a pass must commit more than a block
 *     not comparable  there is no share, and `needs` is unknown or more than a pass can commit
 *     within          else */
#pragma once

#include "lib/forecast/backtest.h"

/* Writes a forecast record of each row beside its value, by backtest_put(). path NULL: the embedded
 * table. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. */
int published_check(struct backtest *k, const char *path, struct err *e);
/* An array of claim_verdict records, one for each row; the caller's reference. NULL: *e, as above,
 * and for a baseline that is no row. stated is 1 for every share. */
json_t *published_judge(struct backtest *k, const char *path, struct err *e);
