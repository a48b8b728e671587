/* calibration.c - see calibration.h. A part is quantized in place, scored and put back, so that
 * beside the network one part at most is in memory.
 */
#include "lib/run/calibration.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/decode/likelihood.h"

/* 1: taken; 0: no text. */
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
}

int calibration_score(const struct calibration *c, const struct network *n, double *nats,
                      struct err *e)
{
    double sum = 0, tokens = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct scored_text *t = &c->text[i];
        struct likelihood l;
        int bad = n->config.paradigm == PARADIGM_AUTOREGRESSIVE
                      ? likelihood_nll(n, t->ids.v, t->ids.n, t->first, &l, e)
                      : likelihood_elbo(n, t->ids.v, t->ids.n, t->first, c->samples, c->seed, i,
                                        &l, e);
        if (bad)
            return -1;
        sum += l.nats;
        tokens += (double)l.scored;
    }
    *nats = sum / tokens;
    return 0;
}

int calibration_measure(const struct calibration *c, struct network *n,
                        const struct checkpoint *model, struct mix_unit *units, double *dense,
                        struct progress *progress, struct err *e)
{
    size_t count = mix_count(&model->config);
    if (calibration_score(c, n, dense, e))
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct mix_unit *u = &units[i];
        for (size_t f = 1; f < MIX_FORMATS; f++) {
            double nats;
            if (!isfinite(u->bytes[f]))
                continue;
            if (network_part(n, model, u->part, u->layer, mix_format[f], e) ||
                calibration_score(c, n, &nats, e))
                return -1;
            u->loss[f] = nats - *dense;
        }
        if (network_part(n, model, u->part, u->layer, QUANT_NONE, e))
            return -1;
        progress_at(progress, (int64_t)i + 1, NULL);
    }
    return 0;
}
