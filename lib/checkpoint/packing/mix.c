/* mix.c - see mix.h. There are few units (two per layer) and few formats, so every step tries all
 * possible changes. Invariant: the bytes of the choice never exceed the budget. */
#include "lib/checkpoint/packing/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/packing/pack.h"
#include "lib/checkpoint/quantization.h"

const enum dtype mix_format[MIX_FORMATS] = {QUANT_NONE, DTYPE_INT8, DTYPE_NF4};

size_t mix_count(const struct config *config)
{
    return 2 * config->layers + 1;
}

/* Bytes of a matrix as stored in a format; INFINITY: the format does not fit the matrix. */
static double stored_bytes(enum dtype dtype, size_t rows, size_t cols)
{
    double sum = 0;
    if (dtype_refuses(dtype, cols))
        return INFINITY;
    for (int p = 0; p < PARTS; p++)
        sum += (double)dtype_part_bytes(dtype, (enum codes_part)p, rows, cols);
    return sum;
}

/* 1: the matrix of this role belongs to the unit. A tied head is not stored, so it does not. */
static int is_of(const struct mix_unit *unit, const struct config *config, enum role role)
{
    return quantization_part(config, role) == unit->part && role_has(config, role, unit->layer) &&
           !(role == ROLE_HEAD && config->tied);
}

static void list_unit(struct mix_unit *unit, const struct checkpoint *model)
{
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role role = (enum role)i;
        size_t rows, cols;
        if (!is_of(unit, &model->config, role))
            continue;
        const size_t each = role_each(&model->config, role);
        role_shape(&model->config, role, &rows, &cols);
        unit->parameters += each * rows * cols;
        for (size_t k = 0; k < each; k++)
            unit->bytes[0] += (double)checkpoint_tensor(
                model, role, role_number(&model->config, role, unit->layer) + k)->bytes;
        for (size_t format = 1; format < MIX_FORMATS; format++) {
            enum dtype dtype = mix_format[format];
            int takes = unit->part != PART_HEAD || dtype_info[dtype].head == dtype;
            unit->bytes[format] += takes ? (double)each * stored_bytes(dtype, rows, cols)
                                         : (double)INFINITY;
        }
    }
}

double mix_list(struct mix_unit *units, const struct checkpoint *model)
{
    const struct config *config = &model->config;
    double stays = 0;
    for (size_t i = 0; i < mix_count(config); i++) {
        int head = i == 2 * config->layers;
        units[i] = (struct mix_unit){.part = head    ? PART_HEAD
                                             : i % 2 ? PART_FFN
                                                     : PART_ATTENTION,
                                     .layer = head ? 0 : i / 2};
        list_unit(&units[i], model);
    }
    for (int role = 0; role < ROLE_COUNT; role++)
        for (size_t layer = 0; layer < role_tensors(config, (enum role)role); layer++)
            if (quantization_part(config, (enum role)role) == LAYER_PARTS)
                stays += (double)checkpoint_tensor(model, (enum role)role, layer)->bytes;
    return stays;
}

int mix_errors(struct mix_unit *units, const struct checkpoint *model, struct pool *pool,
               struct err *e)
{
    for (size_t i = 0; i < mix_count(&model->config); i++)
        for (int role = 0; role < ROLE_COUNT; role++)
            for (size_t k = 0; k < MIX_FORMATS * role_each(&model->config, (enum role)role); k++) {
                struct mix_unit *unit = &units[i];
                const size_t format = k % MIX_FORMATS;
                struct weight weight = {model, (enum role)role, 0};
                struct pack_role sum = {0};
                if (!format || !is_of(unit, &model->config, weight.role) ||
                    !isfinite(unit->bytes[format]))
                    continue;
                weight.layer = role_number(&model->config, weight.role, unit->layer) +
                               k / MIX_FORMATS;
                if (pack_compare(&weight, mix_format[format], pool, &sum, e))
                    return -1;
                unit->loss[format] += sum.error;
            }
    return 0;
}

static double bytes_of(const struct mix_unit *unit, const size_t *chosen, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += unit[i].bytes[chosen[i]];
    return sum;
}

static double loss_of(const struct mix_unit *unit, const size_t *chosen, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += unit[i].loss[chosen[i]];
    return sum;
}

/* Finds the change that saves the most loss per byte within `room` more bytes: unit *at gets format
 * *to. 0: no change fits. */
static int best_change(const struct mix_unit *unit, const size_t *chosen, size_t n, double room,
                       size_t *at, size_t *to)
{
    double best = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t format = 0; format < chosen[i]; format++) {
            double more = unit[i].bytes[format] - unit[i].bytes[chosen[i]];
            double saved = unit[i].loss[chosen[i]] - unit[i].loss[format];
            if (!(more <= room) || !(saved / more > best))
                continue;
            best = saved / more;
            *at = i;
            *to = format;
        }
    return best >= 0;
}

static void improve(const struct mix_unit *unit, size_t *chosen, size_t n, double budget)
{
    size_t at, to;
    while (best_change(unit, chosen, n, budget - bytes_of(unit, chosen, n), &at, &to))
        chosen[at] = to;
}

/* Gives every unit this format, or the next larger format that fits the unit. */
static void choose_uniform(const struct mix_unit *unit, size_t *chosen, size_t n, size_t format)
{
    for (size_t i = 0; i < n; i++)
        for (chosen[i] = format; chosen[i] > 0 && !isfinite(unit[i].bytes[chosen[i]]);)
            chosen[i]--;
}

/* Improves each of the first `starts` uniform choices that fit, in order from the largest format,
 * and stores the result with the least loss in units[]. */
static double choose(struct mix_unit *units, size_t n, double budget, size_t starts)
{
    size_t *trial = mem_zero(n, sizeof *trial);
    double best = INFINITY, bytes = INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t format = 1; format < MIX_FORMATS; format++)
            units[i].loss[format] = fmax(units[i].loss[format], units[i].loss[format - 1]);
    for (size_t format = 0; format < MIX_FORMATS && starts; format++) {
        choose_uniform(units, trial, n, format);
        if (bytes_of(units, trial, n) > budget)
            continue;
        improve(units, trial, n, budget);
        starts--;
        double loss = loss_of(units, trial, n);
        if (loss < best) {
            best = loss;
            bytes = bytes_of(units, trial, n);
            for (size_t i = 0; i < n; i++)
                units[i].chosen = trial[i];
        }
    }
    free(trial);
    return bytes;
}

double mix_raise(struct mix_unit *units, size_t n, double budget)
{
    return choose(units, n, budget, 1);
}

double mix_choose(struct mix_unit *units, size_t n, double budget)
{
    return choose(units, n, budget, MIX_FORMATS);
}

void mix_apply(const struct mix_unit *units, size_t n, struct config *config)
{
    for (size_t i = 0; i < n; i++)
        config->mix[units[i].layer][units[i].part] = (uint8_t)mix_format[units[i].chosen];
}
