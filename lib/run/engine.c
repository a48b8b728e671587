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

/* Records hold the level that runs; only this note tells why it is not amx. */
static void say_level(const struct engine *g, const struct log *log)
{
    const char *refused = amx_refused();
    if (refused && !strcmp(g->isa, "auto") && strncmp(g->device, "cuda", 4) &&
        strcmp(g->device, "ref"))
        log_more(log, "--isa auto does not try amx: %s", refused);
}

/* 1: the level runs the checkpoint of --pruned. */
static int takes_pruned(const struct engine *g)
{
    const struct saving *l = saving_named(g->level);
    return g->pruned && l && l->pruned;
}

static int check_pruned(const struct engine *g, const struct checkpoint *c, struct err *e)
{
    json_t *origin = c->folder ? provenance_read(c->folder, NULL) : NULL;
    int pruned = provenance_is_pruned(origin);
    json_decref(origin);
    return pruned ? 0
                  : err_set(e, EXIT_BAD_DATA, "--pruned %s: expected a checkpoint that pack-model "
                            "--prune-heads or --prune-ffn made: this one is not pruned",
                            g->pruned);
}

/* The mask of a family whose released files do not say it, by --mask-block. */
static int settle_blocks(const struct engine *g, struct config *c, const struct log *log,
                         struct err *e)
{
    if (g->mask_block >= 0 && (!c->family->named || !config_denoises(c)))
        return err_set(e, EXIT_BAD_USAGE, "--mask-block: expected a model whose files do not say "
                       "its mask; those of %s do", c->name);
    if (g->mask_block >= 0) {
        config_set_blocks(c, (size_t)g->mask_block);
        c->attends_filled = 0;
    } else if (c->attends_block && c->family->named)
        log_note(log, "%s: the mask has blocks, usually of %zu tokens. Only the name of the model "
                 "or config.json states this (--block-length, --mask-block)", c->name,
                 c->attends_block);
    return 0;
}

int engine_checkpoint(const struct engine *g, uint64_t synth_seed, struct checkpoint *c,
                      const struct log *log, struct err *e)
{
    int pruned = takes_pruned(g);
    if (checkpoint_open_ignoring(c, pruned ? g->pruned : g->model, synth_seed, g->ignore_config, e))
        return -1;
    if (pruned && check_pruned(g, c, e)) {
        checkpoint_close(c);
        return -1;
    }
    if (settle_blocks(g, &c->config, log, e)) {
        checkpoint_close(c);
        return -1;
    }
    if (g->pruned && !pruned)
        log_note(log, "--pruned %s is not used: it needs --level aggressive", g->pruned);
    checkpoint_say(c, log);
    say_level(g, log);
    return 0;
}

int engine_check_device(const struct engine *g, struct err *e)
{
    static const char *const names[] = {"auto", "ref", "cpu", "cuda"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(g->device, names[i]))
            return 0;
    if (!strncmp(g->device, "cuda:", 5) && g->device[5] &&
        strspn(g->device + 5, "0123456789") == strlen(g->device + 5))
        return 0;
    return err_set(e, EXIT_BAD_USAGE, "--device: expected auto, ref, cpu or cuda[:N], got '%s'",
                   g->device);
}

/* "avx512, avx2, portable" */
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

int engine_open(const struct engine *g, struct backend **b, struct err *e)
{
    const char *isa = strcmp(g->isa, "auto") ? g->isa : NULL;
    char have[128];
    struct err why = {0};
    if (engine_check_device(g, e))
        return -1;
    *b = backend_open(g->device, isa, (size_t)g->threads, (size_t)g->mem_cap, &why);
    if (*b) {
        (*b)->memory.direct = *(*b)->name && is_word(g->alloc, "direct");
        (*b)->unrecorded = *(*b)->name && is_word(g->graphs, "off");
        (*b)->tf32 = *(*b)->library && is_word(g->tf32, "on");
        return 0;
    }
    if (*why.text)
        return err_set(e, why.code, "--device %s: %s", g->device, why.text);
    list_isas(have, sizeof have);
    const char *refused = !strcmp(isa, "amx") ? amx_refused() : NULL;
    return err_set(e, EXIT_NO_DEVICE,
                   "--isa %.40s: the CPU back end has %s here (--device auto or cpu), got --device "
                   "%s%s%s", isa, have, g->device, refused ? ": " : "", refused ? refused : "");
}

/* The name of a format whose torch name --cache-precision takes. */
static const char *find_own_name(const char *name)
{
    static const char *const names[][2] = {{"bfloat16", "bf16"}, {"float32", "f32"}};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return name;
}

/* ---- layers outside ---- */

/* Reads "[first:|last:]N": the number of layers that stay, and which are outside. -1: other
 * text. */
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

int engine_check_memory(const struct engine *g, struct err *e)
{
    if (is_word(g->kv_dtype, "float16"))
        return err_set(e, EXIT_BAD_USAGE, "--cache-precision float16: keys and values are kept as "
                       "bfloat16 or float32: fp16 has no room above 65504, and takes as many bytes "
                       "as bfloat16");
    return check_map("--device-map", g->device_map, e) || check_map("--kv-map", g->kv_map, e) ? -1
                                                                                             : 0;
}

/* chosen: layers outside if the map has no number. */
static struct offload_wish wish_of(const struct engine *g, const char *map, size_t chosen,
                                   const struct config *c)
{
    struct offload_wish w = {.layers = chosen, .folder = g->offload_dir};
    size_t stay = 0;
    if (map && !read_map(map, &stay, &w.order))
        w.layers = stay < c->layers ? c->layers - stay : 0;
    return w;
}

/* 1: keys and values are offloaded separately from the matrices of their layer. If both maps are
 * auto, only when keys and values alone are enough. */
static int kv_apart(const struct engine *g)
{
    int both = engine_maps_itself(g->device_map) && engine_maps_itself(g->kv_map);
    return g->offload_kv || (g->kv_map && !both);
}

struct precision engine_precision(const struct engine *g, const struct config *c)
{
    const struct saving *l = saving_named(g->level);
    struct precision p = {.dtype = g->dtype, .kv = find_own_name(g->kv_dtype), .quant = g->quant,
                          .offload = wish_of(g, g->device_map, g->offload, c),
                          .offload_kv = wish_of(g, g->kv_map, g->offload_kv, c),
                          .kv_apart = kv_apart(g)};
    if (l && !p.kv)
        p.kv = l->kv;
    if (l && !p.quant && c->quant == QUANT_NONE)
        p.quant = l->quant;
    return p;
}

/* Rows of a tile by --row-tile or --level; 0: all rows at once. */
static size_t row_tile_of(const struct engine *g)
{
    enum { EIGHT = 8 }; /* rows aligned for the widest accesses of a device */
    const struct saving *l = saving_named(g->level);
    size_t rows = g->row_tile >= 0 ? (size_t)g->row_tile : l ? l->row_tile : 0;
    return (rows + EIGHT - 1) / EIGHT * EIGHT;
}

/* Appends " --OPTION VALUE" if the level sets the option, and whether another value overrides
 * it. */
static void put_switch(struct buf *b, const char *option, const char *value, const char *said,
                       const char *in_force)
{
    if (!value)
        return;
    if (said)
        buf_format(b, " --%s %s (said)", option, said);
    else if (in_force)
        buf_format(b, " --%s %s", option, in_force);
    else
        buf_format(b, " no --%s (the checkpoint is packed)", option);
}

void engine_say_saving(const struct engine *g, const struct config *c, const struct log *log)
{
    const struct saving *l = saving_named(g->level);
    struct buf b = {0};
    if (!l)
        return;
    const struct precision p = engine_precision(g, c);
    put_switch(&b, "kv-dtype", l->kv, g->kv_dtype, p.kv);
    put_switch(&b, "quant", l->quant, g->quant, p.quant);
    if (l->row_tile)
        buf_format(&b, " --row-tile %zu%s", row_tile_of(g), g->row_tile >= 0 ? " (said)" : "");
    if (takes_pruned(g))
        buf_format(&b, " --pruned %s", g->pruned);
    log_note(log, "level %s:%s; always on, as it changes no bit: attention and head in tiles",
             l->name, b.len ? b.data : " nothing is switched on");
    buf_free(&b);
}

int engine_settle(const struct engine *g, struct network *n, struct backend *b,
                  const struct checkpoint *c, struct err *e)
{
    const struct precision p = engine_precision(g, &c->config);
    int bad = network_settle(n, b, c, &p, e);
    n->row_tile = row_tile_of(g);
    return bad;
}

int engine_load(const struct engine *g, struct network *n, struct backend *b,
                const struct checkpoint *c, struct err *e)
{
    const struct precision p = engine_precision(g, &c->config);
    int bad = network_load(n, b, c, &p, e);
    n->row_tile = row_tile_of(g);
    return bad;
}

void engine_level(const struct engine *g, struct backend *b, const struct checkpoint *c,
                  const struct log *log)
{
    struct network n;
    if (strcmp(g->isa, "auto") || engine_settle(g, &n, b, c, NULL))
        return; /* loading reports the error */
    level_choice_use(b, quantization_dtype(n.quant, &n.config, ROLE_Q, 0, n.dtype), log);
}

int engine_is_tf32(const struct network *n)
{
    return n->backend->tf32 && n->dtype == DTYPE_F32;
}

void engine_describe(json_t *r, const struct network *n)
{
    const struct backend *b = n->backend;
    json_object_set_new(r, "device", json_string(b->ops->name));
    json_object_set_new(r, "device_name", *b->name ? json_string(b->name) : json_null());
    json_object_set_new(r, "isa", json_string(b->level));
    json_object_set_new(r, "library", *b->library ? json_string(b->library) : json_null());
    json_object_set_new(r, "dtype", json_string(dtype_info[n->dtype].name));
    json_object_set_new(r, "kv_dtype", json_string(dtype_info[n->kv_dtype].name));
    json_object_set_new(r, "quant", json_string(quantization_name(n->quant)));
    rec_set_int(r, "threads", (int64_t)pool_threads(n->backend->pool));
    if (n->wish.layers)
        rec_set_int(r, "offload_layers", (int64_t)n->wish.layers);
    if (n->kv_wish.layers != n->wish.layers)
        rec_set_int(r, "offload_kv_layers", (int64_t)n->kv_wish.layers);
    if (b->unrecorded)
        json_object_set_new(r, "graphs", json_string("off"));
    if (b->memory.direct)
        json_object_set_new(r, "alloc", json_string("direct"));
    if (engine_is_tf32(n))
        json_object_set_new(r, "tf32", json_string("on"));
    if (n->row_tile)
        rec_set_int(r, "row_tile", (int64_t)n->row_tile);
    if (n->handicap)
        rec_set_int(r, "handicap", (int64_t)n->handicap->every);
}

void engine_put_choices(json_t *r, const struct backend *b)
{
    char digest[13];
    if (!b->library_choices)
        return;
    snprintf(digest, sizeof digest, "%012" PRIx64, b->library_choices & 0xffffffffffffu);
    json_object_set_new(r, "library_choices", json_string(digest));
}
