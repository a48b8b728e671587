/* selfcheck.c - see selfcheck.h. The first batch of a run only sets the prompt. The expected ids
 * are generated before the second batch, so that a run of one batch costs nothing more. Each good
 * check marks the work file; a failed check cuts it back to the last mark. */
#include "lib/run/selfcheck.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/resume.h"

void selfcheck_start(struct selfcheck *selfcheck, int64_t every, const struct backend *backend)
{
    *selfcheck = (struct selfcheck){.every = every >= 0            ? every
                                             : backend->address[0] ? SELFCHECK_EVERY
                                                                   : 0};
}

/* Generates the text of the check; the caller frees *generation. Returns 1, or 0 if there is no
 * memory or the run was stopped. */
static int generate(const struct selfcheck *selfcheck, const struct job *job,
                    const struct network *n, struct generation *generation)
{
    struct batch_trace trace = {0};
    *generation = (struct generation){0};
    const struct decode_env env = {.seed = job->plan->seed, .stop = job->stop,
                                   .latents = job->latents};
    job->decoder->run(n, &selfcheck->point, &env, &selfcheck->prompt->input, 1, generation, &trace);
    return !trace.interrupted && !generation->oom;
}

/* Generates and keeps the expected ids. Runs between batches, so that it does not change the memory
 * in the records of batches. */
static void keep_ids(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                     struct rec_writer *out)
{
    struct generation generation;
    if (generate(selfcheck, job, n, &generation) && !generation.bad && generation.n) {
        selfcheck->n = generation.n;
        selfcheck->ids = mem_alloc(generation.n * sizeof *selfcheck->ids);
        memcpy(selfcheck->ids, generation.ids, generation.n * sizeof *selfcheck->ids);
        rec_mark(out);
    } else {
        selfcheck->every = 0;
    }
    generation_free(&generation);
}

static int compare_ids(const struct selfcheck *selfcheck, const struct generation *generation,
                       struct rec_writer *out, struct err *e)
{
    size_t i = 0;
    while (i < generation->n && i < selfcheck->n && generation->ids[i] == selfcheck->ids[i])
        i++;
    rec_revert(out);
    return err_set(e, EXIT_INTERNAL, "self-check: prompt '%.200s', generated again after %lld "
                   "batches, gives %s from token %zu on: the device has become unreliable, and so "
                   "are the records since then; a restart may help (--self-check 0 turns this "
                   "check off)", selfcheck->prompt->id, (long long)selfcheck->since,
                   generation->bad ? "NaN" : "other ids", i);
}

static int check_ids(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                     struct rec_writer *out, struct err *e)
{
    struct generation generation;
    int bad = 0;
    if (generate(selfcheck, job, n, &generation)) {
        bad = generation.bad || generation.n != selfcheck->n ||
              memcmp(generation.ids, selfcheck->ids, generation.n * sizeof *generation.ids);
        if (!bad) {
            rec_mark(out);
            selfcheck->since = 0;
        }
    }
    bad = bad ? compare_ids(selfcheck, &generation, out, e) : 0;
    generation_free(&generation);
    return bad;
}

void selfcheck_before(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                      const struct settings *point, const struct prompt *prompt,
                      struct rec_writer *out)
{
    if (selfcheck->every && !selfcheck->prompt) {
        selfcheck->prompt = prompt;
        selfcheck->point = *point;
        job->decoder->shorten(&selfcheck->point);
    } else if (selfcheck->every && !selfcheck->ids) {
        keep_ids(selfcheck, job, n, out);
    }
}

int selfcheck_after(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                    struct rec_writer *out, struct err *e)
{
    return selfcheck->ids && ++selfcheck->since >= selfcheck->every
               ? check_ids(selfcheck, job, n, out, e)
               : 0;
}

int selfcheck_last(struct selfcheck *selfcheck, const struct job *job, const struct network *n,
                   struct rec_writer *out, struct err *e)
{
    return selfcheck->ids && selfcheck->since ? check_ids(selfcheck, job, n, out, e) : 0;
}

void selfcheck_free(struct selfcheck *selfcheck)
{
    free(selfcheck->ids);
}
