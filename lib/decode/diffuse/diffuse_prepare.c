/* diffuse_prepare.c - prepares, before the clock begins, the passes that can come.
 *
 * It simulates the batch, and records each kind of pass that repeats. Where canvases end or begin
 * at different times, a pass may have any set of canvases. If all inputs have one length and
 * one draft, passes with fewer canvases are recorded too, up to RECORDS. The other passes are too
 * many to record. One of them runs for each result of rows_step(). This run makes the kernels and
 * choices ready that all passes with the same result share. */
#include "lib/decode/diffuse/diffuse_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { RECORDS = 128 }; /* with so many records, passes with fewer canvases run unrecorded */

/* State of diffuse_prepare. */
struct acts {
    int32_t id;                /* the committed id: no mask and no stop id */
    struct diffuse_plan *plan; /* [n] recorded */
    size_t n, cap;
    size_t *step;              /* [n_steps] rows_step() of all passes that ran */
    size_t n_steps, cap_steps;
    size_t from;               /* is_settled() looks at step[from] and later ones only */
    struct canvas_state *at;   /* [lanes] saved states, for prepare_fewer() */
};

static int is_recorded(const struct acts *acts, const struct diffuse_plan *plan)
{
    size_t i = 0;
    while (i < acts->n && memcmp(&acts->plan[i], plan, sizeof *plan))
        i++;
    return i < acts->n;
}

/* 1: a pass with the same rows_step() ran since acts->from. */
static int is_settled(const struct acts *acts, size_t T)
{
    size_t i = acts->from;
    while (i < acts->n_steps && acts->step[i] != rows_step(T))
        i++;
    return i < acts->n_steps;
}

/* Prepares the described pass with `capacity` wanted rows, unless it is recorded already or, with
 * `records` 0, is settled (is_settled()). A canvas that wants more only waits. */
static void prepare_pass(struct diffuse_run *run, struct acts *acts, size_t capacity, int records)
{
    struct backend *backend = run->n->backend;
    const size_t T = run->plan.pass.T;
    diffuse_ask(run, capacity);
    if (!T || (records ? is_recorded(acts, &run->plan) : is_settled(acts, T)))
        return; /* T 0: all these canvases have ended */
    pass_write(run->n, run->work);
    MEM_GROW(acts->step, acts->n_steps, acts->cap_steps);
    acts->step[acts->n_steps++] = rows_step(T);
    if (!records) {
        diffuse_pass(run);
        return;
    }
    MEM_GROW(acts->plan, acts->n, acts->cap);
    memcpy(&acts->plan[acts->n++], &run->plan, sizeof run->plan);
    backend->ops->prepare(backend, &run->plan, sizeof run->plan, diffuse_pass, run);
}

/* 1: passes with the same number of canvases have the same number of rows. */
static int is_alike(const struct diffuse_run *run)
{
    size_t i = 0;
    while (i < run->inputs &&
           diffuse_length(run, &run->in[i]) == diffuse_length(run, &run->in[0]))
        i++;
    return i == run->inputs && run->drafts == 1;
}

/* Prepares passes with fewer and fewer lanes. acts->from makes is_settled() ignore the passes that
 * ran before, because passes of other descriptions may use other kernels. */
static void prepare_fewer(struct diffuse_run *run, struct acts *acts, size_t capacity)
{
    const int alike = is_alike(run);
    memcpy(acts->at, run->host.state, run->lanes * sizeof *acts->at);
    acts->from = acts->n_steps;
    for (size_t n = run->lanes; --n > 0;) {
        run->host.state[n].live = 0;
        diffuse_describe_pass(run);
        prepare_pass(run, acts, capacity, alike && acts->n < RECORDS);
    }
    acts->from = 0;
    memcpy(run->host.state, acts->at, run->lanes * sizeof *acts->at);
    diffuse_describe_pass(run);
}

/* Prepares the passes as described. Rows that do not repeat are not recorded. */
static void prepare_described(struct diffuse_run *run, struct acts *acts)
{
    const size_t T = run->plan.pass.T, capacity = diffuse_capacity_now(run), were = acts->n;
    int repeats = !run->policy->fleeting || T == (run->guided ? 2 * run->ids : run->ids);
    int together = run->how->rule == UNMASK_SCHEDULE && !run->how->stop_at_eos;
    prepare_pass(run, acts, capacity, repeats);
    if (acts->n > were && run->batch > 1 && (!together || run->drafts > 1 || run->changing))
        prepare_fewer(run, acts, capacity);
}

static int any_live(const struct diffuse_run *run)
{
    int live = 0;
    for (size_t i = 0; i < run->lanes; i++)
        live |= run->host.state[i].live;
    return live;
}

/* Simulates a pass. With a schedule it commits what the schedule says, else one slot of each
 * canvas. Returns 1 if a new description is needed. */
static int simulate(struct diffuse_run *run, const struct acts *acts)
{
    const struct canvas_loop here = diffuse_loop_here(run);
    size_t most = 0;
    int stale = 0;
    for (size_t i = 0; i < run->lanes; i += run->drafts) {
        struct canvas_state *canvas = &run->host.state[i];
        if (!canvas->live || canvas_behind(&here, canvas) || !(run->span[i].rows > 0))
            continue;
        int32_t takes = unmask_paced(here.rule) ? canvas_budget(&here, canvas) : 1;
        for (int32_t k = canvas->prompt; takes > 0 && k < canvas_ask_end(&here, canvas); k++)
            if (canvas_open(&here, canvas, k)) {
                run->host.token[canvas->first + k] = acts->id;
                takes--;
            }
        canvas_settle(&here, canvas, (int32_t)diffuse_count_open(run, canvas));
        size_t wanted = canvas->live ? diffuse_count_asked(run, canvas) : 0;
        size_t needed = canvas->live ? diffuse_needs(run, canvas, wanted) : 0;
        most = needed > most ? needed : most;
        stale |= !canvas->live || canvas_behind(&here, canvas);
    }
    return stale || !any_live(run) || diffuse_capacity(run, most) < here.capacity;
}

/* Simulates the passes of a description, and those in flight when a new description is needed. */
static void simulate_all(struct diffuse_run *run, const struct acts *acts)
{
    int stale = 0, more = run->n->backend->ops->depth;
    for (size_t n = diffuse_passes_left(run); n > 0 && more > 0; n--) {
        stale |= simulate(run, acts);
        more -= stale;
    }
}

/* ---- canvases that come later ---- */

/* Starts a canvas of `in` in each of the first n places, and empties the other places. */
static void begin_first(struct diffuse_run *run, size_t n, const struct generation_input *in)
{
    for (size_t i = 0; i < run->batch; i++) {
        diffuse_begin(run, i, (size_t)run->host.state[i].first, in);
        run->host.state[i].live = i < n;
    }
    diffuse_describe_pass(run);
}

static void put_step(struct diffuse_run *run, size_t i, int32_t step)
{
    run->host.state[i].step = run->host.state[i].passes = step;
}

/* Returns the first step of a block in which a pass has fewer rows than in step 0; 0: none. */
static int32_t find_later(struct diffuse_run *run, const struct generation_input *in)
{
    int32_t step = 0;
    begin_first(run, 1, in);
    diffuse_note_rows(run);
    const size_t T = run->plan.pass.T;
    while (run->kv && run->plan.pass.T >= T && (size_t)++step < run->block_steps) {
        put_step(run, 0, step);
        diffuse_describe_pass(run);
    }
    return run->kv && run->plan.pass.T < T ? step : 0;
}

/* Prepares passes of canvases that begin at different times, for all lengths of the inputs: first
 * passes of n canvases, then passes in which fewer and fewer of these are at their first step. */
static void prepare_mixed(struct diffuse_run *run, struct acts *acts)
{
    struct generation_input in = run->in[0];
    size_t shortest = in.n;
    for (size_t i = 0; i < run->inputs; i++) {
        shortest = run->in[i].n < shortest ? run->in[i].n : shortest;
        in = run->in[i].n > in.n ? run->in[i] : in;
    }
    const size_t longest = in.n;
    const int32_t later = find_later(run, &in);
    for (size_t n = run->batch; n > 0; n--) {
        in.n = longest;
        for (size_t less = 1; less;) {
            begin_first(run, n, &in);
            prepare_pass(run, acts, diffuse_capacity_now(run), 0);
            diffuse_note_rows(run);
            for (size_t k = n; later && k-- > 0;) {
                put_step(run, k, later);
                diffuse_describe_pass(run);
                prepare_pass(run, acts, diffuse_capacity_now(run), 0);
            }
            less = diffuse_length(run, &in) / 8 + 1;
            less = less < in.n - shortest ? less : in.n - shortest;
            in.n -= less;
        }
    }
}

/* Marks all slots of the cache as empty. */
static void forget(struct diffuse_run *run)
{
    for (size_t k = 0; k < run->ids; k++)
        run->cached[k] = -1;
}

/* Prepares every description that canvases reach when they commit by the schedule, or with other
 * rules one slot at a time: simulates all passes, each with all numbers of drafts. */
void diffuse_prepare(void *ctx)
{
    struct diffuse_run *run = ctx;
    size_t states = run->lanes * sizeof *run->host.state, ids = run->ids * sizeof *run->host.token;
    struct acts acts = {.at = mem_alloc(states)};
    struct canvas_state *state = memcpy(mem_alloc(states), run->host.state, states);
    int32_t *token = memcpy(mem_alloc(ids), run->host.token, ids);
    while (acts.id == run->plan.loop.mask ||
           is_stop(run->plan.loop.stop, run->plan.loop.n_stop, acts.id))
        acts.id++;
    forget(run);
    while (any_live(run)) {
        for (size_t each = run->drafts; each > 0; each--) {
            diffuse_draft_guess(run, each);
            diffuse_describe_pass(run);
            prepare_described(run, &acts);
        }
        diffuse_note_rows(run);
        simulate_all(run, &acts);
    }
    if (run->changing)
        prepare_mixed(run, &acts);
    memcpy(run->host.state, state, states);
    memcpy(run->host.token, token, ids);
    forget(run);
    diffuse_describe(run);
    free(acts.plan);
    free(acts.step);
    free(acts.at);
    free(state);
    free(token);
}
