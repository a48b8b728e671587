/* chat.h - chat templates turn messages into one prompt. A template contains BOS, so the
 * tokenizer's post-processor is not used.
 *
 * A checkpoint's own template is run (jinja.h). For checkpoints without a template this module has
 * its own templates, named after the models that publish similar ones:
 *
 *     llama3, llada    BOS, then for each message
 *                      <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
 *     llama3.1         llama3 with a fixed system block behind BOS, with a fixed date
 *     chatml           <|im_start|>ROLE\nCONTENT<|im_end|>\n for each message
 *     chatml_bos       BOS of LLaMA 3, then chatml
 *     qwen2, qwen2.5, smollm2   chatml with the model's system message if the messages have none */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/setting/words.h"
#include "lib/text/tokenizer.h"

/* The special token that ends a message in this template; NULL for CHAT_NONE. */
const char *chat_end(enum chat kind);

/* A template that is ready to run. A NULL pointer stands for no template. */
struct chat_template;
/* The name for records: "llama3", ...; "own": the template of the checkpoint; "none" for NULL. */
const char *chat_name(const struct chat_template *chat);
void chat_free(struct chat_template *chat);

/* The template of a checkpoint. All members are borrowed. */
struct chat_source {
    const char *text;     /* Jinja, n bytes; NULL: the checkpoint has no template */
    size_t n;
    const json_t *tokens; /* {"bos_token": "TEXT", ...}; NULL: none */
    const char *where;    /* the file, for messages */
    const char *fault;    /* why the value in the file is not a template; "": no fault */
};
struct chat_choice {
    struct chat_template *chosen; /* owned; NULL: no template */
    int unknown;     /* 1: the checkpoint has a template that does not run here: warn with `said` */
    struct err said; /* said.text: a message for standard error; "": no message */
};
/* Chooses the template of --chat `name`. auto: the template of the checkpoint; no template if the
 * checkpoint has none, if its template cannot be run for a user's message, or if the tokenizer
 * lacks its tokens. family: the template that `said` recommends if the checkpoint has none. model:
 * name of the checkpoint, for messages. -1: EXIT_BAD_USAGE: unknown name; EXIT_BAD_DATA: the
 * tokenizer lacks the tokens of the named template. */
int chat_choose(const char *name, const struct chat_source *own, enum chat family,
                const char *model, const struct tokenizer *tokenizer, struct chat_choice *out,
                struct err *e);

struct chat_message { const char *role, *content; };
/* Appends to *out the ids of the text that the template writes for these messages, with
 * add_generation_prompt. chat NULL: the ids of the contents, with a line feed between two. A
 * special token's name inside a role or a content is ordinary text, unless `parse_special`. The
 * tokenizer must have the template's tokens (chat_choose checks this). -1 (EXIT_BAD_DATA): a text
 * is not UTF-8, or the template refuses the messages. */
int chat_encode(const struct chat_template *chat, const struct tokenizer *tokenizer,
                const struct chat_message *message, size_t n, int parse_special, struct ids *out,
                struct err *e);
