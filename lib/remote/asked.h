/* asked.h - makes the body of a request from a prompt record, as JSON.
 *
 * A record has text, messages or prompt_ids, as in lib/run/prompts/prompt.h. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/record/prompt_input.h"
#include "lib/setting/settings.h"
#include "lib/text/tokenizer.h"

struct asked_prompt {
    json_t *record; /* owned */
    char *where;    /* "FILE:LINE"; owned */
    const char *id; /* inside record */
};
struct asked {
    struct asked_prompt *v;
    size_t n, cap;
    struct prompt_input in;
};
/* Reads prompts as prompt_input_read() does. */
int asked_read(struct asked *asked, const char *const *files, size_t n_files, int64_t limit,
               struct err *e);
void asked_free(struct asked *asked);

struct asked_how {
    const struct settings *point; /* settings of system_endpoint */
    const char *model;            /* name on the server */
    uint64_t seed;
    const json_t *more;           /* members that replace members of the body; NULL: none */
};
/* Returns the body of a request, the caller's; *n = its bytes. Returns NULL (EXIT_BAD_DATA) if the
 * record does not have exactly one form, or has a form that the API does not take. */
char *asked_body(const struct asked_prompt *prompt, const struct asked_how *how, size_t *n,
                 struct err *e);
/* "/completions" or "/chat/completions". */
const char *asked_path(const struct settings *point);
/* Returns the prompt as text, or NULL if it has only prompt_ids; the caller's. */
char *asked_text(const struct asked_prompt *prompt);
/* Returns the number of ids of the prompt, without the ids that a template adds; -1: unknown
 * (tokenizer NULL, text that is not UTF-8). */
int64_t asked_tokens(const struct asked_prompt *prompt, const struct tokenizer *tokenizer);
