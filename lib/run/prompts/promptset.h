/* promptset.h - keeps all prompts of a run in memory, because they run again at every point and
 * round. A point names its chat template, so the prompts are kept as each template writes them. */
#pragma once

#include "lib/record/prompt_input.h"
#include "lib/run/prompts/prompt.h"
#include "lib/setting/settings.h"

struct prompts { /* in input order, ids all different */
    struct prompt *v;
    size_t n, cap;
};
struct promptset {
    struct prompts by_chat[CHAT_WORDS]; /* by word of --chat; empty if no point names the word */
    size_t n; /* the most prompts of a template; a template that refuses a prompt has fewer */
    struct prompt_input in;
};

/* Reads prompts as prompt_input_read() does, for each encoder (NULL: that word is not used). A
 * prompt that prompt_make() refuses under a template becomes a fault; the other templates keep
 * it. */
int promptset_read(struct promptset *promptset, const char *const *files, size_t n_files,
                   int64_t limit, const struct prompt_encoder *const encoder[CHAT_WORDS],
                   struct err *e);
/* Returns the prompts as the chat template of a point writes them. */
const struct prompts *promptset_at(const struct promptset *promptset, const struct settings *point);
void promptset_free(struct promptset *promptset);
