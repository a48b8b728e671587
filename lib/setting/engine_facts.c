/* engine_facts.c - see engine_facts.h. A fact with a default is off unless a run asks for it, so a
 * record without the fact has the default. If a record lacks a fact that has no default, the fact
 * is unknown. */
#include "lib/setting/engine_facts.h"

#include <stddef.h>

const struct engine_fact engine_facts[] = {
    {"device", NULL},
    {"device_name", NULL},
    {"isa", NULL},
    {"library", NULL},
    {"dtype", NULL},
    {"kv_dtype", NULL},
    {"quant", "\"none\""},
    {"threads", NULL},
    {"graphs", NULL},
    {"alloc", NULL},
    {"tf32", "\"off\""},
    {"row_tile", NULL},
    {"handicap", "0"},
    {"offload_layers", "0"},
    {"offload_kv_layers", "0"},
    {NULL, NULL}};
