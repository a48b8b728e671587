/* selfcheck.c - see selfcheck.h. */
#include "lib/run/selfcheck.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/record/resume.h"

void selfcheck_start(struct selfcheck *c, int64_t every, const struct backend *b)
{
    *c = (struct selfcheck){.every = every >= 0 ? every : b->address[0] ? SELFCHECK_EVERY : 0};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The point of a selfcheck: short if the method takes it. */
static struct gen_point shorten(const struct gen_job *job, const struct gen_point *of)
{
    struct gen_point whole = *of, p;
    whole.batch = 1;
    p = whole;
    p.max_new = least(p.max_new, SELFCHECK_TOKENS);
    if (p.block_length && p.gen_length % p.block_length == 0) {
        p.steps = p.steps / (p.gen_length / p.block_length);
        p.gen_length = p.block_length;
    }
    return job->method->check(job->settings, &p, NULL) ? whole : p;
}

/* 1: *g is the generation, to be freed; 0: memory was short, or the run is being stopped. */
static int generate(const struct selfcheck *c, const struct gen_job *job, const struct network *n,
                    struct generation *g)
{
    struct batch_trace trace = {0};
    *g = (struct generation){0};
    job->method->run(n, job->settings, &c->point, 0, job->plan->seed, job->stop,
                     &c->prompt->input, 1, g, &trace);
    return !trace.interrupted && !g->oom;
}

/* After a batch: its memory is taken, and what is recorded of it stays as it is. */
static void learn(struct selfcheck *c, const struct gen_job *job, const struct network *n,
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

/* Ends the process: nothing that this device says can be believed. */
static void fall(const struct selfcheck *c, const struct generation *g, struct rec_writer *out)
{
    struct err e = {0};
    size_t i = 0;
    while (i < g->n && i < c->n && g->ids[i] == c->ids[i])
        i++;
    err_set(&e, EXIT_INTERNAL, "selfcheck: prompt '%.200s', generated again after %lld batches, "
            "gives %s from token %zu on: neither the device nor what it said since is to be "
            "believed; a restart may help (--selfcheck 0 does not look)", c->prompt->id,
            (long long)c->since, g->bad ? "NaN" : "other ids", i);
    rec_revert(out);
    err_machine(__FILE__, __LINE__, e.text);
}

static void look(struct selfcheck *c, const struct gen_job *job, const struct network *n,
                 struct rec_writer *out)
{
    struct generation g;
    if (generate(c, job, n, &g)) {
        if (g.bad || g.n != c->n || memcmp(g.ids, c->ids, g.n * sizeof *g.ids))
            fall(c, &g, out);
        rec_mark(out);
        c->since = 0;
    }
    generation_free(&g);
}

void selfcheck_before(struct selfcheck *c, const struct gen_job *job, const struct network *n,
                   const struct gen_point *point, const struct prompt *p, struct rec_writer *out)
{
    if (c->every && !c->prompt) {
        c->prompt = p;
        c->point = shorten(job, point);
    } else if (c->every && !c->ids) {
        learn(c, job, n, out);
    }
}

void selfcheck_after(struct selfcheck *c, const struct gen_job *job, const struct network *n,
                  struct rec_writer *out)
{
    if (c->ids && ++c->since >= c->every)
        look(c, job, n, out);
}

void selfcheck_last(struct selfcheck *c, const struct gen_job *job, const struct network *n,
                 struct rec_writer *out)
{
    if (c->ids && c->since)
        look(c, job, n, out);
}

void selfcheck_free(struct selfcheck *c)
{
    free(c->ids);
}
