/* engine_facts.h - names the record fields that say where and how precisely a model ran (device,
 * dtype, threads, ...). They are no settings of a decoder, but part of the identity of a point.
 * lib/run/engine.c writes these fields. */
#pragma once

struct engine_fact {
    const char *name;
    const char *standard; /* JSON value for a record without this field; NULL: unknown then */
};
extern const struct engine_fact engine_facts[]; /* name NULL last */
