/* generation.c - see generation.h. A generation receives events while its batch runs, and is closed
 * once at the end. The capacity of an event list follows from its length: the list doubles at
 * powers of two, so the struct needs no capacities. */
#include "lib/decode/generation.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

enum { FIRST_ROOM = 16 };

/* Returns the array, resized if needed so that element n fits. */
static void *room_for(void *p, size_t n, size_t size)
{
    if (n == 0)
        return mem_resize(p, FIRST_ROOM, size);
    return n >= FIRST_ROOM && !(n & (n - 1)) ? mem_resize(p, 2 * n, size) : p;
}

void generation_emit(struct generation *g, int64_t ns, int32_t tokens)
{
    g->emit_ns = room_for(g->emit_ns, g->n_emits, sizeof *g->emit_ns);
    g->emit_tokens = room_for(g->emit_tokens, g->n_emits, sizeof *g->emit_tokens);
    g->emit_ns[g->n_emits] = ns;
    g->emit_tokens[g->n_emits++] = tokens;
}

void generation_step(struct generation *g, int64_t ns)
{
    g->step_ns = room_for(g->step_ns, g->n_steps, sizeof *g->step_ns);
    g->step_ns[g->n_steps++] = ns;
}

void generation_commit(struct generation *g, int32_t tokens)
{
    g->commit_tokens = room_for(g->commit_tokens, g->n_commits, sizeof *g->commit_tokens);
    g->commit_tokens[g->n_commits++] = tokens;
}

int generation_refuses(const struct config *c, struct err *e)
{
    const int forward = !config_denoises(c);
    if (c->taps)
        return err_set(e, EXIT_BAD_DATA, "%s: it only drafts for another model: expected gen-llama "
                       "-m MODEL --draft %s", c->name, c->name);
    const enum mask wants = forward                                  ? MASK_CAUSAL
                            : c->paradigm == PARADIGM_BLOCK_DIFFUSION ? MASK_BLOCK_CAUSAL
                                                                      : MASK_FULL;
    if (c->attends != wants || (wants == MASK_BLOCK_CAUSAL && c->attends_block == 0))
        return err_set(e, EXIT_BAD_DATA, "%s: this attention mask is not supported for a %s "
                       "model", c->name, config_paradigm_name(c->paradigm));
    if (forward && !c->logit_shift)
        return err_set(e, EXIT_BAD_DATA, "%s: a %s model whose answers are not shifted by one "
                       "position: not supported", c->name, config_paradigm_name(c->paradigm));
    return 0;
}

_Static_assert(ADVANCE_STOPS == CONFIG_MAX_EOS + 1, "all eos ids and end-of-turn");

int32_t generation_stops(const struct config *c, int32_t stop[ADVANCE_STOPS])
{
    int32_t n = 0;
    for (size_t i = 0; i < c->n_eos; i++)
        stop[n++] = (int32_t)c->eos[i];
    if (config_denoises(c) && c->eot >= 0)
        stop[n++] = (int32_t)c->eot;
    return n;
}

void generation_close(struct generation *g, const struct config *c, int met)
{
    int32_t stop[ADVANCE_STOPS], n = generation_stops(c, stop);
    g->to_eos = 0;
    while (g->to_eos < g->n && !is_stop(stop, n, g->ids[g->to_eos]))
        g->to_eos++;
    for (size_t i = 0; i < g->n; i++)
        g->stop_tokens += (size_t)is_stop(stop, n, g->ids[i]);
    g->stop = met || g->to_eos < g->n ? "eos" : "length";
}

void generation_take(struct generation *g, const int32_t *ids, size_t n)
{
    g->n = n;
    g->ids = mem_alloc(n * sizeof *ids);
    if (n)
        memcpy(g->ids, ids, n * sizeof *ids);
}

void generation_batch_begin(struct batch_trace *trace)
{
    trace->start_cpu_ns = clock_cpu_ns();
    trace->start_ns = clock_ns();
}

void generation_batch_end(const struct backend *b, int short_of_memory, struct generation *out,
                          size_t batch, struct batch_trace *trace)
{
    for (size_t i = 0; i < batch; i++) {
        out[i].oom = short_of_memory;
        if (out[i].admit_ns + out[i].e2e_ns > trace->makespan_ns)
            trace->makespan_ns = out[i].admit_ns + out[i].e2e_ns;
    }
    trace->cpu_ns = clock_cpu_ns() - trace->start_cpu_ns;
    trace->memory = b->memory;
}

void generation_free(struct generation *g)
{
    free(g->ids);
    free(g->emit_ns);
    free(g->emit_tokens);
    free(g->step_ns);
    free(g->commit_tokens);
    free(g->latents);
    *g = (struct generation){0};
}
