/* solvers.c - measures the error of the samples of each solver of lib/latent/solver.h after a
 * number of evaluations of the model, on a mixture whose flow is known exactly (tests/mixture.h).
 * Nothing is timed, because the cost of a solver is its evaluations. The row `fresh` is a sampler
 * that replaces the predicted noise by fresh noise at each step, as a public fork does. It does not
 * follow the flow, so only the width of its modes is meaningful. Another --seed gives other
 * noise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "tests/bench/bench.h"
#include "tests/mixture.h"

enum { ROWS = 4000, FRESH = SOLVER_ADAPTIVE + 1, WAYS };

static const char *const names[WAYS] = {"ddim", "dpmpp2m", "edm", "adaptive", "fresh"};
static const size_t evaluations[] = {10, 20, 50, 1000};

struct samples {
    struct bench *bench;
    float *x, *end, *room;
};

static int put(struct samples *s, int way, size_t calls, struct err *e)
{
    struct mixture_distance d = mixture_distance(s->x, s->end, ROWS);
    double wide = mixture_deviation(s->x, ROWS) / mixture_deviation(s->end, ROWS);
    const char *why = way == FRESH ? "fresh noise ends elsewhere" : NULL;
    json_t *r = json_pack("{s:s}", "solver", names[way]);
    rec_set_int(r, "evaluations", (int64_t)calls);
    rec_set_int(r, "rows", ROWS);
    rec_set_number(r, "flow_distance", why ? (double)NAN : d.value, why);
    rec_set_number(r, "flow_distance_error", why ? (double)NAN : d.error, why);
    rec_set_number(r, "width_ratio", wide, NULL);
    fprintf(stderr, "%-9s %5zu evaluations", names[way], calls);
    if (!why)
        fprintf(stderr, "  off by %.5f +- %.5f", d.value, d.error);
    fprintf(stderr, "  width %+.2f %%\n", 100 * (wide - 1));
    s->bench->points++;
    return rec_write(&s->bench->out, "solver", r, e) ? -1 : bench_stopped(s->bench, e);
}

/* An adaptive solver chooses its number of evaluations. */
static int run_way(struct samples *s, int way, size_t most, struct err *e)
{
    uint64_t seed = (uint64_t)s->bench->common.seed;
    struct solver p = SOLVER_DEFAULTS;
    size_t calls = 0;
    const struct denoiser d = {mixture_predict, &calls};
    p.kind = (enum solver_kind)(way == FRESH ? 0 : way);
    p.evaluations = most;
    mixture_noise(seed, s->x, ROWS);
    mixture_end(&p, s->x, ROWS, s->end);
    if (way == FRESH)
        mixture_fresh(seed, most, s->x, s->room, ROWS);
    return put(s, way, way == FRESH ? most : solver_run(&p, &d, s->x, ROWS, 1), e);
}

int bench_solvers(struct bench *b, struct err *e)
{
    float *all = mem_alloc(3 * ROWS * sizeof *all);
    struct samples s = {b, all, all + ROWS, all + 2 * ROWS};
    int bad = 0;
    for (int way = 0; way < WAYS && !bad; way++)
        for (size_t i = 0; i < sizeof evaluations / sizeof *evaluations && !bad; i++)
            if (way != SOLVER_ADAPTIVE || !i)
                bad = run_way(&s, way, evaluations[i], e);
    free(all);
    return bad;
}
