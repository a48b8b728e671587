/* calibration.c - see calibration.h. A part is quantized in place, scored and restored, so memory
 * holds the network and one part. Losses take 24 bytes per text and part. */
#include "lib/run/probe/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/decode/likelihood.h"

/* 1: read; 0: the record has no text. */
static int take(struct calibration *c, const json_t *r, const struct checkpoint *model,
                const struct tokenizer *t, struct err *e)
{
    const char *kind = rec_kind(r);
    struct scored_text text = {0};
    int canvas = model->config.paradigm != PARADIGM_AUTOREGRESSIVE;
    int reference = rec_text(r, "reference") != NULL;
    if (*kind && strcmp(kind, "prompt"))
        return 0;
    if (scored_text_read(&text, r, &model->config, t, canvas, reference, e))
        return -1;
    if (text.ids.n <= text.first) {
        ids_free(&text.ids);
        return 0;
    }
    MEM_GROW(c->text, c->n, c->cap);
    c->text[c->n++] = text;
    return 1;
}

int calibration_read(struct calibration *c, const char *const *files, size_t n, int64_t most,
                     const struct checkpoint *model, const struct tokenizer *t, struct err *e)
{
    struct rec_reader *in = rec_read_open(files, n, e);
    json_t *r;
    int got = in ? 1 : -1;
    while (got > 0 && (!most || (int64_t)c->n < most) && (got = rec_read(in, &r, e)) > 0) {
        if (take(c, r, model, t, e) < 0)
            got = -1;
        json_decref(r);
    }
    rec_read_close(in);
    if (got >= 0 && !c->n)
        got = err_set(e, EXIT_BAD_DATA, "--calibrate: no record with a text to score");
    return got < 0 ? -1 : 0;
}

void calibration_free(struct calibration *c)
{
    for (size_t i = 0; i < c->n; i++)
        ids_free(&c->text[i].ids);
    free(c->text);
    free(c->lost);
    free(c->tokens);
}

/* Nats of each text, and their sum per token. */
static int score(const struct calibration *c, const struct network *n, double *each, double *nats,
                 struct err *e)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct scored_text *t = &c->text[i];
        struct likelihood l;
        int bad = n->config.paradigm == PARADIGM_AUTOREGRESSIVE
                      ? likelihood_nll(n, t->ids.v, t->ids.n, t->first, &l, e)
                      : likelihood_elbo(n, t->ids.v, t->ids.n, t->first, c->samples, c->seed, i,
                                        &l, e);
        if (bad)
            return -1;
        each[i] = l.nats;
        c->tokens[i] = (double)l.scored;
    }
    *nats = stat_sum(each, c->n) / stat_sum(c->tokens, c->n);
    return 0;
}

/* Nats that text i loses with unit u in format f. */
static double *loss_at(const struct calibration *c, size_t i, size_t units, size_t u, size_t f)
{
    return &c->lost[(i * units + u) * MIX_FORMATS + f];
}

static int measure(struct calibration *c, struct network *n, const struct checkpoint *model,
                   struct mix_unit *units, double *dense, struct progress *progress,
                   double *each[2], struct err *e)
{
    size_t count = mix_count(&model->config);
    if (score(c, n, each[0], dense, e))
        return -1;
    for (size_t k = 0; k < count; k++) {
        struct mix_unit *u = &units[k];
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            double nats;
            if (!isfinite(u->bytes[f]))
                continue;
            if (network_part(n, model, u->part, u->layer, mix_format[f], e) ||
                score(c, n, each[1], &nats, e))
                return -1;
            u->loss[f] = nats - *dense;
            for (size_t i = 0; i < c->n; i++)
                *loss_at(c, i, count, k, f) = each[1][i] - each[0][i];
        }
        if (network_part(n, model, u->part, u->layer, QUANT_NONE, e))
            return -1;
        progress_at(progress, (int64_t)k + 1, NULL);
    }
    return 0;
}

int calibration_measure(struct calibration *c, struct network *n, const struct checkpoint *model,
                        struct mix_unit *units, double *dense, struct progress *progress,
                        struct err *e)
{
    double *each[2] = {mem_zero(c->n, sizeof(double)), mem_zero(c->n, sizeof(double))};
    c->tokens = mem_zero(c->n, sizeof *c->tokens);
    c->lost = mem_zero(c->n * mix_count(&model->config), MIX_FORMATS * sizeof *c->lost);
    int bad = measure(c, n, model, units, dense, progress, each, e);
    free(each[0]);
    free(each[1]);
    return bad;
}

/* ---- the choice ---- */

/* Losses of all units over every second text, from text `half` on. */
static void sum_half_losses(const struct calibration *c, size_t half, struct mix_unit *units,
                            size_t count)
{
    double tokens = 0;
    for (size_t i = half; i < c->n; i += 2)
        tokens += c->tokens[i];
    for (size_t u = 0; u < count; u++)
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            double sum = 0;
            for (size_t i = half; i < c->n; i += 2)
                sum += *loss_at(c, i, count, u, f);
            units[u].loss[f] = sum / tokens;
        }
}

/* Adds sign * the loss of each text of the other half under the chosen formats. */
static void judge(const struct calibration *c, size_t half, const struct mix_unit *units,
                  size_t count, double sign, double *gain)
{
    for (size_t i = 1 - half; i < c->n; i += 2)
        for (size_t u = 0; u < count; u++)
            gain[i] += sign * *loss_at(c, i, count, u, units[u].chosen);
}

double calibration_choose(const struct calibration *c, struct mix_unit *units, size_t count,
                          double budget, struct interval *gain)
{
    double *each = mem_zero(c->n, sizeof *each);
    struct mix_unit *trial = mem_zero(count, sizeof *trial);
    double mean = stat_mean(c->tokens, c->n);
    for (size_t half = 0; half < 2 && c->n > 1; half++) {
        memcpy(trial, units, count * sizeof *trial);
        sum_half_losses(c, half, trial, count);
        if (!isfinite(mix_raise(trial, count, budget)))
            break;
        judge(c, half, trial, count, 1, each);
        mix_choose(trial, count, budget);
        judge(c, half, trial, count, -1, each);
    }
    *gain = stat_t(each, c->n, 0.9);
    gain->value /= mean, gain->lo /= mean, gain->hi /= mean;
    free(trial);
    free(each);
    return gain->lo > 0 ? mix_choose(units, count, budget) : mix_raise(units, count, budget);
}
