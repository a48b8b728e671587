/* training.c - see training.h. A batch is a function of its step (documents.h), so a resumed
 * training sees the batches of an uninterrupted one. The loss of a record is the mean over the
 * steps since the last record. */
#include "lib/train/training.h"

#include <math.h>

#include "lib/base/clock.h"
#include "lib/base/cli/progress.h"
#include "lib/base/resident.h"
#include "lib/train/loader.h"

static void fill_from(const struct training *t, const struct documents *from, int64_t step,
                      struct train_batch *b)
{
    const struct training_how *how = t->how;
    size_t rows = (size_t)how->rows, min = (size_t)how->min_len, max = (size_t)how->max_len;
    if (t->config->paradigm == PARADIGM_AUTOREGRESSIVE)
        documents_fill_next_token(from, step, rows, max, b);
    else if (t->config->paradigm == PARADIGM_LATENT)
        documents_fill_whole(from, step, rows, max, b);
    else
        documents_fill_diffusion(from, t->config, step, rows, min, max, b);
}

static void fill(const void *training, int64_t step, struct train_batch *b)
{
    const struct training *t = training;
    fill_from(t, t->corpus, step, b);
}

/* Loss over eight fixed batches of the held-out records; NaN without them. */
static double valid_loss(const struct training *t)
{
    enum { BATCHES = 8 };
    double sum = 0;
    if (!t->valid->n)
        return NAN;
    struct train_batch b = train_batch_room((size_t)t->how->rows);
    for (int i = 0; i < BATCHES; i++) {
        fill_from(t, t->valid, i, &b);
        sum += trainer_loss(t->trainer, &b, 0);
    }
    train_batch_free(&b);
    return sum / BATCHES;
}

static double rate_at(const struct training_how *how, int64_t step)
{
    double s = (double)step, end = (double)how->steps;
    if (s < how->warmup)
        return how->rate * (s + 1) / how->warmup;
    double done = end > how->warmup ? (s - how->warmup) / (end - how->warmup) : 1;
    return how->rate * (0.05 + 0.95 * 0.5 * (1 + cos(3.141592653589793 * done)));
}

/* Sums since the last record. */
struct step_sums {
    double loss, norm;
    int64_t n, tokens, begin_ns, waited_ns; /* waited_ns: total wait for batches at begin_ns */
};

/* Bytes as planned, as the back end counts them, and the peak resident set since the previous
 * record. */
static json_t *memory_of(const struct training *t)
{
    struct memory *m = &t->backend->memory;
    int64_t resident = resident_peak();
    json_t *o = json_object();
    rec_set_int(o, "weights_bytes", (int64_t)m->kind[MEMORY_WEIGHTS]);
    rec_set_int(o, "activations_bytes", (int64_t)m->kind[MEMORY_ACTIVATIONS]);
    rec_set_int(o, "allocated_bytes", (int64_t)m->allocated);
    rec_set_int(o, "allocated_peak_bytes", (int64_t)m->allocated_peak);
    rec_set_int(o, "planned_bytes", (int64_t)t->planned_bytes);
    rec_set_number(o, "process_peak_bytes", resident < 0 ? (double)NAN : (double)resident,
                   "the system does not tell");
    memory_reset_peak(m);
    resident_reset();
    return o;
}

/* Writes the record of the steps up to `step` and starts new sums. */
static int write_record(const struct training *t, int64_t step, struct step_sums *s,
                        const struct loader *l, struct err *e)
{
    int last = step == t->how->steps;
    double seconds = (double)(clock_ns() - s->begin_ns) * 1e-9;
    double waited = (double)(loader_waited_ns(l) - s->waited_ns) * 1e-9;
    json_t *j = json_copy((json_t *)t->about);
    rec_set_int(j, "step", step);
    rec_set_int(j, "tokens", step * t->how->rows);
    if (t->config->latents)
        json_object_set_new(j, "mixer", json_string(config_mixer_name(t->config->mixer)));
    rec_set_number(j, "loss", s->loss / (double)s->n, "not finite");
    if (last || step / t->how->report % 10 == 0)
        rec_set_number(j, "valid_loss", valid_loss(t), "no held-out records");
    rec_set_number(j, "rate", rate_at(t->how, step - 1), "");
    rec_set_number(j, "grad_norm", s->norm / (double)s->n, "not finite");
    rec_set_number(j, "tokens_per_s", (double)s->tokens / seconds, "");
    rec_set_number(j, "load_wait_ratio", waited / seconds, "");
    json_object_set_new(j, "memory", memory_of(t));
    *s = (struct step_sums){.begin_ns = clock_ns(), .waited_ns = loader_waited_ns(l)};
    return rec_write(t->records, "train", j, e);
}

/* One update. */
static int take_step(const struct training *t, int64_t step, struct loader *l, struct step_sums *s,
                     struct err *e)
{
    const struct train_batch *batch = loader_next(l);
    double loss = trainer_loss(t->trainer, batch, 1);
    double norm = trainer_update(t->trainer, rate_at(t->how, step), t->how->decay, t->how->clip);
    if (!isfinite(loss) || !isfinite(norm))
        return err_set(e, EXIT_INTERNAL,
                       "step %lld: loss %g, gradient norm %g: lower --rate; %s has the last good "
                       "state", (long long)step, loss, norm, t->state);
    s->loss += loss;
    s->norm += norm;
    s->tokens += (int64_t)(batch->seqs * batch->len);
    s->n++;
    return 0;
}

static int run(const struct training *t, struct loader *l, struct progress *p, struct err *e)
{
    const int64_t steps = t->how->steps;
    struct step_sums s = {.begin_ns = clock_ns()};
    for (int64_t step = trainer_step(t->trainer) + 1; step <= steps; step++) {
        if (take_step(t, step - 1, l, &s, e))
            return -1;
        if (step % t->how->report == 0 || step == steps) {
            char extra[48];
            snprintf(extra, sizeof extra, "loss %.4f", s.loss / (double)s.n);
            if (write_record(t, step, &s, l, e))
                return -1;
            progress_at(p, step, extra);
        }
        if (step % t->how->save == 0 && step < steps && t->saves &&
            trainer_save(t->trainer, t->state, t->note, e))
            return -1;
    }
    return 0;
}

int training_run(const struct training *t, struct err *e)
{
    const struct loader_work work = {fill, t};
    const int64_t done = trainer_step(t->trainer), steps = t->how->steps;
    if (done >= steps) /* a training saves no state after its last step */
        return err_set(e, EXIT_BAD_DATA, "%s: step expected below --steps %lld, got %lld: remove "
                       "the file to start again", t->state, (long long)steps, (long long)done);
    struct loader *l = loader_open(&work, (size_t)t->how->rows, trainer_step(t->trainer),
                                   t->how->steps, (size_t)t->how->loaders, e);
    if (!l)
        return -1;
    struct progress p;
    progress_start(&p, t->log, t->progress, "steps", t->how->steps);
    int bad = run(t, l, &p, e);
    progress_end(&p);
    loader_close(l);
    return bad;
}
