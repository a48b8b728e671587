/* about.h - reads from a record how its answer was made: the settings that identify a point, and
 * the facts that derived records repeat.
 *
 * The names of settings come from the tables of the systems and the list of engine facts
 * (lib/setting): a new setting needs no change here. */
#pragma once

#include <jansson.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

/* The settings of a record that are not null. settings_id() makes the fields `point` and `series`
 * from these settings. The caller's reference. */
json_t *about_of(const json_t *record);
/* The fields that derived records repeat: the settings (null if a setting has no effect) and, if
 * the record has them, config, point, series, axis, workload, prompts, weights_random, flops_unit,
 * tokenizer and draft_arch. The caller's reference. */
json_t *about_carried(const json_t *record);
/* The names of all fields of about_carried(), NULL last; the caller frees the list. */
const char **about_names(void);
/* Adds to `about` the fields of about_carried() that `about` lacks or has as null. */
void about_add(json_t *about, const json_t *record);
/* Sets point, axis (may be NULL) and series of a record that has all its settings. */
void about_identify(json_t *record, const char *axis);
/* Returns the name of the first member in which the record differs from `about`, the
 * about_carried() of another record of its point. NULL: no difference. All settings are compared.
 * series, tokenizer and weights_random are compared if both have them. Numbers are compared by
 * value, so 0 equals 0.0. */
const char *about_difference(const json_t *about, const json_t *record);
/* Returns -1 (EXIT_BAD_DATA) if a setting of the record has another type than its table says, or is
 * out of range. If several tables have a row of one name, the value must fit one of them. */
int about_check(const json_t *record, const char *where, struct err *e);
/* The order of rows in a report: by model, batch, length, value along the axis, label, identity,
 * workload. Returns less than 0, 0 or more than 0, as strcmp() does. */
int about_order(const json_t *first, const json_t *second);

/* The identity of the point: the field `point`, or the label `config` if the record has no `point`;
 * NULL: the record has neither. */
const char *about_point(const json_t *record);
/* The identity of the set of prompts; "": unknown. */
const char *about_workload(const json_t *record);
/* 1: both workloads (about_workload()) are known, and they differ. Then prompts with equal ids are
 * other prompts. */
int about_other_prompts(const char *a, const char *b);
/* The software stack that made the answer; "": this engine. Another stack runs other kernels, so a
 * tool compares two stacks only if it names both. */
const char *about_stack(const json_t *record);
/* 1: both records name their tokenizer, and the tokenizers differ. Then tokens are not
 * comparable. */
int about_other_tokens(const json_t *a, const json_t *b);
/* 1: the same model in the same number formats. */
int about_same_system(const json_t *a, const json_t *b);
/* 1: the prompts of both went through the same chat template, or through none. */
int about_same_template(const json_t *a, const json_t *b);
/* 1: diffusion; 0: autoregressive; -1: neither, or unknown. The field `paradigm` decides, or `arch`
 * in records without it. */
int about_is_diffusion(const json_t *record);
/* 1: a latent thought model. */
int about_is_latent(const json_t *record);
/* 1: the answer depends on the seed: temperature above 0, random order, or latents, whose fits and
 * draws start with noise. */
int about_is_drawn(const json_t *record);
/* 1: every setting that changes only speed has its default, so there is no speculative decoding and
 * no continuous batching. Sizes of the load (batch, arrival rate) do not count. */
int about_is_plain(const json_t *record);
/* Appends the settings that make about_is_plain() 0: "lookup=10". A plain record has none. */
void about_put_speed(struct buf *text, const json_t *record);
/* The largest number of tokens of an answer: the setting with SETTING_LENGTH; NaN: unknown. */
double about_length(const json_t *record);
/* Appends a value along an axis: 16, 0.9, dual, on. Appends nothing for null. */
void about_value(struct buf *text, const json_t *value);
/* The name of an axis in a sentence: "denoising steps" for steps, else the name of the setting.
 * Borrowed. */
const char *about_axis_name(const char *axis);
/* The default of a setting as records contain it, from the tables of the systems or of engine
 * facts. The caller's reference; NULL: no table has the setting, or it has no default. */
json_t *about_default(const char *setting);
/* 1: the value is the default of the setting in the table of the record's system, even if the
 * setting has no effect by default (about_default() is null there). */
int about_is_default(const json_t *record, const char *setting, const json_t *value);
