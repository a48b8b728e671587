/* canvas.c - the shared parts of samplers (canvas.h). A sampler also reports how close its
 * decisions were: the smallest lead of a chosen id, and the smallest difference of measures that
 * were compared. */
#include "tests/reference/canvas.h"

#include <math.h>
#include <stdlib.h>

double canvas_asked(const json_t *request, const char *key, double otherwise)
{
    const json_t *v = json_object_get(request, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

void canvas_note(double *least, double gap)
{
    if (gap < *least) *least = gap;
}

/* The filters of Dream at temperature 0: sends to the end of the row the ids after the mass top_p,
 * and the ids with top_k or more ids above them. The error of single precision is smaller in a mass
 * than in a confidence, so differences of masses count ten times. */
static void keep(struct canvas *c, double *row)
{
    const size_t v = c->m->vocab;
    double *p = malloc(v * sizeof *p);
    for (size_t i = 0; i < v; i++)
        p[i] = exp(-model_nll(row, v, i));
    for (size_t i = 0; i < v; i++) {
        double before = 0;
        size_t above = 0;
        for (size_t j = 0; j < v; j++) {
            before += p[j] > p[i] || (!(p[j] < p[i]) && j < i) ? p[j] : 0;
            above += p[j] > p[i];
        }
        if (c->top_k && above >= c->top_k) row[i] = -1e300;
        else if (p[i] > 1e-4) canvas_note(&c->min_confidence, 10 * fabs(before - c->top_p));
        if (before > c->top_p) row[i] = -1e300;
    }
    free(p);
}

void canvas_choose(struct canvas *c, size_t t, size_t lag)
{
    const size_t v = c->m->vocab;
    double *row = c->logits + (t - lag) * v;
    size_t top = 0, second = v;
    for (size_t i = 1; i < v; i++)
        if (row[i] > row[top]) {
            second = top;
            top = i;
        } else if (second == v || row[i] > row[second]) {
            second = i;
        }
    c->choice[t] = (long)top;
    c->lead[t] = row[top] - row[second];
    if (c->top_p < 1 || c->top_k) keep(c, row);
    c->sure[t] = exp(-model_nll(row, v, top));
    if (c->order == 'm') c->sure[t] -= exp(-model_nll(row, v, second));
    if (c->order == 'e') c->sure[t] = 0;
    for (size_t i = 0; c->order == 'e' && i < v; i++)
        c->sure[t] -= exp(-model_nll(row, v, i)) * model_nll(row, v, i);
}

size_t canvas_masks(const struct canvas *c, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t t = from; t < to; t++)
        n += c->x[t] == c->mask;
    return n;
}

void canvas_step(struct canvas *c, size_t from, size_t to, size_t seen, size_t count,
                 double threshold, size_t lag)
{
    size_t sure = 0;
    model_logits(c->m, c->x, seen, c->logits);
    for (size_t t = 0; t < c->n; t++)
        c->sure[t] = -INFINITY;
    for (size_t t = from; t < to; t++)
        if (c->x[t] == c->mask) {
            canvas_choose(c, t, lag);
            sure += c->sure[t] > threshold;
            canvas_note(&c->min_confidence, fabs(c->sure[t] - threshold));
        }
    double last = INFINITY;
    for (size_t i = 0; i < (sure > count ? sure : count) + 1; i++) {
        size_t best = from;
        for (size_t t = from + 1; t < to; t++)
            if (c->sure[t] > c->sure[best]) best = t;
        if (c->sure[best] == -INFINITY) break;
        canvas_note(&c->min_confidence, i ? last - c->sure[best] : INFINITY);
        last = c->sure[best];
        if (i < (sure > count ? sure : count)) {
            c->x[best] = c->choice[best];
            canvas_note(&c->min_lead, c->lead[best]);
        }
        c->sure[best] = -INFINITY;
    }
}
