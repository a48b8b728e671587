/* jinja.h - runs chat templates: the part of Jinja that published templates use.
 *
 * The results are those of Jinja 3 with the settings of transformers (trim_blocks, lstrip_blocks,
 * loop controls, generation tags). A tag, filter, test, method or function that is not known is
 * refused by its name. Numbers with a point, and methods that change lists or mappings, are refused
 * too. A template reads nothing but its variables: strftime_now gives a fixed day, 26 July 2024, so
 * that prompts of different days can be compared. Steps, memory and nesting are limited
 * (jinja/jinja_work.h).
 *
 * Source: https://jinja.palletsprojects.com/en/stable/templates/ */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

enum { JINJA_MAX_BYTES = 256 << 10 };
struct jinja;
/* text: n bytes, copied. NULL (EXIT_BAD_DATA): *why has the line and the reason. */
struct jinja *jinja_parse(const char *text, size_t n, struct err *why);
void jinja_free(struct jinja *jinja);

struct jinja_written {
    struct buf text;
    struct buf given; /* one byte for each byte of text. 1: this byte comes from a string of
                       * `messages`. A role of only letters, digits, - and _ is not marked, because
                       * templates make tokens of roles: <|user|> */
};
/* variables: an object; borrowed. -1 (EXIT_BAD_DATA): *why has the line and the reason. Call
 * jinja_written_free in any case. Any number of threads may render one template. */
int jinja_render(const struct jinja *jinja, const json_t *variables, struct jinja_written *to,
                 struct err *why);
void jinja_written_free(struct jinja_written *written);
