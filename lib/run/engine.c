/* engine.c - see engine.h. Options and what runs (a network on a back end) are kept apart. Records
 * hold what runs, so `auto` gives the same record as the name of its choice. */
#include "lib/run/engine.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/amx.h"
#include "lib/base/buf.h"
#include "lib/record/rec.h"
#include "lib/checkpoint/provenance.h"
#include "lib/checkpoint/quantization.h"
#include "lib/run/probe/level_choice.h"
#include "lib/run/saving.h"

/* Logs why --isa auto does not try amx. Records hold only the level that runs. */
static void say_level(const struct engine *engine, const struct log *log)
{
    const char *refused = amx_refused();
    if (refused && !strcmp(engine->isa, "auto") && strncmp(engine->device, "cuda", 4) &&
        strcmp(engine->device, "ref"))
        log_more(log, "--isa auto does not try amx: %s", refused);
}

/* 1: the level runs the checkpoint of --pruned. */
static int takes_pruned(const struct engine *engine)
{
    const struct saving *saving = saving_named(engine->level);
    return engine->pruned && saving && saving->pruned;
}

static int check_pruned(const struct engine *engine, const struct checkpoint *model, struct err *e)
{
    json_t *origin = model->folder ? provenance_read(model->folder, NULL) : NULL;
    int pruned = provenance_is_pruned(origin);
    json_decref(origin);
    return pruned ? 0
                  : err_set(e, EXIT_BAD_DATA, "--pruned %s: expected a checkpoint that pack-model "
                            "--prune-heads or --prune-ffn made: this one is not pruned",
                            engine->pruned);
}

/* Sets the mask of a family whose released files do not state it, by --mask-block. */
static int settle_blocks(const struct engine *engine, struct config *config, const struct log *log,
                         struct err *e)
{
    if (engine->mask_block >= 0 && (!config->family->named || !config_denoises(config)))
        return err_set(e, EXIT_BAD_USAGE, "--mask-block: expected a model whose files do not say "
                       "its mask; those of %s do", config->name);
    if (engine->mask_block >= 0) {
        config_set_blocks(config, (size_t)engine->mask_block);
        config->attends_filled = 0;
    } else if (config->attends_block && config->family->named)
        log_note(log, "%s: the mask has blocks, usually of %zu tokens. Only the name of the model "
                 "or config.json states this (--block-length, --mask-block)", config->name,
                 config->attends_block);
    return 0;
}

int engine_checkpoint(const struct engine *engine, uint64_t synth_seed, struct checkpoint *model,
                      const struct log *log, struct err *e)
{
    int pruned = takes_pruned(engine);
    const struct checkpoint_opening how = {synth_seed, engine->ignore_config, 1};
    say_level(engine, log); /* asks for AMX, which must come before the first thread */
    if (checkpoint_open_with(model, pruned ? engine->pruned : engine->model, &how, e))
        return -1;
    if (pruned && check_pruned(engine, model, e)) {
        checkpoint_close(model);
        return -1;
    }
    if (settle_blocks(engine, &model->config, log, e)) {
        checkpoint_close(model);
        return -1;
    }
    if (engine->pruned && !pruned)
        log_note(log, "--pruned %s is not used: it needs --level aggressive", engine->pruned);
    checkpoint_say(model, log);
    return 0;
}

int engine_check_device(const struct engine *engine, struct err *e)
{
    static const char *const names[] = {"auto", "ref", "cpu", "cuda"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(engine->device, names[i]))
            return 0;
    if (!strncmp(engine->device, "cuda:", 5) && engine->device[5] &&
        strspn(engine->device + 5, "0123456789") == strlen(engine->device + 5))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "--device: expected auto, ref, cpu or cuda[:N], got '%s'",
                   engine->device);
}

/* Writes the levels of this machine: "avx512, avx2, portable". */
static void list_isas(char *text, size_t room)
{
    size_t n = 0;
    const struct ops *ops;
    *text = 0;
    for (size_t i = 0; (ops = ops_cpu_at(i)) && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, "%s%s", i ? ", " : "", ops->level);
}

static int is_word(const char *option, const char *word)
{
    return option && !strcmp(option, word);
}

int engine_open(const struct engine *engine, struct backend **backend, struct err *e)
{
    const char *isa = strcmp(engine->isa, "auto") ? engine->isa : NULL;
    char have[128];
    struct err why = {0};
    if (engine_check_device(engine, e))
        return -1;
    /* the back end is a separate library and gets the file by this variable */
    if (engine->gemm_choices)
        setenv("CROSSOVER_GEMM_CHOICES", engine->gemm_choices, 1);
    else
        unsetenv("CROSSOVER_GEMM_CHOICES");
    *backend = backend_open(engine->device, isa, (size_t)engine->threads, (size_t)engine->mem_cap,
                            &why);
    if (*backend) {
        (*backend)->memory.direct = *(*backend)->name && is_word(engine->alloc, "direct");
        (*backend)->unrecorded = *(*backend)->name && is_word(engine->graphs, "off");
        (*backend)->tf32 = *(*backend)->library && is_word(engine->tf32, "on");
        return 0;
    }
    if (*why.text)
        return err_set(e, why.code, "--device %s: %s", engine->device, why.text);
    list_isas(have, sizeof have);
    const char *refused = !strcmp(isa, "amx") ? amx_refused() : NULL;
    return err_set(e, EXIT_NO_DEVICE,
                   "--isa %.40s: the CPU back end has %s here (--device auto or cpu), got --device "
                   "%s%s%s", isa, have, engine->device, refused ? ": " : "",
                   refused ? refused : "");
}

/* Returns our name of a format for a torch name of --cache-precision; other names stay. */
static const char *find_own_name(const char *name)
{
    static const char *const names[][2] = {{"bfloat16", "bf16"}, {"float32", "f32"}};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return name;
}

/* ---- offloaded layers ---- */

/* Reads "[first:|last:]N": *stay = number of layers that stay in memory, *outside = which layers
 * are offloaded. Returns -1 for another text. */
static int read_map(const char *text, size_t *stay, enum offload_order *outside)
{
    char *end;
    *outside = OFFLOAD_EVEN;
    if (!strncmp(text, "first:", 6) || !strncmp(text, "last:", 5)) {
        *outside = *text == 'f' ? OFFLOAD_LAST : OFFLOAD_FIRST;
        text = strchr(text, ':') + 1;
    }
    if (!isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    *stay = strtoul(text, &end, 10);
    return *end || errno ? -1 : 0;
}

int engine_maps_itself(const char *map)
{
    return map && !strcmp(map, "auto");
}

static int check_map(const char *option, const char *map, struct err *e)
{
    size_t stay;
    enum offload_order outside;
    if (!map || !strcmp(map, "all") || engine_maps_itself(map) || !read_map(map, &stay, &outside))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "%s: expected all, auto, N, first:N or last:N, got '%s'",
                   option, map);
}

int engine_check_memory(const struct engine *engine, struct err *e)
{
    if (is_word(engine->kv_dtype, "float16"))
        return err_set(e, EXIT_BAD_USAGE, "--cache-precision float16: keys and values are kept as "
                       "bfloat16 or float32: fp16 has no room above 65504, and takes as many bytes "
                       "as bfloat16");
    return check_map("--device-map", engine->device_map, e) ||
                   check_map("--kv-map", engine->kv_map, e)
               ? -1
               : 0;
}

/* Returns which layers to offload by a map. chosen: their number if the map has none. */
static struct offload_wish wish_of(const struct engine *engine, const char *map, size_t chosen,
                                   const struct config *config)
{
    struct offload_wish wish = {.layers = chosen, .folder = engine->offload_dir};
    size_t stay = 0;
    if (map && !read_map(map, &stay, &wish.order))
        wish.layers = stay < config->layers ? config->layers - stay : 0;
    return wish;
}

/* 1: keys and values are offloaded separately from the matrices of their layer. If both maps are
 * auto, only when keys and values alone are enough. */
static int kv_apart(const struct engine *engine)
{
    int both = engine_maps_itself(engine->device_map) && engine_maps_itself(engine->kv_map);
    return engine->offload_kv || (engine->kv_map && !both);
}

struct precision engine_precision(const struct engine *engine, const struct config *config)
{
    const struct saving *saving = saving_named(engine->level);
    struct precision precision = {
        .dtype = engine->dtype,
        .kv = find_own_name(engine->kv_dtype),
        .quant = engine->quant,
        .offload = wish_of(engine, engine->device_map, engine->offload, config),
        .offload_kv = wish_of(engine, engine->kv_map, engine->offload_kv, config),
        .kv_apart = kv_apart(engine)};
    if (saving && !precision.kv)
        precision.kv = saving->kv;
    if (saving && !precision.quant && config->quant == QUANT_NONE)
        precision.quant = saving->quant;
    return precision;
}

/* Returns the rows of a tile by --row-tile or --level; 0: all rows at once. */
static size_t row_tile_of(const struct engine *engine)
{
    enum { EIGHT = 8 }; /* rows aligned for the widest accesses of a device */
    const struct saving *saving = saving_named(engine->level);
    size_t rows = engine->row_tile >= 0 ? (size_t)engine->row_tile : saving ? saving->row_tile : 0;
    return (rows + EIGHT - 1) / EIGHT * EIGHT;
}

/* If the level sets the option, appends " --OPTION" and the value in force. `said` is the value of
 * the command line, which overrides the level; NULL: not given. */
static void put_switch(struct buf *text, const char *option, const char *value, const char *said,
                       const char *in_force)
{
    if (!value)
        return;
    if (said)
        buf_format(text, " --%s %s (given)", option, said);
    else if (in_force)
        buf_format(text, " --%s %s", option, in_force);
    else
        buf_format(text, " no --%s (the checkpoint is packed)", option);
}

void engine_say_saving(const struct engine *engine, const struct config *config,
                       const struct log *log)
{
    const struct saving *saving = saving_named(engine->level);
    struct buf text = {0};
    if (!saving)
        return;
    const struct precision precision = engine_precision(engine, config);
    put_switch(&text, "kv-dtype", saving->kv, engine->kv_dtype, precision.kv);
    put_switch(&text, "quant", saving->quant, engine->quant, precision.quant);
    if (saving->row_tile)
        buf_format(&text, " --row-tile %zu%s", row_tile_of(engine),
                   engine->row_tile >= 0 ? " (given)" : "");
    if (takes_pruned(engine))
        buf_format(&text, " --pruned %s", engine->pruned);
    log_note(log, "level %s:%s; always on, as it changes no bit: attention and head in tiles",
             saving->name, text.len ? text.data : " nothing is switched on");
    buf_free(&text);
}

int engine_settle(const struct engine *engine, struct network *n, struct backend *backend,
                  const struct checkpoint *model, struct err *e)
{
    const struct precision precision = engine_precision(engine, &model->config);
    int bad = network_settle(n, backend, model, &precision, e);
    n->row_tile = row_tile_of(engine);
    return bad;
}

int engine_load(const struct engine *engine, struct network *n, struct backend *backend,
                const struct checkpoint *model, struct err *e)
{
    const struct precision precision = engine_precision(engine, &model->config);
    int bad = network_load(n, backend, model, &precision, e);
    n->row_tile = row_tile_of(engine);
    return bad;
}

void engine_level(const struct engine *engine, struct backend *backend,
                  const struct checkpoint *model, const struct log *log)
{
    struct network n;
    if (strcmp(engine->isa, "auto") || engine_settle(engine, &n, backend, model, NULL))
        return; /* loading reports the error */
    level_choice_use(backend, quantization_dtype(n.quant, &n.config, ROLE_Q, 0, n.dtype), log);
}

int engine_is_tf32(const struct network *n)
{
    return n->backend->tf32 && n->dtype == DTYPE_F32;
}

void engine_describe(json_t *record, const struct network *n)
{
    const struct backend *backend = n->backend;
    json_object_set_new(record, "device", json_string(backend->ops->name));
    json_object_set_new(record, "device_name",
                        *backend->name ? json_string(backend->name) : json_null());
    json_object_set_new(record, "isa", json_string(backend->level));
    json_object_set_new(record, "library",
                        *backend->library ? json_string(backend->library) : json_null());
    json_object_set_new(record, "dtype", json_string(dtype_info[n->dtype].name));
    json_object_set_new(record, "kv_dtype", json_string(dtype_info[n->kv_dtype].name));
    json_object_set_new(record, "quant", json_string(quantization_name(n->quant)));
    rec_set_int(record, "threads", (int64_t)pool_threads(n->backend->pool));
    if (n->wish.layers)
        rec_set_int(record, "offload_layers", (int64_t)n->wish.layers);
    if (n->kv_wish.layers != n->wish.layers)
        rec_set_int(record, "offload_kv_layers", (int64_t)n->kv_wish.layers);
    if (backend->unrecorded)
        json_object_set_new(record, "graphs", json_string("off"));
    if (backend->memory.direct)
        json_object_set_new(record, "alloc", json_string("direct"));
    if (engine_is_tf32(n))
        json_object_set_new(record, "tf32", json_string("on"));
    if (n->row_tile)
        rec_set_int(record, "row_tile", (int64_t)n->row_tile);
    if (n->handicap)
        rec_set_int(record, "handicap", (int64_t)n->handicap->every);
}

void engine_put_choices(json_t *record, const struct backend *backend)
{
    char digest[13];
    if (!backend->library_choices)
        return;
    snprintf(digest, sizeof digest, "%012" PRIx64, backend->library_choices & 0xffffffffffffu);
    json_object_set_new(record, "library_choices", json_string(digest));
}
