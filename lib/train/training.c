/* training.c - the training loop; see training.h. A batch is a function of its step (documents.h),
 * so a resumed training gets the batches of an uninterrupted training. The loss of a record is the
 * mean over the steps since the last record. */
#include "lib/train/training.h"

#include <math.h>

#include "lib/base/clock.h"
#include "lib/base/cli/progress.h"
#include "lib/base/resident.h"
#include "lib/train/loader.h"

static void fill_from(const struct training *training, const struct documents *from, int64_t step,
                      struct train_batch *batch)
{
    const struct training_how *how = training->how;
    size_t rows = (size_t)how->rows, min = (size_t)how->min_len, max = (size_t)how->max_len;
    if (training->config->paradigm == PARADIGM_AUTOREGRESSIVE)
        documents_fill_next_token(from, step, rows, max, batch);
    else if (training->config->paradigm == PARADIGM_LATENT)
        documents_fill_whole(from, step, rows, max, batch);
    else
        documents_fill_diffusion(from, training->config, step, rows, min, max, batch);
}

static void fill(const void *training, int64_t step, struct train_batch *batch)
{
    const struct training *t = training;
    fill_from(t, t->corpus, step, batch);
}

/* Mean loss over eight fixed batches of the held-out records; NaN without held-out records. */
static double valid_loss(const struct training *training)
{
    enum { BATCHES = 8 };
    double sum = 0;
    if (!training->valid->n)
        return NAN;
    struct train_batch batch = train_batch_room((size_t)training->how->rows);
    for (int i = 0; i < BATCHES; i++) {
        fill_from(training, training->valid, i, &batch);
        sum += trainer_loss(training->trainer, &batch, 0);
    }
    train_batch_free(&batch);
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

/* Sums over the steps since the last record. */
struct step_sums {
    double loss, norm;
    int64_t n, tokens, begin_ns, waited_ns; /* waited_ns: total wait for batches at begin_ns */
};

/* The member `memory` of a record: bytes as planned, bytes as the back end counts them, and the
 * peak resident set since the previous record. */
static json_t *memory_of(const struct training *training)
{
    struct memory *memory = &training->backend->memory;
    int64_t resident = resident_peak();
    json_t *object = json_object();
    rec_set_int(object, "weights_bytes", (int64_t)memory->kind[MEMORY_WEIGHTS]);
    rec_set_int(object, "activations_bytes", (int64_t)memory->kind[MEMORY_ACTIVATIONS]);
    rec_set_int(object, "allocated_bytes", (int64_t)memory->allocated);
    rec_set_int(object, "allocated_peak_bytes", (int64_t)memory->allocated_peak);
    rec_set_int(object, "planned_bytes", (int64_t)training->planned_bytes);
    rec_set_number(object, "process_peak_bytes", resident < 0 ? (double)NAN : (double)resident,
                   "the system does not tell");
    memory_reset_peak(memory);
    resident_reset();
    return object;
}

/* Writes the record of the steps up to `step` and starts new sums. */
static int write_record(const struct training *training, int64_t step, struct step_sums *sums,
                        const struct loader *loader, struct err *e)
{
    int last = step == training->how->steps;
    double seconds = (double)(clock_ns() - sums->begin_ns) * 1e-9;
    double waited = (double)(loader_waited_ns(loader) - sums->waited_ns) * 1e-9;
    json_t *j = json_copy((json_t *)training->about);
    rec_set_int(j, "step", step);
    rec_set_int(j, "tokens", step * training->how->rows);
    if (training->config->latents)
        json_object_set_new(j, "mixer", json_string(config_mixer_name(training->config->mixer)));
    rec_set_number(j, "loss", sums->loss / (double)sums->n, "not finite");
    if (last || step / training->how->report % 10 == 0)
        rec_set_number(j, "valid_loss", valid_loss(training), "no held-out records");
    rec_set_number(j, "rate", rate_at(training->how, step - 1), "");
    rec_set_number(j, "grad_norm", sums->norm / (double)sums->n, "not finite");
    rec_set_number(j, "tokens_per_s", (double)sums->tokens / seconds, "");
    rec_set_number(j, "load_wait_ratio", waited / seconds, "");
    json_object_set_new(j, "memory", memory_of(training));
    *sums = (struct step_sums){.begin_ns = clock_ns(), .waited_ns = loader_waited_ns(loader)};
    return rec_write(training->records, "train", j, e);
}

/* Runs one update and adds its loss and norm to *sums. -1: a loss or norm is not finite. */
static int take_step(const struct training *training, int64_t step, struct loader *loader,
                     struct step_sums *sums, struct err *e)
{
    const struct train_batch *batch = loader_next(loader);
    double loss = trainer_loss(training->trainer, batch, 1);
    double norm = trainer_update(training->trainer, rate_at(training->how, step),
                                 training->how->decay, training->how->clip);
    if (!isfinite(loss) || !isfinite(norm))
        return err_set(e, EXIT_INTERNAL,
                       "step %lld: loss %g, gradient norm %g: lower --rate; %s has the last good "
                       "state", (long long)step, loss, norm, training->state);
    sums->loss += loss;
    sums->norm += norm;
    sums->tokens += (int64_t)(batch->seqs * batch->len);
    sums->n++;
    return 0;
}

static int run(const struct training *training, struct loader *loader, struct progress *progress,
               struct err *e)
{
    const int64_t steps = training->how->steps;
    struct step_sums sums = {.begin_ns = clock_ns()};
    for (int64_t step = trainer_step(training->trainer) + 1; step <= steps; step++) {
        if (take_step(training, step - 1, loader, &sums, e))
            return -1;
        if (step % training->how->report == 0 || step == steps) {
            char extra[48];
            snprintf(extra, sizeof extra, "loss %.4f", sums.loss / (double)sums.n);
            if (write_record(training, step, &sums, loader, e))
                return -1;
            progress_at(progress, step, extra);
        }
        if (step % training->how->save == 0 && step < steps && training->saves &&
            trainer_save(training->trainer, training->state, training->note, e))
            return -1;
    }
    return 0;
}

int training_run(const struct training *training, struct err *e)
{
    const struct loader_work work = {fill, training};
    const int64_t done = trainer_step(training->trainer), steps = training->how->steps;
    if (done >= steps) /* a training saves no state after its last step */
        return err_set(e, EXIT_BAD_DATA, "%s: step expected below --steps %lld, got %lld: remove "
                       "the file to start again", training->state, (long long)steps,
                       (long long)done);
    struct loader *loader = loader_open(&work, (size_t)training->how->rows,
                                        trainer_step(training->trainer), training->how->steps,
                                        (size_t)training->how->loaders, e);
    if (!loader)
        return -1;
    struct progress progress;
    progress_start(&progress, training->log, training->progress, "steps", training->how->steps);
    int bad = run(training, loader, &progress, e);
    progress_end(&progress);
    loader_close(loader);
    return bad;
}
