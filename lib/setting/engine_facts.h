/* engine_facts.h - where and how precisely a model ran: fields of records that belong to the
 * identity of a point and are not settings of a decoder. lib/run/engine.c writes them. */
#pragma once

struct engine_fact {
    const char *name;
    const char *standard; /* its value where a record has none, as JSON; NULL: unknown there */
};
extern const struct engine_fact engine_facts[]; /* name NULL last */
