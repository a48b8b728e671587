/* about.h - what a record says about how its answer was made: the settings that are the identity of
 * a point, and the facts that go with them from one record to the next.
 *
 * The names of settings come from the tables of the systems and the list of engine facts
 * (lib/setting): a new setting needs no change here.
 */
#ifndef ANALYSIS_ABOUT_H
#define ANALYSIS_ABOUT_H

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* The settings of a record that are not null: what settings_id() makes `point` and `series` of. The
 * caller's reference. */
json_t *about_of(const json_t *record);
/* The settings, null where they do not count, and config, point, series, axis, workload, prompts,
 * weights_random, flops_unit, tokenizer as far as the record has them: what records made of it
 * repeat. The caller's reference. */
json_t *about_carried(const json_t *record);
/* The names of all that may be in it, NULL behind them; the caller frees the list. */
const char **about_names(void);
/* Adds to `about` what the record carries and `about` does not say yet. */
void about_add(json_t *about, const json_t *record);
/* Sets point, axis (NULL: none) and series of a record that has all its settings. */
void about_identify(json_t *record, const char *axis);
/* -1 (EXIT_BAD_DATA): a setting has another value in the record. */
int about_check(const json_t *about, const json_t *record, struct err *e);
/* Order of a report: model, batch, length, the value along the axis, then label and identity. */
int about_order(const json_t *a, const json_t *b);

/* Identity of the point: `point`, or in records without it the text of `config`, which nobody
 * parses. NULL: neither is there. */
const char *about_point(const json_t *record);
/* Identity of the set of prompts; "": not said. */
const char *about_workload(const json_t *record);
/* 1: both say which tokenizer they have, and it is not the same: their tokens are other units. */
int about_other_tokens(const json_t *a, const json_t *b);
/* 1: made by denoising, by `paradigm` (in records older than that field, by `arch`); 0:
 * autoregressive; -1: neither, or not said. */
int about_is_diffusion(const json_t *record);
/* 1: made under latents that were fitted or drawn first. */
int about_is_latent(const json_t *record);
/* 1: its answer is drawn, so that another seed gives another one: at a temperature, in an order
 * left to chance, or under latents, whose fits and draws begin with noise. */
int about_is_drawn(const json_t *record);
/* 1: all settings that change the speed alone, and are no size of the experiment, are as by
 * default: nothing was guessed, none joined a batch that ran. */
int about_is_plain(const json_t *record);
/* Tokens of an answer at most: the setting that is the length in the table of its decoder; NaN. */
double about_length(const json_t *record);
/* A value along an axis as people write it: 16, 0.9, dual, on; "" for null. */
void about_value(struct buf *b, const json_t *value);
/* "denoising steps" for steps; any other setting by its name. Borrowed. */
const char *about_axis_name(const char *axis);
/* The value that a setting has unless told otherwise, as records have it: of the decoders' tables,
 * "none" for quant and numa, 0 for offload_layers. The caller's reference; NULL: no table has it.
 */
json_t *about_default(const char *setting);
/* 1: the value is the one that a row of these tables names, also where the setting does not count
 * by default: about_default has null then. */
int about_is_default(const char *setting, const json_t *value);

#endif
