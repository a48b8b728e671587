/* whole.c - measures what is not about single passes: the peak memory of a canvas, and the speed of
 * loading weights. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/decode/diffuse.h"
#include "tests/bench/bench.h"

enum { LENGTH = 1024 };

/* One pass over prompt and canvas shows the peak, because every slot wants an answer and later
 * steps allocate nothing. The back end is new, and this pass is its first work. */
static int bench_memory(struct models *m, struct err *e)
{
    struct bench *b = m->bench;
    size_t length = shrunk(m->pair, LENGTH);
    int32_t *ids = mem_zero(length, sizeof *ids);
    const struct generation_input in = {ids, length, 0, 0};
    const struct diffuse how = {.gen_length = length, .block_length = length, .steps = 1,
                                .rule = UNMASK_SCHEDULE};
    struct generation out = {0};
    struct batch_trace trace = {0};
    char work[64];
    snprintf(work, sizeof work, "memory of %zu after %zu", length, length);
    memory_reset_peak(&b->backend->memory);
    diffuse(&m->net, &how, &in, 1, &out, &trace);
    int short_of_memory = out.oom;
    generation_free(&out);
    free(ids);
    if (short_of_memory) {
        struct err why = {0};
        err_set(&why, EXIT_FAILED_RECORDS, "%s %s: no memory", m->pair->llada, work);
        return bench_forgive(b, &why, work, e);
    }
    json_t *fields = model_fields(m, work);
    rec_set_int(fields, "requested_peak_bytes", (int64_t)trace.memory.requested_peak);
    rec_set_int(fields, "allocated_peak_bytes", (int64_t)trace.memory.allocated_peak);
    rec_set_int(fields, "reserved_peak_bytes", (int64_t)trace.memory.reserved_peak);
    if (m->net.huge_page_bytes >= 0)
        rec_set_int(fields, "huge_page_bytes", m->net.huge_page_bytes);
    return bench_figure(b, fields, e);
}

int bench_whole(struct models *m, struct err *e)
{
    int chosen = m->paradigm != PARADIGM_AUTOREGRESSIVE && bench_chosen(m->bench->jobs, "memory");
    return chosen ? bench_memory(m, e) : 0;
}

/* The result of loading --model. */
struct load {
    char model[64]; /* name of the model */
    size_t bytes;   /* bytes of its weights in the back end */
    double seconds; /* time until the weights were loaded */
};

/* Opens, loads and closes --model. Returns 1 if the kind does not fit, -1 with the reason in *e. */
static int load_once(struct bench *b, const struct kind *k, struct load *l, struct err *e)
{
    struct checkpoint c = {0};
    struct network n;
    if (bench_stopped(b, e) || bench_backend(b, e))
        return -1;
    bench_level(b, k->dtype);
    int64_t begin = bench_now_ns(b);
    if (checkpoint_open_with(&c, b->model, &(struct checkpoint_opening){.reads_all = 1}, e))
        return -1;
    if (bench_refuses(b->backend, &c.config, k)) {
        checkpoint_close(&c);
        return 1;
    }
    int bad = network_load(&n, b->backend, &c, &k->precision, e);
    int64_t end = b->backend->ops->event_wait(b->backend,
                                              b->backend->ops->event_record(b->backend));
    end = bench_by_processor(b) ? bench_now_ns(b) : end;
    checkpoint_close(&c);
    if (bad)
        return -1;
    l->bytes = network_weight_bytes(&n);
    l->seconds = (double)(end - begin) / 1e9;
    snprintf(l->model, sizeof l->model, "%s", n.config.name);
    network_free(&n);
    return 0;
}

int bench_load(struct bench *b, const struct kind *k, struct err *e)
{
    static const char reason[] = "random weights are not read: name a checkpoint (--model)";
    struct load l = {.model = "synth:"};
    struct err why = {0};
    int bad = b->model ? load_once(b, k, &l, &why) : 0;
    if (b->model && !bad) /* the first load fills the page cache and does not count */
        bad = load_once(b, k, &l, &why);
    if (bad)
        return bad > 0 ? 0 : bench_forgive(b, &why, "load", e);
    char *name = mem_format("%s %s, load", l.model, k->name);
    json_t *fields = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "model", l.model, "dtype",
                               k->name, "work", "load");
    free(name);
    if (b->model) {
        rec_set_int(fields, "weights_bytes", (int64_t)l.bytes);
        rec_set_number(fields, "load_ns", l.seconds * 1e9, NULL);
    }
    rec_set_number(fields, "load_bytes_per_s",
                   b->model ? (double)l.bytes / l.seconds : (double)NAN, reason);
    return bench_figure(b, fields, e);
}
