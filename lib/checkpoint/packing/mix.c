/* mix.c - see mix.h. There are few units (two per layer) and few formats, so every step tries all
 * changes. Invariant: the bytes of the choice never exceed the budget. */
#include "lib/checkpoint/packing/mix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/checkpoint/packing/pack.h"
#include "lib/checkpoint/quantization.h"

const enum dtype mix_format[MIX_FORMATS] = {QUANT_NONE, DTYPE_INT8, DTYPE_NF4};

size_t mix_count(const struct config *c)
{
    return 2 * c->layers + 1;
}

/* Bytes of a matrix as it is stored in a format. */
static double stored_bytes(enum dtype d, size_t rows, size_t cols)
{
    double sum = 0;
    if (dtype_refuses(d, cols))
        return INFINITY;
    for (int p = 0; p < PARTS; p++)
        sum += (double)dtype_part_bytes(d, (enum codes_part)p, rows, cols);
    return sum;
}

/* 1: matrix r is one of the unit's own. */
static int is_of(const struct mix_unit *u, const struct config *c, enum role r)
{
    return quantization_part(c, r) == u->part && role_has(c, r, u->layer) &&
           !(r == ROLE_HEAD && c->tied);
}

static void list_unit(struct mix_unit *u, const struct checkpoint *c)
{
    for (int i = 0; i < ROLE_COUNT; i++) {
        enum role r = (enum role)i;
        size_t rows, cols;
        if (!is_of(u, &c->config, r))
            continue;
        const size_t each = role_each(&c->config, r);
        role_shape(&c->config, r, &rows, &cols);
        u->parameters += each * rows * cols;
        for (size_t k = 0; k < each; k++)
            u->bytes[0] += (double)checkpoint_tensor(
                c, r, role_number(&c->config, r, u->layer) + k)->bytes;
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            enum dtype d = mix_format[f];
            int takes = u->part != PART_HEAD || dtype_info[d].head == d;
            u->bytes[f] += takes ? (double)each * stored_bytes(d, rows, cols) : (double)INFINITY;
        }
    }
}

double mix_list(struct mix_unit *units, const struct checkpoint *c)
{
    const struct config *config = &c->config;
    double stays = 0;
    for (size_t i = 0; i < mix_count(config); i++) {
        int head = i == 2 * config->layers;
        units[i] = (struct mix_unit){.part = head    ? PART_HEAD
                                             : i % 2 ? PART_FFN
                                                     : PART_ATTENTION,
                                     .layer = head ? 0 : i / 2};
        list_unit(&units[i], c);
    }
    for (int r = 0; r < ROLE_COUNT; r++)
        for (size_t l = 0; l < role_tensors(config, (enum role)r); l++)
            if (quantization_part(config, (enum role)r) == LAYER_PARTS)
                stays += (double)checkpoint_tensor(c, (enum role)r, l)->bytes;
    return stays;
}

int mix_errors(struct mix_unit *units, const struct checkpoint *c, struct pool *pool,
               struct err *e)
{
    for (size_t i = 0; i < mix_count(&c->config); i++)
        for (int r = 0; r < ROLE_COUNT; r++)
            for (size_t k = 0; k < MIX_FORMATS * role_each(&c->config, (enum role)r); k++) {
                struct mix_unit *u = &units[i];
                const size_t f = k % MIX_FORMATS;
                struct weight w = {c, (enum role)r, 0};
                struct pack_role sum = {0};
                if (!f || !is_of(u, &c->config, w.role) || !isfinite(u->bytes[f]))
                    continue;
                w.layer = role_number(&c->config, w.role, u->layer) + k / MIX_FORMATS;
                if (pack_compare(&w, mix_format[f], pool, &sum, e))
                    return -1;
                u->loss[f] += sum.error;
            }
    return 0;
}

static double bytes_of(const struct mix_unit *u, const size_t *chosen, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += u[i].bytes[chosen[i]];
    return sum;
}

static double loss_of(const struct mix_unit *u, const size_t *chosen, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += u[i].loss[chosen[i]];
    return sum;
}

/* Finds the best change within `room` bytes: unit *at to format *to. 0: none fits. */
static int best_change(const struct mix_unit *u, const size_t *chosen, size_t n, double room,
                       size_t *at, size_t *to)
{
    double best = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; f < chosen[i]; f++) {
            double more = u[i].bytes[f] - u[i].bytes[chosen[i]];
            double saved = u[i].loss[chosen[i]] - u[i].loss[f];
            if (!(more <= room) || !(saved / more > best))
                continue;
            best = saved / more;
            *at = i;
            *to = f;
        }
    return best >= 0;
}

static void improve(const struct mix_unit *u, size_t *chosen, size_t n, double budget)
{
    size_t at, to;
    while (best_change(u, chosen, n, budget - bytes_of(u, chosen, n), &at, &to))
        chosen[at] = to;
}

/* Puts every unit in format f, or in the next larger one that fits the unit. */
static void choose_uniform(const struct mix_unit *u, size_t *chosen, size_t n, size_t f)
{
    for (size_t i = 0; i < n; i++)
        for (chosen[i] = f; chosen[i] > 0 && !isfinite(u[i].bytes[chosen[i]]);)
            chosen[i]--;
}

/* The result with the least loss from `starts` uniform choices that fit, largest first. */
static double choose(struct mix_unit *units, size_t n, double budget, size_t starts)
{
    size_t *trial = mem_zero(n, sizeof *trial);
    double best = INFINITY, bytes = INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t f = 1; f < MIX_FORMATS; f++)
            units[i].loss[f] = fmax(units[i].loss[f], units[i].loss[f - 1]);
    for (size_t f = 0; f < MIX_FORMATS && starts; f++) {
        choose_uniform(units, trial, n, f);
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

void mix_apply(const struct mix_unit *units, size_t n, struct config *c)
{
    for (size_t i = 0; i < n; i++)
        c->mix[units[i].layer][units[i].part] = (uint8_t)mix_format[units[i].chosen];
}
