/* calibration.c - see calibration.h. A part is quantized in place, scored and restored, so memory
 * holds the network and one part. Losses take 24 bytes per text and part. */
#include "lib/run/probe/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/decode/likelihood.h"

/* Takes the text of a record. Returns 1, or 0 if the record has no text to score, or -1 with *e. */
static int take(struct calibration *calibration, const json_t *record,
                const struct checkpoint *model, const struct tokenizer *tokenizer, struct err *e)
{
    const char *kind = rec_kind(record);
    struct scored_text text = {0};
    int canvas = model->config.paradigm != PARADIGM_AUTOREGRESSIVE;
    int reference = rec_text(record, "reference") != NULL;
    if (*kind && strcmp(kind, "prompt"))
        return 0;
    if (scored_text_read(&text, record, &model->config, tokenizer, canvas, reference, e))
        return -1;
    if (text.ids.n <= text.first) {
        ids_free(&text.ids);
        return 0;
    }
    MEM_GROW(calibration->text, calibration->n, calibration->cap);
    calibration->text[calibration->n++] = text;
    return 1;
}

int calibration_read(struct calibration *calibration, const char *const *files, size_t n,
                     int64_t most, const struct checkpoint *model,
                     const struct tokenizer *tokenizer, struct err *e)
{
    struct rec_reader *in = rec_read_open(files, n, e);
    json_t *record;
    int got = in ? 1 : -1;
    while (got > 0 && (!most || (int64_t)calibration->n < most) &&
           (got = rec_read(in, &record, e)) > 0) {
        if (take(calibration, record, model, tokenizer, e) < 0)
            got = -1;
        json_decref(record);
    }
    rec_read_close(in);
    if (got >= 0 && !calibration->n)
        got = err_set(e, EXIT_BAD_DATA, "--calibrate: no record with a text to score");
    return got < 0 ? -1 : 0;
}

void calibration_free(struct calibration *calibration)
{
    for (size_t i = 0; i < calibration->n; i++)
        ids_free(&calibration->text[i].ids);
    free(calibration->text);
    free(calibration->lost);
    free(calibration->tokens);
}

/* each = nats of each text; *nats = nats per token of all texts. */
static int score(const struct calibration *calibration, const struct network *n, double *each,
                 double *nats, struct err *e)
{
    for (size_t i = 0; i < calibration->n; i++) {
        const struct scored_text *text = &calibration->text[i];
        struct likelihood likelihood;
        int bad = n->config.paradigm == PARADIGM_AUTOREGRESSIVE
                      ? likelihood_nll(n, text->ids.v, text->ids.n, text->first, &likelihood, e)
                      : likelihood_elbo(n, text->ids.v, text->ids.n, text->first,
                                        calibration->samples, calibration->seed, i, &likelihood, e);
        if (bad)
            return -1;
        each[i] = likelihood.nats;
        calibration->tokens[i] = (double)likelihood.scored;
    }
    *nats = stat_sum(each, calibration->n) / stat_sum(calibration->tokens, calibration->n);
    return 0;
}

/* Returns the place of the nats that text i loses with unit u in format f. */
static double *loss_at(const struct calibration *calibration, size_t i, size_t units, size_t u,
                       size_t f)
{
    return &calibration->lost[(i * units + u) * MIX_FORMATS + f];
}

static int measure(struct calibration *calibration, struct network *n,
                   const struct checkpoint *model, struct mix_unit *units, double *dense,
                   struct progress *progress, double *each[2], struct err *e)
{
    size_t count = mix_count(&model->config);
    if (score(calibration, n, each[0], dense, e))
        return -1;
    for (size_t k = 0; k < count; k++) {
        struct mix_unit *unit = &units[k];
        for (size_t format = 1; format < MIX_FORMATS; format++) {
            double nats;
            if (!isfinite(unit->bytes[format]))
                continue;
            if (network_part(n, model, unit->part, unit->layer, mix_format[format], e) ||
                score(calibration, n, each[1], &nats, e))
                return -1;
            unit->loss[format] = nats - *dense;
            for (size_t i = 0; i < calibration->n; i++)
                *loss_at(calibration, i, count, k, format) = each[1][i] - each[0][i];
        }
        if (network_part(n, model, unit->part, unit->layer, QUANT_NONE, e))
            return -1;
        progress_at(progress, (int64_t)k + 1, NULL);
    }
    return 0;
}

int calibration_measure(struct calibration *calibration, struct network *n,
                        const struct checkpoint *model, struct mix_unit *units, double *dense,
                        struct progress *progress, struct err *e)
{
    double *each[2] = {mem_zero(calibration->n, sizeof(double)),
                       mem_zero(calibration->n, sizeof(double))};
    calibration->tokens = mem_zero(calibration->n, sizeof *calibration->tokens);
    calibration->lost = mem_zero(calibration->n * mix_count(&model->config),
                                 MIX_FORMATS * sizeof *calibration->lost);
    int bad = measure(calibration, n, model, units, dense, progress, each, e);
    free(each[0]);
    free(each[1]);
    return bad;
}

/* ---- the choice ---- */

/* Sets the losses of all units over one half of the texts: every second text from text `half`
 * on. */
static void sum_half_losses(const struct calibration *calibration, size_t half,
                            struct mix_unit *units, size_t count)
{
    double tokens = 0;
    for (size_t i = half; i < calibration->n; i += 2)
        tokens += calibration->tokens[i];
    for (size_t u = 0; u < count; u++)
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            double sum = 0;
            for (size_t i = half; i < calibration->n; i += 2)
                sum += *loss_at(calibration, i, count, u, f);
            units[u].loss[f] = sum / tokens;
        }
}

/* Adds sign * the loss of each text of the other half under the chosen formats. */
static void judge(const struct calibration *calibration, size_t half, const struct mix_unit *units,
                  size_t count, double sign, double *gain)
{
    for (size_t i = 1 - half; i < calibration->n; i += 2)
        for (size_t u = 0; u < count; u++)
            gain[i] += sign * *loss_at(calibration, i, count, u, units[u].chosen);
}

double calibration_choose(const struct calibration *calibration, struct mix_unit *units,
                          size_t count, double budget, struct interval *gain)
{
    double *each = mem_zero(calibration->n, sizeof *each);
    struct mix_unit *trial = mem_zero(count, sizeof *trial);
    double mean = stat_mean(calibration->tokens, calibration->n);
    for (size_t half = 0; half < 2 && calibration->n > 1; half++) {
        memcpy(trial, units, count * sizeof *trial);
        sum_half_losses(calibration, half, trial, count);
        if (!isfinite(mix_raise(trial, count, budget)))
            break;
        judge(calibration, half, trial, count, 1, each);
        mix_choose(trial, count, budget);
        judge(calibration, half, trial, count, -1, each);
    }
    *gain = stat_t(each, calibration->n, 0.9);
    gain->value /= mean, gain->lo /= mean, gain->hi /= mean;
    free(trial);
    free(each);
    return gain->lo > 0 ? mix_choose(units, count, budget) : mix_raise(units, count, budget);
}
