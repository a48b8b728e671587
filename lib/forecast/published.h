/* published.h - compares published speeds (data/published.ndjson) with forecasts and with the
 * limits of data sheets.
 *
 * A row of the table has a value of one metric (output_tokens_per_s, e2e_ns, step_ns) on named
 * hardware, and the settings that its publication states. A row is forecast if this program has the
 * shape of the model. The verdict on a row compares the claimed speed with the roofline of the
 * hardware, which is a forecast with all of the arithmetic and bandwidth (every share 1):
 *
 *     needs  = rate x bytes of the active weights / (bandwidth x devices x batch)
 *     share  = claimed speed / roofline; without a forecast, needs / tokens that a pass commits
 *
 * `needs` is the number of tokens that a pass must commit for each text to reach the claimed speed,
 * because a pass reads at least the active weights. An autoregressive pass commits one token. The
 * verdict is
 *
 *     beyond          the share is above 1, or a pass must commit more tokens than a block has
 *     not comparable  there is no share, and `needs` is unknown or more than a pass can commit
 *     within          in all other cases */
#pragma once

#include "lib/forecast/backtest.h"

/* Writes a record of forecast_check() for each row, by backtest_put(). path NULL: the embedded
 * table. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. */
int published_check(struct backtest *k, const char *path, struct err *e);
/* An array of claim_verdict records, one for each row; the caller's reference. k->stated must be 1
 * for every share. path NULL: the embedded table. NULL: EXIT_NO_INPUT, EXIT_BAD_DATA (also a
 * baseline that names no row). */
json_t *published_judge(struct backtest *k, const char *path, struct err *e);
