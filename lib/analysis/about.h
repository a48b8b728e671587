/* about.h - how the answer of a record was made: the settings that identify a point, and the facts
 * that derived records repeat.
 *
 * The names of settings come from the tables of the systems and the list of engine facts
 * (lib/setting): a new setting needs no change here. */
#pragma once

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* The settings of a record that are not null: settings_id() makes `point` and `series` of them. The
 * caller's reference. */
json_t *about_of(const json_t *record);
/* The fields that derived records repeat: the settings (null if they do not count), and config,
 * point, series, axis, workload, prompts, weights_random, flops_unit, tokenizer if the record has
 * them. The caller's reference. */
json_t *about_carried(const json_t *record);
/* The names of all these fields, NULL last; the caller frees the list. */
const char **about_names(void);
/* Adds to `about` the fields of the record that it lacks. */
void about_add(json_t *about, const json_t *record);
/* Sets point, axis (may be NULL) and series of a record that has all its settings. */
void about_identify(json_t *record, const char *axis);
/* -1 (EXIT_BAD_DATA): a setting of the record differs. */
int about_check(const json_t *about, const json_t *record, struct err *e);
/* Order of rows in a report: model, batch, length, value along the axis, label, identity. */
int about_order(const json_t *first, const json_t *second);

/* Identity of the point: `point`, or the label `config` in records without it; NULL: neither. */
const char *about_point(const json_t *record);
/* Identity of the set of prompts; "": unknown. */
const char *about_workload(const json_t *record);
/* The software stack that made it; "": this engine. Another stack runs other kernels, so a tool
 * compares two stacks only if it names both. */
const char *about_stack(const json_t *record);
/* 1: both name their tokenizers, and these differ: tokens are not comparable. */
int about_other_tokens(const json_t *a, const json_t *b);
/* 1: diffusion, by `paradigm` (by `arch` in records without that field); 0: autoregressive; -1:
 * neither, or unknown. */
int about_is_diffusion(const json_t *record);
/* 1: a latent thought model. */
int about_is_latent(const json_t *record);
/* 1: the answer depends on the seed: temperature above 0, random order, or latents, whose fits and
 * draws start with noise. */
int about_is_drawn(const json_t *record);
/* 1 if every speed-only setting but sizes of the experiment has its default (no speculative
 * decoding, no continuous batching). */
int about_is_plain(const json_t *record);
/* Most tokens of an answer: the setting with SETTING_LENGTH; NaN: unknown. */
double about_length(const json_t *record);
/* Appends a value along an axis: 16, 0.9, dual, on; nothing for null. */
void about_value(struct buf *text, const json_t *value);
/* "denoising steps" for steps; any other setting by its name. Borrowed. */
const char *about_axis_name(const char *axis);
/* The default of a setting as records hold it: from the tables of the systems, or of engine facts.
 * The caller's reference; NULL: no table has it. */
json_t *about_default(const char *setting);
/* 1: the value is the default in a row of these tables. This holds also for a setting without
 * effect by default, whose about_default() is null. */
int about_is_default(const char *setting, const json_t *value);
