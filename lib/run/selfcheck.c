/* selfcheck.c - see selfcheck.h. The first batch of a run only sets the prompt. The expected ids
 * are generated before the second batch, so that a run of one batch costs nothing more. Each good
 * check marks the work file; a failed check cuts it back to the last mark. */
#include "lib/run/selfcheck.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/resume.h"

void selfcheck_start(struct selfcheck *c, int64_t every, const struct backend *b)
{
    *c = (struct selfcheck){.every = every >= 0 ? every : b->address[0] ? SELFCHECK_EVERY : 0};
}

/* 1: *g holds the generation, to be freed; 0: no memory, or the run was stopped. */
static int generate(const struct selfcheck *c, const struct job *job, const struct network *n,
                    struct generation *g)
{
    struct batch_trace trace = {0};
    *g = (struct generation){0};
    const struct decode_env env = {.seed = job->plan->seed, .stop = job->stop,
                                   .latents = job->latents};
    job->decoder->run(n, &c->point, &env, &c->prompt->input, 1, g, &trace);
    return !trace.interrupted && !g->oom;
}

/* Runs between batches, so that the memory in their records does not change. */
static void keep_ids(struct selfcheck *c, const struct job *job, const struct network *n,
                     struct rec_writer *out)
{
    struct generation g;
    if (generate(c, job, n, &g) && !g.bad && g.n) {
        c->n = g.n;
        c->ids = mem_alloc(g.n * sizeof *c->ids);
        memcpy(c->ids, g.ids, g.n * sizeof *c->ids);
        rec_mark(out);
    } else {
        c->every = 0;
    }
    generation_free(&g);
}

static int compare_ids(const struct selfcheck *c, const struct generation *g,
                       struct rec_writer *out, struct err *e)
{
    size_t i = 0;
    while (i < g->n && i < c->n && g->ids[i] == c->ids[i])
        i++;
    rec_revert(out);
    return err_set(e, EXIT_INTERNAL, "self-check: prompt '%.200s', generated again after %lld "
                   "batches, gives %s from token %zu on: the device has become unreliable, and so "
                   "are the records since then; a restart may help (--self-check 0 turns this "
                   "check off)", c->prompt->id, (long long)c->since, g->bad ? "NaN" : "other ids",
                   i);
}

static int check_ids(struct selfcheck *c, const struct job *job, const struct network *n,
                     struct rec_writer *out, struct err *e)
{
    struct generation g;
    int bad = 0;
    if (generate(c, job, n, &g)) {
        bad = g.bad || g.n != c->n || memcmp(g.ids, c->ids, g.n * sizeof *g.ids);
        if (!bad) {
            rec_mark(out);
            c->since = 0;
        }
    }
    bad = bad ? compare_ids(c, &g, out, e) : 0;
    generation_free(&g);
    return bad;
}

void selfcheck_before(struct selfcheck *c, const struct job *job, const struct network *n,
                      const struct settings *point, const struct prompt *p,
                      struct rec_writer *out)
{
    if (c->every && !c->prompt) {
        c->prompt = p;
        c->point = *point;
        job->decoder->shorten(&c->point);
    } else if (c->every && !c->ids) {
        keep_ids(c, job, n, out);
    }
}

int selfcheck_after(struct selfcheck *c, const struct job *job, const struct network *n,
                    struct rec_writer *out, struct err *e)
{
    return c->ids && ++c->since >= c->every ? check_ids(c, job, n, out, e) : 0;
}

int selfcheck_last(struct selfcheck *c, const struct job *job, const struct network *n,
                   struct rec_writer *out, struct err *e)
{
    return c->ids && c->since ? check_ids(c, job, n, out, e) : 0;
}

void selfcheck_free(struct selfcheck *c)
{
    free(c->ids);
}
