/* engine_facts.h - where and how precisely a model ran: fields of records that belong to the
 * identity of a point and are no settings of a decoder. lib/run/engine.c writes them. */
#ifndef SETTING_ENGINE_FACTS_H
#define SETTING_ENGINE_FACTS_H

struct engine_fact {
    const char *name;
    const char *standard; /* its value where a record has none, as JSON; NULL: unknown there */
};
extern const struct engine_fact engine_facts[]; /* name NULL last */

#endif
