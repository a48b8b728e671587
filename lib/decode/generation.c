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

void generation_join(struct generation *generation, const struct generation_input *in,
                     int arrivals, int64_t now)
{
    generation->admit_ns = arrivals ? in->due_ns : now;
    generation->queue_ns = now - generation->admit_ns;
}

void generation_emit(struct generation *generation, int64_t ns, int32_t tokens)
{
    generation->emit_ns = room_for(generation->emit_ns, generation->n_emits,
                                   sizeof *generation->emit_ns);
    generation->emit_tokens = room_for(generation->emit_tokens, generation->n_emits,
                                       sizeof *generation->emit_tokens);
    generation->emit_ns[generation->n_emits] = ns;
    generation->emit_tokens[generation->n_emits++] = tokens;
}

void generation_step(struct generation *generation, int64_t ns)
{
    generation->step_ns = room_for(generation->step_ns, generation->n_steps,
                                   sizeof *generation->step_ns);
    generation->step_ns[generation->n_steps++] = ns;
}

void generation_commit(struct generation *generation, int32_t tokens)
{
    generation->commit_tokens = room_for(generation->commit_tokens, generation->n_commits,
                                         sizeof *generation->commit_tokens);
    generation->commit_tokens[generation->n_commits++] = tokens;
}

int generation_refuses(const struct config *config, struct err *e)
{
    const int forward = !config_denoises(config);
    if (config->taps)
        return err_set(e, EXIT_BAD_DATA, "%s: it only drafts for another model: expected gen-llama "
                       "-m MODEL --draft %s", config->name, config->name);
    const enum mask wants = forward                                        ? MASK_CAUSAL
                            : config->paradigm == PARADIGM_BLOCK_DIFFUSION ? MASK_BLOCK_CAUSAL
                                                                           : MASK_FULL;
    if (config->attends != wants || (wants == MASK_BLOCK_CAUSAL && config->attends_block == 0))
        return err_set(e, EXIT_BAD_DATA, "%s: this attention mask is not supported for a %s "
                       "model", config->name, config_paradigm_name(config->paradigm));
    if (forward && !config->logit_shift)
        return err_set(e, EXIT_BAD_DATA, "%s: a %s model whose answers are not shifted by one "
                       "position: not supported", config->name,
                       config_paradigm_name(config->paradigm));
    return 0;
}

_Static_assert(ADVANCE_STOPS == CONFIG_MAX_EOS + 1, "all eos ids and end-of-turn");

int32_t generation_stops(const struct config *config, int32_t stop[ADVANCE_STOPS])
{
    int32_t n = 0;
    for (size_t i = 0; i < config->n_eos; i++)
        stop[n++] = (int32_t)config->eos[i];
    if (config_denoises(config) && config->eot >= 0)
        stop[n++] = (int32_t)config->eot;
    return n;
}

void generation_close(struct generation *generation, const struct config *config, int met)
{
    int32_t stop[ADVANCE_STOPS], n = generation_stops(config, stop);
    generation->to_eos = 0;
    while (generation->to_eos < generation->n &&
           !is_stop(stop, n, generation->ids[generation->to_eos]))
        generation->to_eos++;
    for (size_t i = 0; i < generation->n; i++)
        generation->stop_tokens += (size_t)is_stop(stop, n, generation->ids[i]);
    generation->stop = met || generation->to_eos < generation->n ? "eos" : "length";
}

void generation_take(struct generation *generation, const int32_t *ids, size_t n)
{
    generation->n = n;
    generation->ids = mem_alloc(n * sizeof *ids);
    if (n)
        memcpy(generation->ids, ids, n * sizeof *ids);
}

void generation_batch_begin(struct batch_trace *trace)
{
    trace->start_cpu_ns = clock_cpu_ns();
    trace->start_ns = clock_ns();
}

void generation_batch_end(const struct backend *backend, int short_of_memory,
                          struct generation *out, size_t batch, struct batch_trace *trace)
{
    for (size_t i = 0; i < batch; i++) {
        out[i].oom = short_of_memory;
        if (out[i].admit_ns + out[i].e2e_ns > trace->makespan_ns)
            trace->makespan_ns = out[i].admit_ns + out[i].e2e_ns;
    }
    trace->cpu_ns = clock_cpu_ns() - trace->start_cpu_ns;
    trace->memory = backend->memory;
}

void generation_free(struct generation *generation)
{
    free(generation->ids);
    free(generation->emit_ns);
    free(generation->emit_tokens);
    free(generation->step_ns);
    free(generation->commit_tokens);
    free(generation->latents);
    *generation = (struct generation){0};
}
