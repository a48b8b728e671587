/* engine.h - the options that select the model, the device and the formats, for every tool that
 * runs a model.
 *
 *     struct args { struct common common; struct engine engine; ... };
 *     struct args a = {.engine = ENGINE_DEFAULTS};
 *     const struct opt options[] = {ENGINE_OPTIONS(a.engine), OPT_COMMON(a.common), {0}}; */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/cli/log.h"
#include "lib/base/cli/opt.h"
#include "lib/network/network.h"

struct engine {
    const char *model, *ignore_config, *device, *isa, *dtype;
    const char *graphs, *alloc, *tf32;    /* NULL: default */
    const char *gemm_choices;             /* NULL: not given */
    const char *kv_dtype, *quant, *level, *pruned; /* NULL: not given */
    const char *device_map, *kv_map, *offload_dir; /* NULL: not given */
    size_t offload, offload_kv; /* layers that a map `auto` or a plan offloads; layers whose keys
                                 * and values alone it offloads */
    int64_t threads, mem_cap, row_tile;   /* row_tile -1: not given */
    int64_t mask_block;                   /* -1: not given */
    int check_finite;
};
#define ENGINE_DEFAULTS                                                                            \
    {.device = "auto", .isa = "auto", .dtype = "auto", .graphs = "on", .alloc = "pool",            \
     .tf32 = "off", .row_tile = -1, .mask_block = -1}
#define ISA_OPTION(to)                                                                             \
    {"isa", 0, OPT_TEXT, &(to),                                                                    \
     .arg = "auto|amx|avx512bf16|avx512|avxvnni|avx2|i8mm|dotprod|neon|portable", .rare = 1,       \
     .help = "instruction set of the CPU back end (auto: the fastest one, by a short trial)"}
#define THREADS_OPTION(to)                                                                         \
    {"threads", 0, OPT_INT, &(to), 0, 1024, .arg = "N",                                            \
     .help = "CPU threads (0: one per available physical core)"}
#define IGNORE_CONFIG_OPTION(to)                                                                   \
    {"ignore-config", 0, OPT_TEXT, &(to), .arg = "KEY[,KEY...]", .rare = 1,                        \
     .help = "accept these unknown keys of config.json, which do not change the network"}
#define OFFLOAD_OPTIONS(g)                                                                         \
    {"device-map", 0, OPT_TEXT, &(g).device_map, .arg = "all|auto|[first:|last:]N", .rare = 1,     \
     .help = "layers kept in memory; each pass reads the others from a store; tokens do not "      \
             "change (all; auto: as many as fit)"},                                                \
    {"kv-map", 0, OPT_TEXT, &(g).kv_map, .arg = "all|auto|[first:|last:]N", .rare = 1,             \
     .help = "layers whose keys and values are kept in memory; tokens do not change (as "          \
             "--device-map; auto: as many as fit)"},                                               \
    {"offload-dir", 0, OPT_TEXT, &(g).offload_dir, .arg = "DIR", .rare = 1,                        \
     .writes = WRITES_SCRATCH,                                                                     \
     .help = "folder for the store of the CPU, a nameless file ($TMPDIR, else /var/tmp)"}
#define ENGINE_OPTIONS(g)                                                                          \
    {.type = OPT_HEADING, .name = "", .help = "Model and machine:"},                               \
    {"model", 'm', OPT_TEXT, &(g).model, .arg = "MODEL",                                           \
     .help = "folder, FILE.gguf, org/name in the local Hugging Face cache, or synth:SHAPE"},       \
    IGNORE_CONFIG_OPTION((g).ignore_config),                                                       \
    {"mask-block", 0, OPT_INT, &(g).mask_block, 0, 1 << 20, .arg = "N", .rare = 1,                 \
     .help = "block length of the mask of a diffusion model whose files do not say it; 0: every "  \
             "row sees all rows (--block-length)"},                                                \
    {"device", 0, OPT_TEXT, &(g).device, .arg = "auto|ref|cpu|cuda[:N]",                           \
     .help = "back end (auto: a usable GPU, else the CPU)"},                                       \
    ISA_OPTION((g).isa),                                                                           \
    {"dtype", 0, OPT_CHOICE, &(g).dtype, .choices = "auto|f32|bf16|bf16-f32|f16",                  \
     .help = "format of matrices and products (auto: as exact as the checkpoint; GPU: bf16)"},     \
    {"kv-dtype", 0, OPT_CHOICE, &(g).kv_dtype, .choices = "auto|f32|bf16", .rare = 1,              \
     .help = "format of the key/value cache (auto: bf16 with --dtype bf16 or --quant, else f32)"}, \
    {"quant", 0, OPT_CHOICE, &(g).quant, .choices = "none|" DTYPE_QUANTIZED,                       \
     .help = "quantize the matrices (none; a packed checkpoint keeps its format)"},                \
    THREADS_OPTION((g).threads),                                                                   \
    {"graphs", 0, OPT_CHOICE, &(g).graphs, .choices = "on|off", .rare = 1,                         \
     .help = "GPU: record each kind of pass once and replay it, or start each kernel (on)"},       \
    {"alloc", 0, OPT_CHOICE, &(g).alloc, .choices = "pool|direct", .rare = 1,                      \
     .help = "GPU: keep freed memory for later, or ask the driver each time (pool)"},              \
    {"tf32", 0, OPT_CHOICE, &(g).tf32, .choices = "on|off", .rare = 1,                             \
     .help = "GPU with --dtype f32: compute products of many rows in TF32, with 10 bits of "       \
             "mantissa (off)"},                                                                    \
    {"gemm-choices", 0, OPT_TEXT, &(g).gemm_choices, .arg = "FILE", .rare = 1,                     \
     .writes = WRITES_IT,                                                                          \
     .help = "GPU: read the library's algorithm for each shape here, and add new shapes; "         \
             "machines with the same FILE choose alike (a file in ~/.cache/crossover)"},           \
    {"row-tile", 0, OPT_INT, &(g).row_tile, 0, 1 << 20, .arg = "N", .rare = 1,                     \
     .help = "rows that the products of a layer compute at a time, a multiple of 8 (0: all)"},     \
    {"mem-cap", 0, OPT_BYTES, &(g).mem_cap, 0, 9007199254740991.0, .arg = "BYTES",                 \
     .help = "limit on the memory of the model, K/M/G (0: none)"},                                 \
    {"check-finite", 0, OPT_FLAG, &(g).check_finite, .rare = 1,                                    \
     .help = "read all weights first: refuse NaN and layers of zeros"}

/* Opens the checkpoint of -m, or of --pruned at a level that uses it, ignoring the keys of
 * --ignore-config. Prints what is unusual about the checkpoint. Returns -1 as
 * checkpoint_open(), and EXIT_BAD_DATA if the checkpoint of --pruned is not pruned. */
int engine_checkpoint(const struct engine *engine, uint64_t synth_seed, struct checkpoint *model,
                      const struct log *log, struct err *e);
/* Opens the back end that --device, --isa, --threads, --graphs, --alloc, --tf32 and --gemm-choices
 * ask for; the caller's (backend_close). -1: EXIT_BAD_USAGE (no such device exists), EXIT_NO_DEVICE
 * (this machine has none; the message names the devices that it has), EXIT_BAD_DATA (--gemm-choices
 * is not a file of choices of this library). */
int engine_open(const struct engine *engine, struct backend **backend, struct err *e);
/* Checks --device alone. -1: EXIT_BAD_USAGE. */
int engine_check_device(const struct engine *engine, struct err *e);
/* With --isa auto, chooses the level for the format of the network's matrices (level_choice_use).
 * The back end must not hold matrices yet. */
void engine_level(const struct engine *engine, struct backend *backend,
                  const struct checkpoint *model, const struct log *log);
/* Fails (EXIT_BAD_USAGE) if --device-map, --kv-map or --cache-precision has an invalid value. */
int engine_check_memory(const struct engine *engine, struct err *e);
/* Returns 1 if the map (value of --device-map or --kv-map, or NULL) is auto: free memory decides
 * how many layers stay. */
int engine_maps_itself(const char *map);
/* Returns formats and maps by --dtype, --kv-dtype, --quant, --device-map and --kv-map. --level
 * decides about formats whose option is not given. A packed checkpoint keeps its format at every
 * level. */
struct precision engine_precision(const struct engine *engine, const struct config *config);
/* Prints one line: the options that --level has switched on. */
void engine_say_saving(const struct engine *engine, const struct config *config,
                       const struct log *log);
/* Calls network_settle() with the formats and maps of engine_precision(). */
int engine_settle(const struct engine *engine, struct network *n, struct backend *backend,
                  const struct checkpoint *model, struct err *e);
/* Calls network_load() with the formats and maps of engine_precision(). */
int engine_load(const struct engine *engine, struct network *n, struct backend *backend,
                const struct checkpoint *model, struct err *e);

/* Sets the fields engine_facts[] (lib/setting/engine_facts.h) of a record: the choices that ran,
 * not the options. device_name and library are null on a host. offload_layers is set only if layers
 * are offloaded, offload_kv_layers only if it differs from offload_layers. graphs, alloc, tf32,
 * row_tile and handicap are set only if they do not have their defaults. */
void engine_describe(json_t *record, const struct network *n);

/* Sets library_choices: a digest of the algorithms of the vendor's library that have run in this
 * process, for all shapes, in any order. The field is left out if none ran. The field is not part
 * of a point, because each new shape changes it. */
void engine_put_choices(json_t *record, const struct backend *backend);
/* 1: --tf32 on is in effect: the library of this device may round products of this network. */
int engine_is_tf32(const struct network *n);
